"""`thimble finetune FOLDER --data FILE`: prepares the data, then trains by the flags of `thimble train`."""

from __future__ import annotations

import re
import sys
from typing import Callable, Sequence

from .._errors import UserError
from .prepare import Prepared
from .settings import CHOICES, RUN, of_run, prepared_for, whole

HELP = """Usage: thimble finetune FOLDER --data FILE.jsonl [OPTIONS]
       thimble finetune RECIPE.toml --data FILE.jsonl [OPTIONS]

Fine-tunes a Hugging Face folder (config.json, safetensors, tokenizer.json) on records of a JSONL file:
{"messages": [...]}, {"prompt": ..., "completion": ...} or {"text": ...}, one a line.

Data:
  --data FILE         Records to train on
  --test FILE         Records to test on, instead of a share of those
  --held-out X        That share (0.05)
  --length N          Tokens of a row (twice the longest record, at most 1024)
  --longer HOW        Records of more tokens: cut, drop or refuse (cut)
  --loss-on WHAT      assistant: what it says alone; all (assistant)
  --template FILE     A chat template instead of the folder's own

Weights:
  --lora SPEC         Adapters: rank=16,alpha=32,targets=linear[,dropout=P][,rs] (rank=16)
  --full              Train all weights instead

Every other flag is one of `thimble train` (thimble train --help): --frozen nf4, --memory 300MiB, --out RUN,
--resume, --epochs, --lr, --batch, --patience. Usual here: 3 epochs, AdamW with clipped gradients, a cosine schedule
with a warm-up, bf16 where the processor multiplies it, and the weights of the best test kept.
"""


def _value(words: list[str], flag: str) -> str:
    if not words:
        raise UserError(f"{flag} wants a value; see `thimble finetune --help`")
    return words.pop(0)


def parse(arguments: Sequence[str], own: dict[str, Callable], command: str) -> tuple[str, dict, list[str]]:
    """The first argument, flags of one's own, and all others as they are."""
    words, chosen, others = list(arguments), {}, []
    if not words or words[0].startswith("-"):
        raise UserError(f"`thimble {command}` begins with a folder; see `thimble {command} --help`")
    subject = words.pop(0)
    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=")
        kind = own.get(flag[2:]) if flag.startswith("--") else None
        if kind is None:
            others.append(word)
        elif kind is bool:
            if equals:
                raise UserError(f"{flag} takes no value")
            chosen[flag[2:]] = True
        else:
            text = value if equals else _value(words, flag)
            try:
                chosen[flag[2:]] = kind(text)
            except ValueError:
                raise UserError(f"{flag} is a number, not '{text}'") from None
    return subject, chosen, others


def is_set(others: Sequence[str], name: str) -> bool:
    return any(word == "--" + name or word.startswith(f"--{name}=") for word in others)


def value_of(others: Sequence[str], name: str) -> str | None:
    for word, behind in zip(others, [*others[1:], None]):
        if word == "--" + name:
            return behind
        if word.startswith(f"--{name}="):
            return word.partition("=")[2]
    return None


def told(prepared: Prepared) -> list[str]:
    """Lines about the prepared data."""
    about = prepared.about
    train, test = about["train"], about["test"]
    return [*(f"thimble: note: {note}" for note in prepared.notes),
            f"{train['records']} records to train on, {train['tokens']} tokens of which {train['counted']} count; "
            f"{test['records']} held out; {'as before in' if prepared.reused else 'written to'} {prepared.folder}"]


def recipe_in(path: str) -> dict[str, str]:
    """Settings of a recipe file by the names of flags, as texts. The library reads it in earnest."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the recipe '{path}' cannot be read: {error}") from error
    found = (re.match(r"\s*([\w-]+)\s*=\s*(\"[^\"]*\"|'[^']*'|[^#]*)", line) for line in lines)
    settings = {match[1].replace("_", "-"): match[2].strip().strip("\"'") for match in found if match}
    if not settings.get("model", "").startswith("hf:"):
        raise UserError(f"the recipe '{path}' names no Hugging Face folder; write model = \"hf:FOLDER\"")
    return settings


def arguments_of(arguments: Sequence[str], say: Callable[[str], None] | None = None) -> list[str]:
    """The words of `thimble train` that it comes to. The data are prepared."""
    folder, own, others = parse(arguments, CHOICES, "finetune")
    if is_set(others, "data-dir"):
        raise UserError("--data-dir is where the records are prepared; leave it out")
    if "data" not in own:
        raise UserError("`thimble finetune` wants records; name them with --data FILE.jsonl")
    recipe = recipe_in(folder) if folder.endswith(".toml") else {}
    model = recipe.get("model", "hf:" + folder)[3:]
    if "length" in recipe:
        own.setdefault("length", whole(recipe["length"]))
    quiet = is_set(others, "quiet")
    prepared = prepared_for(model, own, (lambda _: None) if quiet or say is None else say)
    if not quiet and say is not None:
        for line in told(prepared):
            say(line)
    given = {**recipe, **{name: value_of(others, name) for name in RUN if is_set(others, name)}}
    usual = of_run(prepared, own, given)
    words = ["train", folder if recipe else "hf:" + folder, "--data", "documents", "--data-dir", prepared.folder]
    for name, value in usual.items():
        if not is_set(others, name) and (name not in recipe or name in own):
            words += ["--" + name, str(value)]
    if not is_set(others, "patience") and not is_set(others, "no-eval"):
        words += ["--patience", "0"]
    return words + others


def finetune_command(arguments: Sequence[str]) -> list[str] | int:
    """Words for the library's main, or an exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(HELP, end="")
        return 0 if arguments else 2
    return arguments_of(arguments, lambda line: print(line, file=sys.stderr, flush=True))
