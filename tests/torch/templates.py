"""Chat templates rendered by thimble.finetune and by transformers, byte for byte.

usage: templates.py [--folder HF] [TEMPLATE ...]

Templates are those of tests/python/templates, of the structure that six families have, and of --folder its own, with
its tokens. Exits 1 where a text, a token or a refusal differs.
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]

import tokenizers  # noqa: E402
import transformers  # noqa: E402

from conversations import CONVERSATIONS, SPECIAL  # noqa: E402
from thimble.finetune.template import ChatTemplate, find_template  # noqa: E402
from thimble.finetune.tokens import Tokens  # noqa: E402


def text_or_refusal(render):
    try:
        return render()
    except Exception:  # of either's own kind
        return "refused"


def compare(name, text, theirs, special, tokens=None):
    ours, wrong, refused = ChatTemplate(text, special), 0, 0
    for what, (messages, tools) in CONVERSATIONS.items():
        for answer in (False, True):
            a = text_or_refusal(lambda: ours.render(messages, tools=tools, answer=answer))
            b = text_or_refusal(lambda: theirs.apply_chat_template(messages, tools=tools, chat_template=text,
                                                                   tokenize=False, add_generation_prompt=answer))
            same = a == b
            refused += a.startswith("refused")
            if tokens is not None and not a.startswith("refused"):
                same = same and tokens.encode(a) == theirs(a, add_special_tokens=False)["input_ids"]
            wrong += not same
            if not same:
                print(f"  {name}, {what}, answer={answer}:\n    {a!r}\n    {b!r}")
    print(f"{name:10} {2 * len(CONVERSATIONS)} conversations, {refused} refused by both, {wrong} apart", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("templates", nargs="*")
    parser.add_argument("--folder")
    args = parser.parse_args()
    plain = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a")), **SPECIAL)
    wrong = 0
    for path in sorted((ROOT / "tests" / "python" / "templates").glob("*.jinja")):
        if not args.templates or path.stem in args.templates:
            wrong += compare(path.stem, path.read_text(encoding="utf-8"), plain, SPECIAL)
    if args.folder:
        tokens = Tokens(args.folder)
        wrong += compare("folder", find_template(args.folder), transformers.AutoTokenizer.from_pretrained(args.folder),
                         tokens.special, tokens)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
