"""Functions that the library calls during a run. They hold no reference to the run, so neither keeps the other
alive."""

from __future__ import annotations

import ctypes
from typing import Any, Callable

from . import _library as lib
from ._arrays import need_numpy
from ._data import Loader, Tests, Writer, arrays_of, rows_of
from ._errors import UserError
from ._figures import Progress, progress_of
from ._library import c
from ._plan import Field


class Callbacks:
    def __init__(self, fields: list[Field], batch: int, data: Any, test: Any,
                 rate: Callable[[int, float], float] | None,
                 give: Callable[[str, int, int, int], None] | None = None) -> None:
        self.fields = fields
        self.batch = batch
        self.failed: BaseException | None = None
        self.on_step: Callable[[Progress], Any] | None = None
        self._given: Any = None             # a batch for the next step
        self._current: dict[int, Any] = {}  # by step: this one, and one fetched ahead
        self._writer = Writer(fields)
        self._batch_of = data if callable(data) and not hasattr(data, "__iter__") else None
        self._loader = None
        if data is not None and self._batch_of is None:
            self._loader = Loader(data, fields, batch)
        self._tests = None if test is None else Tests(test, fields)
        self._rate = rate
        self._give = give
        self.show = lib.Show(self._show)
        self._options: lib.RunOptions | None = None

    def options(self, own_data: bool) -> lib.RunOptions:
        """The callbacks as the library's options. `own_data`: for batches, too."""
        options = lib.RunOptions(size=ctypes.sizeof(lib.RunOptions))
        if own_data:
            need_numpy()
            options.fill = lib.Fill(self._fill)
            options.prepare = lib.Prepare(self._prepare)
            options.steps_per_epoch = self._loader.epoch() if self._loader else 0
            options.tests = int(self._tests is not None)
        if self._rate is not None:
            options.rate = lib.Rate(self._set_rate)
        if self._give is not None:
            options.give = lib.Give(self._give_bytes)
        self._options = options  # lives as long as this
        return options

    def given(self) -> None:
        """First values are there; whoever gave them is not called again."""
        self._give = None

    def give(self, batch: Any) -> None:
        """The batch of the next step; None: the run's own data have it."""
        self._given = None if batch is None else self._whole(batch, "a batch")

    def skip(self, steps: int) -> None:
        if self._loader is not None:
            self._loader.skip(steps)

    def guard(self, function: Callable[..., Any], *arguments: Any) -> int:
        """No exception may pass through the library: it waits until the call is over."""
        try:
            function(*arguments)
            return 0
        except BaseException as error:  # KeyboardInterrupt, too
            self.failed = error
            c.set_error(f"{type(error).__name__}: {error}".encode(errors="replace"))
            return 1

    def _whole(self, batch: Any, what: str) -> list:
        arrays = arrays_of(batch, self.fields)
        rows = rows_of(arrays, self.fields)
        if rows != self.batch:
            raise UserError(f"{what} has {rows} rows, and {self.batch} were planned; hand over "
                            f"{self.batch}, or plan for this many")
        return arrays

    def _prepare(self, _: Any, step: int) -> int:
        return self.guard(self._fetch, step)

    def _fetch(self, step: int) -> None:
        if self._given is not None:
            arrays, self._given = self._given, None
        elif self._loader is not None:
            arrays = self._loader.next()
        elif self._batch_of is not None:
            arrays = self._whole(self._batch_of(step), f"the batch of step {step}")
        else:
            raise UserError("the run has no data: hand a batch to step(), or give it an iterable")
        for old in [known for known in self._current if known < step - 1]:
            del self._current[old]
        self._current[step] = arrays

    def _fill(self, _: Any, batch: Any) -> int:
        return self.guard(self._fill_rows, batch.contents)

    def _fill_rows(self, batch: lib.Batch) -> None:
        if batch.test:
            self._tests.fill(batch, self._writer)  # type: ignore[union-attr]
        else:
            arrays = self._current[batch.step]
            self._writer.write(batch, 0, arrays, batch.first, batch.rows)

    def _give_bytes(self, _: Any, name: bytes, first: int, size: int, to: int) -> int:
        return self.guard(self._give, name.decode(), first, size, to)  # type: ignore[arg-type]

    def _set_rate(self, _: Any, step: int, rate: Any) -> int:
        def ask() -> None:
            rate[0] = float(self._rate(step, rate[0]))  # type: ignore[misc]
        return self.guard(ask)

    def _show(self, _: Any, progress: Any) -> int:
        stop = False

        def show() -> None:
            nonlocal stop
            if self.on_step is not None:
                stop = self.on_step(progress_of(progress.contents)) is True
        return 1 if self.guard(show) != 0 or stop else 0
