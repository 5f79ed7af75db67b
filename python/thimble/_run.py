"""Runs: a plan in its arena, fed, stepped, tested and saved."""

from __future__ import annotations

import ctypes
import json
import math
import os
from typing import Any, Callable, Iterable, Iterator, Mapping

from . import _library as lib
from ._arrays import (BF16, F32, as_array, fitting, from_bfloat16_bits, need_numpy, numpy_dtype,
                      to_bfloat16_bits, view_of)
from ._callbacks import Callbacks
from ._data import Predicted, Tests, Writer
from ._errors import UserError, check
from ._figures import Figures, Progress, figures_of
from ._library import c
from ._plan import Plan

Batches = Iterable[Any]


def _as_stored(value: Any, name: str, tensor: lib.Tensor, dtype: int) -> Any:
    """An array whose bytes are those of the tensor's shape, in that type."""
    numpy = need_numpy()
    array = fitting(as_array(value, name), name, dtype)
    shape = tuple(tensor.shape[:tensor.rank])
    if tuple(array.shape) != shape:
        raise UserError(f"'{name}' is {tuple(array.shape)}, and the model's is {shape}")
    if dtype == BF16 and array.dtype == numpy.float32:
        array = to_bfloat16_bits(array)
    return numpy.ascontiguousarray(array, numpy_dtype(dtype))


class Run:
    """A plan at work.

    data       None: the plan's data set, or batches handed to :meth:`step`; else an iterable of
               batches (any DataLoader), or a function of the step's number that returns one
    test       likewise, an iterable of batches to test on
    out        folder of checkpoints
    resume     True: from the latest in `out`; "auto": likewise, if there is one
    overwrite  True: start again where `out` has a checkpoint
    weights    a safetensors file to start from
    rate       a function (step, scheduled) -> learning rate
    optimizer_steps  made before, where load_state() sets what they left
    give       first values of a network from outside, in place of its file's: called with a tensor's name, its
               first byte, how many of them and the address that they go to, tensor by tensor

    A batch is a dict of arrays by field, or a tuple of them in the order of `plan.fields`: NumPy's,
    PyTorch's, or whatever speaks DLPack. Rows go straight into the step's own memory.
    """

    def __init__(self, plan: Plan, data: Batches | Callable[[int], Any] | None = None, *,
                 test: Batches | None = None, out: str | os.PathLike[str] | None = None,
                 resume: bool | str = False, overwrite: bool = False,
                 weights: str | os.PathLike[str] | None = None,
                 rate: Callable[[int, float], float] | None = None,
                 optimizer_steps: int = 0,
                 give: Callable[[str, int, int, int], None] | None = None) -> None:
        self._handle = ctypes.c_void_p()
        if resume not in (False, True, "auto"):
            raise UserError(f"resume is True, False or 'auto', not {resume!r}")
        own = data is not None or not plan.with_data
        if test is not None and not own:
            raise UserError("the plan's data set has tests of its own; leave `test` out")
        self.plan = plan
        self._fields = plan.fields
        self._callbacks = Callbacks(self._fields, plan.batch, data, test, rate, give)
        self._room = lib.Figures()
        self.result: dict[str, Any] = {}
        """What `thimble train --json` says, after :meth:`train`."""
        options = self._callbacks.options(own)
        options.out = os.fspath(out).encode() if out is not None else None
        options.resume = {False: lib.START, True: lib.RESUME, "auto": lib.RESUME_OR_START}[resume]
        options.overwrite = int(overwrite)
        options.weights = os.fspath(weights).encode() if weights is not None else None
        options.optimizer_steps = optimizer_steps
        self._saves = out is not None
        self._takes_batches = own
        self._check(c.run_new(plan._handle, ctypes.byref(options), ctypes.byref(self._handle)))
        self._callbacks.given()
        self._callbacks.skip(self.steps)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Gives the memory back; views of weights are not to be used any more."""
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            c.run_free(handle)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- Training --------------------------------------------------------------------------------

    def step(self, batch: Any = None) -> Figures:
        """One step, on `batch` or on the run's own data. Its figures are its own."""
        if batch is not None and not self._takes_batches:
            raise UserError("the run reads the plan's data set; step() takes no batch then")
        self._callbacks.give(batch)
        self._check(c.run_step(self._open(), ctypes.byref(self._room)))
        return figures_of(self._room)

    def train(self, progress: Callable[[Progress], Any] | None = None) -> dict[str, Any]:
        """All steps that are left, with tests and checkpoints as the recipe has them.

        `progress` is called after every step; where it returns True, the run stops. Ctrl-C leaves a
        checkpoint, if there is a folder, and raises KeyboardInterrupt. An exception of the data
        or of `progress` is raised again as it is.
        """
        callbacks = self._callbacks
        callbacks.on_step = progress
        code = c.run_train(self._open(), callbacks.show, None)
        interrupted = isinstance(callbacks.failed, KeyboardInterrupt)
        if code == lib.CALLBACK and interrupted and self._saves and c.run_done(self._handle) > 0:
            c.run_save(self._handle, None)  # between two steps; what was raised counts for more
        if code in (lib.OK, lib.STOPPED):
            self.result = json.loads(c.run_result(self._handle))
        self._check(code)
        return self.result

    def evaluate(self, test: Batches | None = None) -> Figures:
        """Tests on the run's own records, or on batches of any number of rows."""
        fill = lib.Fill()
        if test is not None:
            need_numpy()
            tests, writer = Tests(test, self._fields), Writer(self._fields)
            guard = self._callbacks.guard
            fill = lib.Fill(lambda _, batch: guard(tests.fill, batch.contents, writer))
        figures = lib.Figures()
        self._check(c.run_evaluate(self._open(), fill, None, ctypes.byref(figures)))
        return figures_of(figures)

    def predict(self, data: Any) -> dict[str, Any]:
        """Results of the net in evaluation, by their names (logits): a row for each record, as NumPy arrays.

        `data` is a batch of any number of rows (a dict, a tuple, an array), or an iterable of such. Labels are left
        out, or are there and say nothing.
        """
        need_numpy()
        one = isinstance(data, (Mapping, tuple)) or hasattr(data, "shape")
        records = Predicted([data] if one else data, self._fields)
        guard = self._callbacks.guard
        fill = lib.Fill(lambda _, batch: guard(records.fill, batch.contents))
        take = lib.Take(lambda _, *result: guard(records.take, *result))
        self._check(c.run_predict(self._open(), fill, take, None))
        return records.results()

    def rest(self) -> None:
        """Between steps: gives back memory that holds nothing from one to the next, until it is used again."""
        check(c.run_rest(self._open()))

    def set_rate(self, rate: float | None) -> None:
        """The learning rate from the next step on; None: the schedule's again."""
        check(c.run_set_rate(self._open(), -1.0 if rate is None else rate))

    def stop(self) -> None:
        """Has :meth:`train` end after this step, with a checkpoint. From any thread."""
        if self._handle:
            c.run_stop(self._handle)

    @property
    def steps(self) -> int:
        """Done so far."""
        return c.run_done(self._open())

    # ---- Weights and checkpoints -----------------------------------------------------------------

    def save(self) -> str:
        """Saves a checkpoint now; its folder."""
        folder = ctypes.c_char_p()
        check(c.run_save(self._open(), ctypes.byref(folder)))
        return os.fsdecode(folder.value)  # type: ignore[arg-type]

    def export(self, path: str | os.PathLike[str]) -> None:
        """The weights as one safetensors file, for other programs; or, of a net that came as an ONNX file, that file for
        inference with the weights in it (NAME.onnx)."""
        check(c.run_export(self._open(), os.fspath(path).encode()))

    def weights(self, copy: bool = True) -> dict[str, Any]:
        """Weights and running statistics by name, as NumPy arrays.

        copy=False: where they lie, if the host can reach them: writing there changes the run, and they
        are good until it is closed. torch.from_dlpack() takes them as they are. bfloat16, which NumPy
        has not, comes as float32.
        """
        need_numpy()
        arrays = {}
        for index in range(c.run_weight_count(self._open())):
            tensor = lib.Tensor()
            check(c.run_weight(self._handle, index, ctypes.byref(tensor)))
            shape = tuple(tensor.shape[:tensor.rank])
            if tensor.data and not copy and tensor.dtype != BF16:
                array = view_of(tensor.data, shape, tensor.dtype, self)
            else:
                array = self._copy_of(index, tensor)
            arrays[tensor.name.decode()] = array
        return arrays

    def weight(self, name: str) -> Any:
        """One of them, as a copy."""
        return self._copy_of(*self._find(name))

    def places(self) -> Iterator[tuple[str, int, Any]]:
        """Of each weight that the host can reach, its name, the number of its type, and where it lies, as an array
        whose axes may be in any order there: as weights(copy=False) has them, and those of convolutions, too."""
        numpy = need_numpy()
        data, strides = ctypes.c_void_p(), (ctypes.c_int64 * lib.MOST_DIMS)()
        for index in range(c.run_weight_count(self._open())):
            tensor = lib.Tensor()
            check(c.run_weight(self._handle, index, ctypes.byref(tensor)))
            check(c.run_map_weight(self._handle, index, ctypes.byref(data), strides))
            if not data.value:
                continue
            shape = tuple(tensor.shape[:tensor.rank])
            flat = view_of(data.value, (math.prod(shape),), tensor.dtype, self)
            there = [step * flat.itemsize for step in strides[:tensor.rank]]
            yield (tensor.name.decode(), tensor.dtype,
                   numpy.lib.stride_tricks.as_strided(flat, shape, there))

    def _copy_of(self, index: int, tensor: lib.Tensor) -> Any:
        numpy = need_numpy()
        array = numpy.empty(tuple(tensor.shape[:tensor.rank]), numpy_dtype(tensor.dtype))
        check(c.run_read_weight(self._handle, index, array.ctypes.data, array.nbytes))
        return from_bfloat16_bits(array) if tensor.dtype == BF16 else array

    def load(self, weights: Mapping[str, Any]) -> None:
        """Sets the weights and statistics that are named; shapes must be the model's."""
        for name, value in weights.items():
            index, tensor = self._find(name)
            array = _as_stored(value, name, tensor, tensor.dtype)
            check(c.run_write_weight(self._handle, index, array.ctypes.data, array.nbytes))

    def state(self, name: str) -> Iterator[tuple[str, Any]]:
        """The optimizer state of that name, weight by weight, as float32:
        "momentum" of sgd and nesterov (after a first step: its gradient), "first_moment" and
        "second_moment" of adam and adamw."""
        numpy = need_numpy()
        for index in range(c.run_weight_count(self._open())):
            if not c.run_has_state(self._handle, index, name.encode()):
                continue
            tensor = lib.Tensor()
            check(c.run_weight(self._handle, index, ctypes.byref(tensor)))
            array = numpy.empty(tuple(tensor.shape[:tensor.rank]), numpy.float32)
            check(c.run_read_state(self._handle, index, name.encode(), array.ctypes.data,
                                   array.nbytes))
            yield tensor.name.decode(), array

    def load_state(self, name: str, values: Mapping[str, Any]) -> None:
        """Sets what the optimizer keeps under that name of the weights that are named."""
        for weight, value in values.items():
            index, tensor = self._find(weight)
            array = _as_stored(value, f"{weight}.{name}", tensor, F32)
            check(c.run_write_state(self._handle, index, name.encode(), array.ctypes.data,
                                    array.nbytes))

    def _find(self, name: str) -> tuple[int, lib.Tensor]:
        index, tensor = ctypes.c_int32(), lib.Tensor()
        check(c.run_find_weight(self._open(), name.encode(), ctypes.byref(index)))
        check(c.run_weight(self._handle, index, ctypes.byref(tensor)))
        return index.value, tensor

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise UserError("the run is closed")
        self._callbacks.failed = None
        return self._handle

    def _check(self, code: int) -> None:
        failed, self._callbacks.failed = self._callbacks.failed, None
        if failed is not None and code != lib.OK:
            raise failed
        check(code)


def train(model: str | os.PathLike[str] | Plan,
          data: str | Batches | Callable[[int], Any] | None = None, *,
          memory: str | int | None = None, test: Batches | None = None,
          out: str | os.PathLike[str] | None = None, resume: bool | str = False,
          overwrite: bool = False, weights: str | os.PathLike[str] | None = None,
          rate: Callable[[int, float], float] | None = None,
          progress: Callable[[Progress], Any] | None = None, **recipe: Any) -> Run:
    """Plans a model inside a budget and trains it; the run, whose `result` says what came of it.

    data     a data set's name, an iterable of batches (any DataLoader), or a function of the step's
             number that returns one; None: the model's usual data set
    recipe   any flag of the command line by its name: batch=100, epochs=3, optimizer="adam"

    The rest is as of :func:`thimble.plan`, :class:`Run` and :meth:`Run.train`.
    """
    if isinstance(model, Plan):
        if memory is not None or recipe:
            raise UserError("a plan has its recipe already; say memory and settings to plan()")
        planned, batches = model, data
        if isinstance(data, str):
            raise UserError("a plan has its data set already; name it to plan()")
    else:
        named = data is None or isinstance(data, str)
        settings = {"memory": memory, "data": data if named else None, **recipe}
        planned = Plan(model, settings, with_data=named, goes_on=out if resume else None)
        batches = None if named else data
    run = Run(planned, batches, test=test, out=out, resume=resume,  # type: ignore[arg-type]
              overwrite=overwrite, weights=weights, rate=rate)
    run.train(progress)
    return run
