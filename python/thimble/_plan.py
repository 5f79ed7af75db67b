"""Recipes and plans: every byte of a training step, before anything runs."""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import signal
import threading
import warnings
from dataclasses import dataclass
from typing import Any, Iterator

from ._arrays import NAMES
from ._errors import UserError, check
from ._library import Tensor, Watch, c


@dataclass(frozen=True)
class Field:
    """One array of a batch, as a model reads it: all rows of a step."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    row_axis: int
    limit: int
    """Whole numbers are in [0, limit); 0: any number."""
    code: int
    """The dtype's number in the C interface."""


def _setting(value: Any, name: str) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return [_setting(entry, name) for entry in value]
    if isinstance(value, dict):  # lora=dict(rank=16, rs=True) is rank=16,rs
        words = []
        for key, entry in value.items():
            if entry is None or entry is False:
                continue
            entry = "+".join(entry) if isinstance(entry, (list, tuple)) else _setting(entry, name)
            words.append(key if entry is True else f"{key}={entry}")
        return ",".join(words)
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
            raise UserError(f"{name} is {value!r}, which is no text")
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no name for it
    if isinstance(value, (int, float, bool)):
        return value
    if hasattr(value, "item"):  # a number of NumPy's
        return _setting(value.item(), name)
    raise UserError(f"{name} is {value!r}; a setting is text, a number, true or false, a list or a dict")


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given, by the names of fields: `lambda_` is `lambda`."""
    said: dict[str, Any] = {}
    for spelt, value in settings.items():
        name = spelt.rstrip("_")
        if value is None:
            continue
        if name in said:
            raise UserError(f"{name} is given twice, as {name} and {spelt}")
        said[name] = _setting(value, spelt)
    return said


@contextlib.contextmanager
def _interrupts() -> Iterator[list]:
    """Ctrl-C while the library looks for a plan: noted, so that the search ends, and then handled as ever."""
    seen: list = []
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield seen
        return
    signal.signal(signal.SIGINT, lambda *signalled: seen.append(signalled))
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, usual)
        if seen:
            usual(*seen[0])


@contextlib.contextmanager
def _recipe(model: str | os.PathLike[str], said: dict[str, Any]) -> Iterator[ctypes.c_void_p]:
    recipe = ctypes.c_void_p()
    check(c.recipe_new(os.fspath(model).encode(), ctypes.byref(recipe)))
    try:
        check(c.recipe_read(recipe, json.dumps(said).encode()))
        yield recipe
    finally:
        c.recipe_free(recipe)


class Plan:
    """A training step with an address for every byte, checked. See :func:`thimble.plan`."""

    process: dict[str, int] | None = None
    """Of a module (`thimble.torch.plan`): what a run does to the process."""

    def __init__(self, model: str | os.PathLike[str], settings: dict[str, Any], with_data: bool,
                 goes_on: str | os.PathLike[str] | None = None) -> None:
        self._handle = ctypes.c_void_p()
        said = _settings(settings)
        with _recipe(model, said) as recipe, _interrupts() as seen:
            if goes_on is not None:
                check(c.recipe_resume(recipe, os.fspath(goes_on).encode()))
            watch = Watch(lambda _: len(seen))
            check(c.plan_new_watched(recipe, int(with_data), watch, None, ctypes.byref(self._handle)))
        self.with_data = with_data or "data" in said
        for note in c.plan_notes(self._handle).decode().splitlines():
            warnings.warn(f"thimble: {note}", stacklevel=3)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            c.plan_free(self._handle)
            self._handle = None

    @property
    def bytes(self) -> int:
        """Of the arena: all that a step takes."""
        return c.plan_bytes(self._handle)

    @property
    def step_ms(self) -> float:
        """Predicted milliseconds of a step."""
        return c.plan_step_ms(self._handle)

    @property
    def tier(self) -> str:
        """The plan's numerics tier: "exact", "equivalent" or "approximate"."""
        return c.plan_tier(self._handle).decode()

    @property
    def summary(self) -> dict[str, Any]:
        """All that `thimble plan --json` says."""
        return json.loads(c.plan_json(self._handle))

    @property
    def recipe(self) -> dict[str, Any]:
        """The recipe with every default filled in."""
        return json.loads(c.plan_recipe(self._handle))

    @property
    def fields(self) -> list[Field]:
        """The model's inputs: the arrays of a batch, in the order of a tuple's."""
        fields = []
        for index in range(c.plan_field_count(self._handle)):
            tensor = Tensor()
            check(c.plan_field(self._handle, index, ctypes.byref(tensor)))
            fields.append(Field(tensor.name.decode(), NAMES[tensor.dtype],
                                tuple(tensor.shape[:tensor.rank]), tensor.row_axis, tensor.limit,
                                tensor.dtype))
        return fields

    @property
    def batch(self) -> int:
        """Rows of a step."""
        return int(self.summary["batch"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan, for :func:`thimble.verify`."""
        check(c.plan_save(self._handle, os.fspath(path).encode()))

    def __repr__(self) -> str:
        return (f"<thimble.Plan of {self.summary['model']}: {self.bytes} bytes, "
                f"about {self.step_ms:.1f} ms a step, {self.tier}>")


def plan(model: str | os.PathLike[str], *, memory: str | int | None = None,
         data: str | None = None, **recipe: Any) -> Plan:
    """Plans a training step; nothing runs.

    model    a name from `thimble list models`, a network's file, or a recipe (.toml)
    memory   the budget: "100MiB", or bytes
    data     a data set's name; None: arrays of your own
    recipe   any flag of the command line by its name: batch=100, optimizer="adam", lr=1e-3

    Raises DoesNotFit, which says how many bytes would do, and UserError.
    """
    return Plan(model, {"memory": memory, "data": data, **recipe}, with_data=False)


def verify(path: str | os.PathLike[str]) -> None:
    """Replays a saved plan, byte range by byte range. Raises UserError where it is unsound."""
    check(c.plan_verify(os.fspath(path).encode()))
