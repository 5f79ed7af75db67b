"""`thimble chat RUN`: a conversation with a fine-tuned run, or with a Hugging Face folder as it is."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Iterator, Mapping, Sequence

from .._errors import UserError
from .._generator import Generator
from .command import parse
from .settings import folder_of
from .template import ChatTemplate, answers_in, find_template, read_json
from .tokens import Tokens

HELP = """Usage: thimble chat RUN [OPTIONS]

Talks to a run of `thimble finetune`, or to a Hugging Face folder. Ctrl-C stops an answer, Ctrl-D ends.

  --once TEXT         Print one answer and end; - reads the question from stdin
  --system TEXT       What the conversation begins with
  --most N            Tokens of an answer, at most (512)
  --temperature X     What logits are divided by; 0: always the likeliest token (0)
  --top-k N, --top-p X  Only the likeliest N tokens, or those of a share X of probability
  --seed N            Seed of the choice (1)
  --context N         Tokens that the model sees at once (as many as it was made for, at most 2048)
  --memory SIZE       Budget of the arena
  --threads N         As of `thimble train`
  --last              The last weights of the run, not those of its best test
  --template FILE     A chat template instead of the folder's own

/reset forgets the conversation, /help lists these words.
"""
FLAGS: dict[str, Callable] = {"once": str, "system": str, "most": int, "temperature": float, "top-k": int,
                              "top-p": float, "seed": int, "context": int, "memory": str, "threads": int, "last": bool,
                              "template": str}
CONTEXT = 2048  # tokens, at most, where nobody says how many
WORDS = "/reset forgets the conversation, /exit or Ctrl-D ends, Ctrl-C stops an answer"
_UNFINISHED = "\ufffd"  # of a character whose other bytes are in the next token


def pieces(tokens: Iterator[int], decode: Callable[[Sequence[int]], str]) -> Iterator[str]:
    """Texts as they are complete, one or none for each token."""
    made: list[int] = []
    shown = ""
    for token in tokens:
        made.append(token)
        text = decode(made)
        if text.endswith(_UNFINISHED) or not text.startswith(shown):
            continue
        if text != shown:
            yield text[len(shown):]
            shown = text
    rest = decode(made)
    if rest.startswith(shown) and rest != shown:
        yield rest[len(shown):]


def ends_of(template: ChatTemplate, tokens: Tokens) -> set[int]:
    """Tokens that end an answer: those of the folder's settings, and the one that the template puts behind it."""
    said = "x"
    text, spans = answers_in(template, [{"role": "user", "content": said}, {"role": "assistant", "content": said}])
    begin, end = spans[0]
    behind = text[begin:end].rpartition(said)[2]
    first = tokens.encode(behind.strip())[:1]
    return tokens.ends | {token for token in first if tokens.is_special(token)}


class Conversation:
    """Messages so far, and answers to them, text by text."""

    def __init__(self, generator: Any, tokens: Tokens, template: ChatTemplate | None, system: str | None = None) -> None:
        self._generator, self._tokens, self._template = generator, tokens, template
        self._ends = sorted(tokens.ends if template is None else ends_of(template, tokens))
        self._system = [{"role": "system", "content": system}] if system else []
        self.forgotten = 0
        """Messages that the last answer did not see: the context had no room."""
        self.reset()

    def reset(self) -> None:
        self.messages = list(self._system)

    def ask(self, question: str, most: int = 512, **sampling: Any) -> Iterator[str]:
        self.messages.append({"role": "user", "content": question})
        return self.answer(most, **sampling)

    def answer(self, most: int = 512, **sampling: Any) -> Iterator[str]:
        """The assistant's next turn. It stays in the conversation, as far as it was read."""
        ids, most = self._prompt(most)
        made: list[str] = []
        try:
            answer = self._generator.generate(ids, most, stop=self._ends, **sampling)
            for text in pieces(answer, self._tokens.decode):
                made.append(text)
                yield text
        finally:
            self.messages.append({"role": "assistant", "content": "".join(made)})

    def _prompt(self, most: int) -> tuple[list[int], int]:
        """Tokens of as many of the last turns as leave room for an answer."""
        context, begin = self._generator.context, len(self._system)
        room = max(1, min(most, context // 2))
        self.forgotten = 0
        while True:
            ids = self._rendered(self.messages[:len(self._system)] + self.messages[begin + self.forgotten:])
            if len(ids) + room <= context:
                return ids, min(most, context - len(ids))
            if begin + self.forgotten + 2 >= len(self.messages):
                raise UserError(f"the question has {len(ids)} tokens with its template, and the model sees {context} at "
                                f"once, {room} of them for an answer; ask for less, or choose a longer --context")
            self.forgotten += 2  # a question and its answer

    def _rendered(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        if self._template is None:
            return self._tokens.encode("\n".join(message["content"] for message in messages))
        return self._tokens.encode(self._template.render(list(messages), answer=True))


def run_settings(run: str) -> dict[str, Any]:
    """The recipe of a run's last checkpoint."""
    path = os.path.join(run, "latest", "state.json")
    if not os.path.exists(path):
        path = os.path.join(run, "state.json")
    if not os.path.exists(path):
        raise UserError(f"'{run}' is neither a run nor a Hugging Face folder: it has no latest/state.json and no "
                        "config.json")
    recipe = read_json(path).get("recipe")
    if not isinstance(recipe, dict) or not isinstance(recipe.get("model"), str):
        raise UserError(f"'{path}' names no model")
    return recipe


def usual_context(tokens: Tokens) -> int:
    """Tokens that a conversation may have; the length of a run's rows says nothing of it."""
    return min(CONTEXT, tokens.longest) if isinstance(tokens.longest, int) else CONTEXT


def opened(subject: str, own: Mapping[str, Any]) -> tuple[Any, Tokens, ChatTemplate | None]:
    """The generator, the tokenizer and the template of a run or a folder."""
    options = {name: own[name] for name in ("context", "memory", "threads") if name in own}
    if os.path.exists(os.path.join(subject, "config.json")):
        folder, source = subject, "hf:" + subject
    else:
        folder, source = folder_of(run_settings(subject)["model"]), subject
        best = os.path.join(subject, "best-adapter")
        if os.path.isdir(best) and not own.get("last"):
            options["weights"] = best
    tokens = Tokens(folder)
    options.setdefault("context", usual_context(tokens))
    text = find_template(folder, own.get("template"))
    return Generator(source, **options), tokens, None if text is None else ChatTemplate(text, tokens.special)


def _say(texts: Iterator[str]) -> None:
    """As they come. Ctrl-C ends the answer."""
    try:
        for text in texts:
            print(text, end="", flush=True)
    except KeyboardInterrupt:
        texts.close()  # type: ignore[attr-defined]
    print(flush=True)


def talk(conversation: Conversation, most: int, sampling: Mapping[str, Any]) -> None:
    """Questions from stdin until it ends."""
    terminal = sys.stdin.isatty()
    if terminal:
        print(WORDS, file=sys.stderr)
    while True:
        try:
            question = input("> " if terminal else "")
        except EOFError:
            break
        except KeyboardInterrupt:
            print(file=sys.stderr)
            continue
        except UnicodeDecodeError as error:
            print(f"thimble: the question is no UTF-8: byte {error.start + 1}", file=sys.stderr)
            continue
        word = question.strip()
        if word in ("/exit", "/quit"):
            break
        if word == "/reset":
            conversation.reset()
        elif word.startswith("/"):
            print(WORDS, file=sys.stderr)
        elif word:
            before = list(conversation.messages)
            try:
                _say(conversation.ask(question, most, **sampling))
            except UserError as error:
                conversation.messages = before
                print(f"thimble: {error}", file=sys.stderr)
            if conversation.forgotten:
                print(f"thimble: note: the context is full; the first {conversation.forgotten} messages are not seen any "
                      "more", file=sys.stderr)
    if terminal:
        print(file=sys.stderr)


def _question(text: str) -> str:
    if text != "-":
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise UserError("the question is no UTF-8")
        return text
    try:
        return sys.stdin.buffer.read().decode().rstrip("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"the question is no UTF-8: byte {error.start + 1}") from error


def chat_command(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(HELP, end="")
        return 0 if arguments else 2
    subject, own, others = parse(arguments, FLAGS, "chat")
    if others:
        raise UserError(f"`thimble chat` has no {others[0]}; see `thimble chat --help`")
    question = _question(own["once"]) if "once" in own else None
    most = own.get("most", 512)
    if most < 1:
        raise UserError(f"--most is {most}, and an answer has a token at least")
    sampling = {"temperature": own.get("temperature", 0.0), "seed": own.get("seed", 1)}
    sampling.update({name.replace("-", "_"): own[name] for name in ("top-k", "top-p") if name in own})
    generator, tokens, template = opened(subject, own)
    conversation = Conversation(generator, tokens, template, own.get("system"))
    if question is None:
        talk(conversation, most, sampling)
    else:
        _say(conversation.ask(question, most, **sampling))
    return 0
