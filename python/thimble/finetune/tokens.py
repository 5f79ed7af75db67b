"""A folder's tokenizer (tokenizer.json), and what its configuration says of tokens."""

from __future__ import annotations

import hashlib
import os
from array import array
from dataclasses import dataclass
from typing import Any, Sequence

from .._errors import UserError
from ._needs import needed
from .template import read_json, special_tokens


@dataclass(frozen=True)
class Document:
    """Tokens of a record, and which of them count in the loss when they are to be predicted."""

    line: int
    tokens: array
    counted: bytes


@dataclass(frozen=True)
class Text:
    """A rendered record. `spans` of characters count; None: all of it does."""

    line: int
    text: str
    spans: Sequence[tuple[int, int]] | None
    whole: bool = False
    """A text of its own, which the tokenizer begins and ends as it does; else a template has said all."""


def _ids(value: Any) -> list[int]:
    values = value if isinstance(value, list) else [value]
    return [token for token in values if isinstance(token, int) and not isinstance(token, bool)]


def counted_of(offsets: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]] | None) -> bytes:
    """1 for every token that begins inside of a span. Tokens of no characters belong to no span."""
    if spans is None:
        return b"\1" * len(offsets)
    marks, at = bytearray(len(offsets)), 0
    for index, (first, end) in enumerate(offsets):
        while at < len(spans) and spans[at][1] <= first:
            at += 1
        marks[index] = at < len(spans) and first < end and spans[at][0] <= first
    return bytes(marks)


class Tokens:
    """Texts to tokens and back."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.fspath(folder)
        config_path = os.path.join(self.folder, "config.json")
        if not os.path.exists(config_path):
            raise UserError(f"'{self.folder}' has no config.json; name a folder as save_pretrained of transformers "
                            "writes it")
        path = os.path.join(self.folder, "tokenizer.json")
        if not os.path.exists(path):
            raise UserError(f"'{self.folder}' has no tokenizer.json; have transformers write it: "
                            "AutoTokenizer.from_pretrained(...).save_pretrained(...)")
        with open(path, "rb") as file:
            raw = file.read()
        self.sha256 = hashlib.sha256(raw).hexdigest()
        try:
            self._tokenizer = needed("tokenizers").Tokenizer.from_buffer(raw)
        except UserError:
            raise
        except Exception as error:  # of no class of its own
            raise UserError(f"'{path}' is no tokenizer: {error}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        config = read_json(config_path)
        own = read_json(os.path.join(self.folder, "tokenizer_config.json"))
        self.special = special_tokens(own)
        self.longest = config.get("max_position_embeddings")
        self.rows = self._rows(config)
        said = read_json(os.path.join(self.folder, "generation_config.json")).get("eos_token_id")
        end = self._tokenizer.token_to_id(self.special["eos_token"]) if "eos_token" in self.special else None
        self.ends = {*_ids(end), *_ids(said), *_ids(config.get("eos_token_id"))}
        """Tokens that end an answer."""
        self.end = end if end is not None else min(_ids(config.get("eos_token_id")), default=None)
        """The token behind a text."""

    def _rows(self, config: dict) -> int:
        text = config.get("text_config")
        rows = config.get("vocab_size", text.get("vocab_size") if isinstance(text, dict) else None)
        if not isinstance(rows, int) or rows < 1:
            raise UserError(f"'{self.folder}/config.json' says no vocab_size")
        size = 1 + max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
        if size > rows or 2 * size < rows:
            raise UserError(f"'{self.folder}/tokenizer.json' has {size} tokens, and the model's embedding has {rows} "
                            "rows: they are not of one model; put the model's own tokenizer there")
        return rows

    def id_of(self, token: str) -> int | None:
        return self._tokenizer.token_to_id(token)

    def is_special(self, token: int) -> bool:
        added = self._tokenizer.get_added_tokens_decoder().get(token)
        return added is not None and added.special

    def encode(self, text: str) -> list[int]:
        """Of a text that a template has rendered."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, tokens: Sequence[int], special: bool = False) -> str:
        return self._tokenizer.decode(list(tokens), skip_special_tokens=not special)

    def pieces(self, text: Text) -> list[tuple[int, str, bool]]:
        """Number, text and whether it counts, of each token."""
        document = self.documents([text])[0]
        offsets = self._tokenizer.encode(text.text, add_special_tokens=text.whole).offsets
        offsets += [(0, 0)] * (len(document.tokens) - len(offsets))
        return [(token, text.text[first:end] if first < end else self._tokenizer.id_to_token(token) or "", bool(counts))
                for token, counts, (first, end) in zip(document.tokens, document.counted, offsets)]

    def documents(self, texts: Sequence[Text]) -> list[Document]:
        """As many tokens as there are; nothing is cut."""
        made: list[Document | None] = [None] * len(texts)
        for whole in (False, True):
            at = [index for index, text in enumerate(texts) if text.whole == whole]
            if not at:
                continue
            for index, encoding in zip(at, self._tokenizer.encode_batch([texts[index].text for index in at],
                                                                        add_special_tokens=whole)):
                text = texts[index]
                ids, counted = array("i", encoding.ids), counted_of(encoding.offsets, text.spans)
                if whole and self.end is not None:
                    if ids and ids[-1] == self.end:  # the tokenizer's own, of no characters
                        ids.pop()
                        counted = counted[:-1]
                    ids.append(self.end)
                    counted += b"\1"
                made[index] = Document(text.line, ids, counted)
        return made  # type: ignore[return-value]
