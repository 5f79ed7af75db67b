"""Batches from Python to the arena: arrays, and anything that can be iterated over."""

from __future__ import annotations

import warnings
from typing import Any, Iterable, Iterator

from ._arrays import (BF16, as_array, fitting, to_bfloat16_bits, view_of)
from ._errors import UserError
from ._library import Batch
from ._plan import Field

Arrays = list  # one for each field


def arrays_of(batch: Any, fields: list[Field]) -> Arrays:
    """A dict by name, or a sequence in the order of the fields; a single array where one is read."""
    names = [field.name for field in fields]
    if isinstance(batch, dict):
        missing = [name for name in names if name not in batch]
        if missing:
            raise UserError(f"a batch has {', '.join(map(str, batch))} and lacks "
                            f"{', '.join(missing)}")
        values = [batch[name] for name in names]
    elif isinstance(batch, (tuple, list)):
        values = list(batch)
    else:
        values = [batch]
    if len(values) != len(fields):
        raise UserError(f"a batch has {len(values)} arrays, and {len(fields)} are read: "
                        f"{', '.join(names)}")
    return [fitting(as_array(value, field.name), field.name, field.code)
            for value, field in zip(values, fields)]


def rows_of(arrays: Arrays, fields: list[Field]) -> int:
    """The rows of a batch. UserError unless all else is of the fields' shapes."""
    rows = set()
    for array, field in zip(arrays, fields):
        shape = list(array.shape)
        if len(shape) == len(field.shape):
            rows.add(shape[field.row_axis])
            shape[field.row_axis] = field.shape[field.row_axis]
        if tuple(shape) != field.shape:
            raise UserError(f"'{field.name}' is {tuple(array.shape)}, and {field.shape} was "
                            f"planned; have batches of that shape, or plan for this one")
    if len(rows) != 1:
        raise UserError("the arrays of a batch have different numbers of rows: "
                        + ", ".join(str(tuple(array.shape)) for array in arrays))
    return rows.pop()


class Writer:
    """Writes rows of arrays into what the library asks to be filled."""

    def __init__(self, fields: list[Field]) -> None:
        self.fields = fields
        # By address, type and shape: programs of one arena (training, evaluation) have different
        # fields at the same address.
        self._views: dict[tuple, Any] = {}

    def write(self, batch: Batch, at: int, arrays: Arrays, first: int, count: int) -> None:
        """Rows [first, first + count) of the arrays to those from `at` on."""
        for index, (array, field) in enumerate(zip(arrays, self.fields)):
            tensor = batch.fields[index]
            where = (tensor.data, tuple(tensor.shape[:tensor.rank]), tensor.dtype)
            view = self._views.get(where)
            if view is None:
                view = self._views[where] = view_of(*where)
            lead = (slice(None),) * field.row_axis
            rows = array[lead + (slice(first, first + count),)]
            if field.code == BF16 and array.dtype != view.dtype:
                rows = to_bfloat16_bits(rows)
            view[lead + (slice(at, at + count),)] = rows


def _length(items: Any) -> int:
    """How many there are; 0: it does not say."""
    try:
        return len(items)
    except TypeError:
        return 0


class Loader:
    """Steps of batches out of an iterable, which is gone through again for every epoch."""

    def __init__(self, batches: Iterable[Any], fields: list[Field], batch: int) -> None:
        self.fields = fields
        self.batch = batch
        self._batches = batches
        self._iterator: Iterator[Any] | None = None
        self._again = False  # an epoch was gone through
        self._drawn = 0      # of this epoch
        self._warned = False

    def epoch(self) -> int:
        """Whole batches of an epoch, where that is known; else 0."""
        if getattr(self._batches, "batch_size", None) is not None:  # of a DataLoader
            for part in ("sampler", "dataset"):
                records = _length(getattr(self._batches, part, None))
                if records:
                    return max(1, records // self.batch)
        return _length(self._batches)

    def skip(self, steps: int) -> None:
        """Goes to where a run stood after so many steps."""
        epoch = self.epoch()
        for _ in range(steps % epoch if epoch else steps):
            self.next()

    def next(self) -> Arrays:
        while True:
            if self._iterator is None:
                self._begin()
            try:
                arrays = arrays_of(next(self._iterator), self.fields)  # type: ignore[arg-type]
            except StopIteration:
                self._end()
                continue
            rows = rows_of(arrays, self.fields)
            if rows == self.batch:
                self._drawn += 1
                return arrays
            self._rest(rows)

    def _begin(self) -> None:
        iterator = iter(self._batches)
        if self._again and iterator is self._batches:
            raise UserError("the batches ended early: an iterator is gone through once; give a "
                            "list or a DataLoader, or ask for fewer steps")
        self._iterator = iterator
        self._drawn = 0

    def _end(self) -> None:
        if self._drawn == 0:
            raise UserError(f"the batches ended early: there is not one of {self.batch} rows; "
                            "have more records, or plan a smaller batch")
        self._iterator = None
        self._again = True

    def _rest(self, rows: int) -> None:
        """Fewer rows at the end of an epoch are left out, as data sets do it; elsewhere they are a
        mistake."""
        more = next(self._iterator, None)  # type: ignore[arg-type]
        if rows > self.batch or more is not None:
            raise UserError(f"a batch has {rows} rows, and {self.batch} were planned; have all "
                            f"batches of {self.batch} rows (batch_size={self.batch}, "
                            "drop_last=True), or plan for this many")
        if not self._warned:
            warnings.warn(f"thimble: the last batch of an epoch has {rows} rows of {self.batch} "
                          "and is left out (drop_last=True says the same)", stacklevel=2)
        self._warned = True
        self._end()


class Tests:
    """Records to test on out of an iterable of batches, of any number of rows."""

    def __init__(self, batches: Iterable[Any], fields: list[Field]) -> None:
        self.fields = fields
        self._batches = batches
        self._iterator: Iterator[Any] = iter(())
        self._arrays: Arrays = []
        self._left = 0
        self._rows = 0

    def fill(self, batch: Batch, writer: Writer) -> None:
        if batch.first == 0:
            self._iterator = iter(self._batches)
            self._left = 0
        filled = 0
        while filled < batch.rows and (self._left > 0 or self._more()):
            count = min(self._left, batch.rows - filled)
            writer.write(batch, filled, self._arrays, self._rows - self._left, count)
            self._left -= count
            filled += count
        if batch.first == 0 and filled == 0:
            raise UserError("there are no records to test on; give a list or a DataLoader, which "
                            "can be gone through again")
        batch.filled = filled

    def _more(self) -> bool:
        arrays = next(self._iterator, None)
        if arrays is None:
            return False
        self._arrays = arrays_of(arrays, self.fields)
        self._rows = self._left = rows_of(self._arrays, self.fields)
        return self._left > 0 or self._more()
