"""Conversations to tokens: a folder of documents, written once for the same data, tokenizer, template and settings."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator

from .._errors import UserError
from .documents import Spool, whole_folder
from .records import read_records
from .render import ALL, ASSISTANT, rendered
from .template import ChatTemplate, find_template
from .tokens import Document, Tokens

FORMAT = 1
AT_ONCE = 512  # records that are cut into tokens together
USUAL_LENGTH = 1024
STEP = 64  # that usual lengths are multiples of


@dataclass
class Left:
    """Records that are not as they were: how many, and the first's line."""

    count: int = 0
    line: int = 0

    def note(self, line: int) -> None:
        self.line = self.line or line
        self.count += 1


@dataclass(frozen=True)
class Settings:
    """Choices that decide what is written."""

    length: int | None = None
    """Tokens of a row; None: room for the longest record twice, at most USUAL_LENGTH."""
    loss_on: str = ASSISTANT
    longer: str = "cut"
    """A record of more tokens: "cut", "drop" or "refuse"."""
    held_out: float = 0.05


@dataclass
class Prepared:
    """A folder for the data set `documents`."""

    folder: str
    about: dict[str, Any]
    reused: bool = False
    notes: list[str] = field(default_factory=list)


def cache_folder() -> str:
    """Where measured times of kernels are kept, too (THIMBLE_CACHE)."""
    own, caches = os.environ.get("THIMBLE_CACHE"), os.environ.get("XDG_CACHE_HOME")
    return own or os.path.join(caches or os.path.expanduser("~/.cache"), "thimble")


def _digest(path: str) -> str:
    made = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                made.update(block)
    except OSError as error:
        raise UserError(f"'{path}' cannot be read: {error.strerror}") from error
    return made.hexdigest()


def check(settings: Settings, tokens: Tokens, test: str | None) -> None:
    if settings.loss_on not in (ASSISTANT, ALL):
        raise UserError(f"--loss-on is 'assistant' or 'all', not '{settings.loss_on}'")
    if settings.longer not in ("cut", "drop", "refuse"):
        raise UserError(f"--longer is 'cut', 'drop' or 'refuse', not '{settings.longer}'")
    if test is None and not 0 < settings.held_out < 1:
        raise UserError(f"--held-out {settings.held_out:g} leaves nothing to test or nothing to train on; choose a "
                        "share as 0.05, or name the records to test on with --test FILE")
    if settings.length is None:
        return
    if settings.length < 2:
        raise UserError(f"--length is {settings.length}, and a token and the next are 2; choose a longer one")
    if isinstance(tokens.longest, int) and settings.length > tokens.longest:
        raise UserError(f"--length is {settings.length}, and the model was made for {tokens.longest} tokens "
                        f"(max_position_embeddings); choose at most that")


def most_tokens(settings: Settings, tokens: Tokens) -> int:
    """Of a record that is not cut."""
    made_for = tokens.longest if isinstance(tokens.longest, int) else USUAL_LENGTH
    return settings.length or min(USUAL_LENGTH, made_for)


def _usual_length(longest: int, most: int) -> int:
    return min(most, math.ceil(2 * longest / STEP) * STEP)


class _Reader:
    """Documents of a file, none longer than the length."""

    def __init__(self, tokens: Tokens, template: ChatTemplate | None, settings: Settings) -> None:
        self._tokens, self._template, self._settings = tokens, template, settings
        self.length = most_tokens(settings, tokens)
        self.cut, self.dropped, self.silent = Left(), Left(), Left()

    def read(self, path: str) -> Iterator[Document]:
        texts = (rendered(record, self._template, self._settings.loss_on, path) for record in read_records(path))
        while some := list(itertools.islice(texts, AT_ONCE)):
            for document in self._tokens.documents(some):
                fitting = self._fitting(document, path)
                if fitting is not None:
                    yield fitting

    def _fitting(self, document: Document, path: str) -> Document | None:
        length, size = self.length, len(document.tokens)
        if not any(document.counted[1:]):
            self.silent.note(document.line)
            return None
        if size <= length:
            return document
        if self._settings.longer == "refuse":
            raise UserError(f"'{path}', line {document.line}: it has {size} tokens, and a row has {length}; choose "
                            "a longer --length, or --longer cut or drop")
        if self._settings.longer == "drop" or not any(document.counted[1:length]):
            self.dropped.note(document.line)
            return None
        self.cut.note(document.line)
        return Document(document.line, document.tokens[:length], document.counted[:length])

    def notes(self, path: str) -> Iterator[str]:
        for left, what in ((self.silent, "have nothing that counts in the loss and are left out"),
                           (self.dropped, f"are longer than {self.length} tokens and are left out"),
                           (self.cut, f"are cut to {self.length} tokens")):
            if left.count:
                yield f"'{path}': {left.count} records {what} (the first in line {left.line})"


def _held(count: int, settings: Settings, path: str) -> tuple[list[int], list[int]]:
    """Records to train on and to test on: the share whose digests come first."""
    many = round(count * settings.held_out)
    if many < 1 or many >= count:
        raise UserError(f"'{path}': --held-out {settings.held_out:g} of {count} records leaves nothing to "
                        f"{'test' if many < 1 else 'train'} on; choose another share, or --test FILE")
    order = sorted(range(count), key=lambda i: hashlib.sha256(str(i).encode()).digest())
    held = set(order[:many])
    return [i for i in range(count) if i not in held], sorted(held)


def prepare(folder: str | os.PathLike[str], data: str | os.PathLike[str], settings: Settings, *,
            test: str | os.PathLike[str] | None = None, template: str | os.PathLike[str] | None = None,
            cache: str | None = None, say: Callable[[str], None] = lambda _: None) -> Prepared:
    """Tokens of `data` (and `test`) by the tokenizer and template of a Hugging Face folder."""
    tokens = Tokens(folder)
    data, test = os.fspath(data), None if test is None else os.fspath(test)
    check(settings, tokens, test)
    text = find_template(tokens.folder, None if template is None else os.fspath(template))
    chat = None if text is None else ChatTemplate(text, tokens.special)
    key = {"format": FORMAT, "vocabulary": tokens.rows, "tokenizer_sha256": tokens.sha256,
           "template_sha256": chat.sha256 if chat else "", "loss_on": settings.loss_on, "length": settings.length,
           "most_tokens": most_tokens(settings, tokens), "longer": settings.longer, "data_sha256": _digest(data)}
    if test is None:
        key["held_out"] = settings.held_out
    else:
        key["test_sha256"] = _digest(test)
    made_of = json.dumps([key, tokens.special, tokens.end], sort_keys=True)
    digest = hashlib.sha256(made_of.encode()).hexdigest()
    path = os.path.join(cache or os.path.join(cache_folder(), "documents"), digest[:24])
    about_path = os.path.join(path, "documents.json")
    if os.path.exists(about_path):
        with open(about_path, encoding="utf-8") as file:
            about = json.load(file)
        return Prepared(path, about, reused=True, notes=about["notes"])
    say(f"reading {data}")
    with whole_folder(path) as made:
        about = {**key, **_write(made, tokens, chat, settings, data, test)}
        if text is not None:
            with open(os.path.join(made, "chat_template.jinja"), "w", encoding="utf-8", newline="") as file:
                file.write(text)
        with open(os.path.join(made, "documents.json"), "w", encoding="utf-8") as file:
            json.dump(about, file, indent=1, ensure_ascii=False)
    return Prepared(path, about, notes=about["notes"])


def _write(folder: str, tokens: Tokens, chat: ChatTemplate | None, settings: Settings, data: str, test: str | None
           ) -> dict[str, Any]:
    notes, about, longest = [], {}, 0
    files = {"train": data, **({"test": test} if test else {})}
    for split, path in files.items():
        reader = _Reader(tokens, chat, settings)
        with Spool(folder) as spool:
            for document in reader.read(path):
                spool.add(document)
                longest = max(longest, len(document.tokens))
            notes += reader.notes(path)
            if len(spool) == 0:
                raise UserError(f"'{path}' has no record to {split} on"
                                + (f": {notes[-1].split(': ', 1)[1]}" if notes else ""))
            chosen = {split: list(range(len(spool)))}
            if test is None:
                chosen["train"], chosen["test"] = _held(len(spool), settings, path)
            for part, which in chosen.items():
                about[part] = spool.write(os.path.join(folder, part + ".documents"), which)
    return {**about, "notes": notes, "length": settings.length or _usual_length(longest, most_tokens(settings, tokens))}
