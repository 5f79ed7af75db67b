"""Batches from Python to the arena: arrays, and anything that can be iterated over."""

from __future__ import annotations

import warnings
from typing import Any, Iterable, Iterator, Mapping

from ._arrays import (BF16, as_array, fitting, from_bfloat16_bits, need_numpy, to_bfloat16_bits,
                      view_of)
from ._errors import UserError
from ._library import Batch
from ._plan import Field

Arrays = list  # one for each field


def arrays_of(batch: Any, fields: list[Field]) -> Arrays:
    """A dict by name, or a sequence in the order of the fields; a single array where one is read."""
    names = [field.name for field in fields]
    if isinstance(batch, Mapping):
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

    def __init__(self, fields: list[Field], written: list[int] | None = None) -> None:
        """`written`: which of the fields the arrays are of; None: all."""
        self.fields = fields
        self._written = range(len(fields)) if written is None else written
        # By address, type and shape: programs of one arena (training, evaluation) have different
        # fields at the same address.
        self._views: dict[tuple, Any] = {}

    def write(self, batch: Batch, at: int, arrays: Arrays, first: int, count: int) -> None:
        """Rows [first, first + count) of the arrays to those from `at` on."""
        for index, array in zip(self._written, arrays):
            field = self.fields[index]
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


class Records:
    """Batches of a data set of single records (of Hugging Face's `datasets`), in order: as often as wanted."""

    drop_last = False

    def __init__(self, dataset: Any, batch: int) -> None:
        self.dataset, self.batch_size = dataset, batch

    def __iter__(self) -> Iterator[Any]:
        return iter(self.dataset.with_format("torch").iter(batch_size=self.batch_size))

    def __len__(self) -> int:
        return -(-len(self.dataset) // self.batch_size)


def batches_of(data: Any, batch: int | None) -> Any:
    """The data as batches: data sets of Hugging Face's have records, and say so by what they can do."""
    if not (hasattr(data, "with_format") and hasattr(data, "iter") and hasattr(data, "column_names")):
        return data
    if not batch:
        raise UserError("a data set of single records needs the size of a batch: batch=32, or a DataLoader of it")
    return Records(data, int(batch))


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
        self._arrays = self._arrays_of(arrays)
        self._rows = self._left = rows_of(self._arrays, self.fields)
        return self._left > 0 or self._more()

    def _arrays_of(self, batch: Any) -> Arrays:
        return arrays_of(batch, self.fields)


class Predicted(Tests):
    """Results of records, which may have more fields than a result depends on."""

    def __init__(self, batches: Iterable[Any], fields: list[Field]) -> None:
        super().__init__(batches, fields)
        self._all = fields
        self._parts: dict[str, list] = {}
        self._records = 0  # of the batch at hand
        self._rows_read = 0
        self._rest: list | None = None  # records of a batch that is not full
        self._again = False  # they come a second time, beside others

    def fill(self, batch: Batch) -> None:  # type: ignore[override]
        read = [index for index in range(batch.field_count) if batch.fields[index].data]
        self._again = self._rest is not None
        if self._again:  # what their results are beside zeros
            self._put(batch, read, None)
            self._rest = None
            return
        self.fields = [self._all[index] for index in read]
        super().fill(batch, Writer(self._all, read))
        self._records, self._rows_read = batch.filled, batch.rows
        if 0 < batch.filled < batch.rows:
            self._put(batch, read, batch.filled)

    def _put(self, batch: Batch, read: list[int], filled: int | None) -> None:
        """The last record again, in place of those that are not there; `filled` None: zeros, behind those kept."""
        kept = []
        for place, index in enumerate(read):
            tensor = batch.fields[index]
            view = view_of(tensor.data, tuple(tensor.shape[:tensor.rank]), tensor.dtype)
            lead = (slice(None),) * tensor.row_axis
            records, behind = (lead + (part,) for part in (slice(None, self._records), slice(self._records, None)))
            if filled is None:
                view[records], view[behind] = self._rest[place], 0  # type: ignore[index]
            else:
                kept.append(view[records].copy())
                view[behind] = view[lead + (slice(filled - 1, filled),)]
        self._rest = kept
        batch.filled = batch.rows

    def take(self, output: Any, _: int) -> None:
        tensor = output.contents
        rows = view_of(tensor.data, tuple(tensor.shape[:tensor.rank]), tensor.dtype)[:self._records]
        parts = self._parts.setdefault(tensor.name.decode(), [])
        made = from_bfloat16_bits(rows) if tensor.dtype == BF16 else rows.copy()
        if not self._again:
            parts.append(made)
        elif parts[-1].tobytes() != made.tobytes():
            raise UserError(f"predictions take {self._rows_read} rows at a time, since a row's results depend on the "
                            f"others of its batch, and {self._records} are left; have more")

    def results(self) -> dict[str, Any]:
        return {name: need_numpy().concatenate(parts) for name, parts in self._parts.items()}

    def _arrays_of(self, batch: Any) -> Arrays:
        if isinstance(batch, Mapping):
            batch = {name: value for name, value in batch.items() if any(f.name == name for f in self.fields)}
        elif isinstance(batch, (tuple, list)) and len(batch) == len(self._all):
            batch = [value for value, field in zip(batch, self._all) if field in self.fields]
        return arrays_of(batch, self.fields)
