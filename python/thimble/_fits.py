"""Does it fit? Bytes and times of a training step, and the largest of its kind within a budget, from a configuration."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import tempfile
from collections import abc
from dataclasses import dataclass
from typing import Any, Iterator

from ._errors import DoesNotFit, UserError, check
from ._library import Watch, c
from ._plan import Plan, _interrupts, _recipe, _settings


@dataclass(frozen=True)
class Fits:
    """The answer of :func:`thimble.fits`; true where a step fits."""

    fits: bool
    arena_bytes: int
    """Of the plan; where nothing fits, of the smallest plan there is."""
    process_bytes: int | None
    """Of the whole process, at most; None: on a GPU, or nothing fits."""
    step_seconds: float | None
    """Predicted; None: nothing fits."""
    tokens_per_second: float | None
    longest_length: int | None
    """Tokens of a row that still fit with this batch; None: there is no budget, or rows have no length."""
    largest_batch: int | None
    """Rows at once that still fit with this length; None: there is no budget."""
    tier: str
    """What the plan does to results: "exact", "equivalent" or "approximate"; "" where nothing fits."""
    why: str
    """The refusal; "" where it fits."""

    def __bool__(self) -> bool:
        return self.fits


@contextlib.contextmanager
def _named(model: Any) -> Iterator[str | os.PathLike[str]]:
    """A model by its name; the folder of a configuration, meanwhile."""
    config = model.to_dict() if hasattr(model, "to_dict") else model  # a configuration of transformers
    if not isinstance(config, abc.Mapping):
        yield model
        return
    with tempfile.TemporaryDirectory(prefix="thimble-") as folder:
        try:
            text = json.dumps(dict(config))
        except (TypeError, ValueError) as error:
            raise UserError(f"the configuration is no JSON: {error}") from error
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            file.write(text)
        yield folder


def _largest(model: str | os.PathLike[str], said: dict[str, Any], what: str) -> int | None:
    """None: there is no such thing."""
    value = ctypes.c_int64()
    try:
        with _recipe(model, said) as recipe, _interrupts() as seen:
            watch = Watch(lambda _: len(seen))
            check(c.recipe_largest(recipe, what.encode(), watch, None, ctypes.byref(value), None))
    except UserError:  # rows have no length
        return None
    return value.value


def fits(model: Any, *, memory: str | int | None = None, **recipe: Any) -> Fits:
    """Whether a training step fits a budget, from a configuration alone; nothing runs, and no weights are read.

    model    a folder with config.json, or a configuration as a dict or of transformers; or any name of a model
    memory   the budget: "4GiB", or bytes; None: everything is kept, whatever it takes
    recipe   as of thimble.plan: lora=dict(rank=16), frozen="nf4", precision="bf16", length=1024, batch=4
    """
    said = _settings({"memory": memory, **recipe})
    with _named(model) as name:
        largest: dict[str, int | None] = {"length": None, "batch": None}
        if memory is not None:
            largest = {what: _largest(name, said, what) for what in largest}
        try:
            plan = Plan(name, said, with_data=False)
        except DoesNotFit as error:
            return Fits(False, error.needed, None, None, None, largest["length"], largest["batch"], "", str(error))
        summary = plan.summary
        return Fits(True, plan.bytes, summary.get("process_bytes"), plan.step_ms / 1e3,
                    summary.get("tokens_per_second"), largest["length"], largest["batch"], plan.tier, "")
