"""Thimble trains neural networks inside a memory budget that you choose, byte for byte.

    import thimble

    plan = thimble.plan("wrn-28-2", batch=100, memory="60MiB")     # nothing runs
    print(plan.bytes, plan.step_ms)
    run = thimble.train("wrn-10-1", data="digits", epochs=3, memory="4MiB", out="runs/digits")
    print(run.result["test_accuracy"])
    run.weights()                                                  # NumPy arrays by name

Batches of your own: an iterable of NumPy, PyTorch or DLPack arrays (any DataLoader) as `data`, or
`Run.step(batch)` in a loop of your own. See docs/python.md.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._errors import Bug, DeviceError, DoesNotFit, Error, OutOfMemory, Stopped, UserError
from ._figures import Figures, Progress
from ._fits import Fits, fits
from ._generator import Generator
from ._library import c as _c
from ._plan import Field, Plan, plan, verify
from ._run import Run, train
from .finetune import FineTuned, finetune

__version__: str = _c.version().decode()

__all__ = ["Bug", "DeviceError", "DoesNotFit", "Error", "Field", "Figures", "FineTuned", "Fits", "Generator",
           "OutOfMemory", "Plan", "Progress", "Run", "Stopped", "UserError", "finetune", "fits", "plan", "train",
           "verify", "__version__"]


def __getattr__(name: str) -> Any:
    """thimble.torch, which needs PyTorch, when it is asked for."""
    if name == "torch":
        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module 'thimble' has no attribute '{name}'")
