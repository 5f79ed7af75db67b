"""`thimble data show FILE --model FOLDER`: a record as tokens, and which of them count in the loss."""

from __future__ import annotations

import itertools
import sys
from typing import Sequence

from .._errors import UserError
from .command import parse
from .records import read_records
from .render import ALL, ASSISTANT, rendered
from .template import ChatTemplate, find_template
from .tokens import Tokens

HELP = """Usage: thimble data show FILE.jsonl --model FOLDER [OPTIONS]

Prints a record as tokens of a Hugging Face folder, and which of them count in the loss.

  --model FOLDER      Whose tokenizer and chat template
  --record N          Which, from 1 (1)
  --loss-on WHAT      assistant: what it says alone; all (assistant)
  --template FILE     A chat template instead of the folder's own

On a terminal, tokens that count are green and the others dim. A file or a pipe gets a line each: place, number, * where it
counts, text.
"""
_FLAGS = {"model": str, "record": int, "loss-on": str, "template": str}
_COUNTS, _DOES_NOT, _PLAIN = "\033[32m", "\033[2m", "\033[0m"


def _visible(piece: str) -> str:
    """Without characters that would move the cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in piece)


def listed(pieces: Sequence[tuple[int, str, bool]]) -> str:
    """A line each."""
    return "\n".join(f"{place:5}  {token:7}  {'*' if counts else ' '}  {_visible(piece)}"
                     for place, (token, piece, counts) in enumerate(pieces))


def coloured(pieces: Sequence[tuple[int, str, bool]]) -> str:
    """As text, with a bar between tokens."""
    parts = []
    for _, piece, counts in pieces:
        ends = piece.endswith("\n")
        parts.append((_COUNTS if counts else _DOES_NOT) + _visible(piece) + _PLAIN + ("\n" if ends else "|"))
    return "".join(parts).rstrip("|\n")


def show_command(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(HELP, end="")
        return 0 if arguments else 2
    path, own, others = parse(arguments, _FLAGS, "data show")
    if others:
        raise UserError(f"`thimble data show` has no {others[0]}; see `thimble data show --help`")
    if "model" not in own:
        raise UserError("`thimble data show` wants a Hugging Face folder; name it with --model FOLDER")
    number, loss_on = own.get("record", 1), own.get("loss-on", ASSISTANT)
    if loss_on not in (ASSISTANT, ALL):
        raise UserError(f"--loss-on is 'assistant' or 'all', not '{loss_on}'")
    record = next(itertools.islice(read_records(path), number - 1, None), None) if number >= 1 else None
    if record is None:
        raise UserError(f"'{path}' has no record {number}")
    tokens = Tokens(own["model"])
    template = find_template(tokens.folder, own.get("template"))
    chat = None if template is None else ChatTemplate(template, tokens.special)
    pieces = tokens.pieces(rendered(record, chat, loss_on, path))
    print(f"record {number}, line {record.line}: {len(pieces)} tokens, {sum(p[2] for p in pieces[1:])} count")
    print(coloured(pieces) if sys.stdout.isatty() else listed(pieces))
    return 0
