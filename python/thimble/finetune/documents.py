"""Files of documents, as the data set `documents` reads them: tokens, and which of them count.

    "thimdocs", u32 version 1, u32 0, u64 records, u64 offsets[records + 1] (in tokens),
    i32 tokens[offsets[records]], u8 counted[offsets[records]]                       all little endian
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import sys
import tempfile
from array import array
from typing import BinaryIO, Sequence

from .._errors import UserError
from .tokens import Document

MAGIC, VERSION = b"thimdocs", 1
_HEAD = struct.Struct("<8sIIQ")


def _little(numbers: array) -> array:
    if sys.byteorder == "big":
        numbers = array(numbers.typecode, numbers)
        numbers.byteswap()
    return numbers


class Spool:
    """Documents on their way, in files without names: as many as the disk holds."""

    def __init__(self, folder: str) -> None:
        self.lengths = array("q")
        self.counts = array("q")
        """Tokens of each document that count."""
        self._files = contextlib.ExitStack()
        self._tokens = self._files.enter_context(tempfile.TemporaryFile(dir=folder))
        self._counted = self._files.enter_context(tempfile.TemporaryFile(dir=folder))

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def add(self, document: Document) -> None:
        self._tokens.write(_little(document.tokens).tobytes())
        self._counted.write(document.counted)
        self.lengths.append(len(document.tokens))
        # The first token of a document is never predicted.
        self.counts.append(sum(document.counted[1:]))

    def __len__(self) -> int:
        return len(self.lengths)

    def write(self, path: str, chosen: Sequence[int]) -> dict[str, int]:
        """The chosen documents, in that order, as a file; what it has."""
        starts, total = array("q"), 0
        for length in self.lengths:
            starts.append(total)
            total += length
        offsets = array("Q", [0])
        for document in chosen:
            offsets.append(offsets[-1] + self.lengths[document])
        with open(path, "wb") as file:
            file.write(_HEAD.pack(MAGIC, VERSION, 0, len(chosen)))
            file.write(_little(offsets).tobytes())
            for source, size in ((self._tokens, 4), (self._counted, 1)):
                source.flush()
                self._copy(source, file, size, starts, chosen)
            file.flush()
            os.fsync(file.fileno())
        return {"records": len(chosen), "tokens": offsets[-1], "counted": sum(self.counts[one] for one in chosen)}

    def _copy(self, source: BinaryIO, file: BinaryIO, size: int, starts: array, chosen: Sequence[int]) -> None:
        for document in chosen:
            source.seek(starts[document] * size)
            file.write(source.read(self.lengths[document] * size))


def read_documents(path: str) -> list[Document]:
    """All of a file, for tests and a look. UserError where it is unsound."""
    with open(path, "rb") as file:
        raw = file.read()
    if len(raw) < _HEAD.size or _HEAD.unpack_from(raw)[:2] != (MAGIC, VERSION):
        raise UserError(f"'{path}' is no file of documents")
    count = _HEAD.unpack_from(raw)[3]
    at = _HEAD.size + 8 * (count + 1)
    if at > len(raw):
        raise UserError(f"'{path}' ends within its offsets")
    offsets = struct.unpack_from(f"<{count + 1}Q", raw, _HEAD.size)
    if len(raw) != at + 5 * offsets[-1]:
        raise UserError(f"'{path}' has {len(raw)} bytes, and its offsets ask for {at + 5 * offsets[-1]}")
    tokens = _little(array("i", raw[at:at + 4 * offsets[-1]]))
    counted = raw[at + 4 * offsets[-1]:]
    return [Document(0, tokens[a:b], counted[a:b]) for a, b in zip(offsets, offsets[1:])]


@contextlib.contextmanager
def whole_folder(path: str):
    """A folder that is there when all of it is written, or not at all."""
    parent = os.path.dirname(os.path.abspath(path))
    os.makedirs(parent, exist_ok=True)
    made = tempfile.mkdtemp(prefix=os.path.basename(path) + ".", dir=parent)
    try:
        yield made
        os.chmod(made, 0o755)
        try:
            os.rename(made, path)
        except OSError:
            if not os.path.isdir(path):  # else another process was faster, with the same
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
