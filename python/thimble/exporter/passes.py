"""Whether a forward pass is otherwise for what passes before it have left in the module, which an export fixes."""

from __future__ import annotations

import inspect

import torch

from . import eager
from .values import CannotExport, is_callers

_CLOSE = 1e-6  # of a loss: kernels that add up in another order


class Attributes:
    """Of the parts of a module, as they are before a pass."""

    def __init__(self, model):
        self._parts = [(name, part, dict(part.__dict__)) for name, part in model.named_modules()]

    def changed(self) -> str:
        """The first that a pass has left otherwise; "" if there is none."""
        for path, part, before in self._parts:
            for name, value in part.__dict__.items():
                if name in before and _same(before[name], value):
                    continue
                of = f"'{path}'" if path else "the module"
                return f"; {of} ({type(part).__name__}{_line_of(part)}) has another '{name}' by then"
        return ""


def check_passes(wrapped, tensors, first: float, attributes: Attributes) -> None:
    """CannotExport where the same rows give another loss a second time. REQUIRES: one pass, with that first loss."""
    try:
        with eager.as_exported(), torch.no_grad():
            second = float(wrapped(*tensors)[0].detach().sum())
    except Exception as error:  # of many kinds, all of them about the module
        raise CannotExport(
            f"a second forward pass fails ({type(error).__name__}: {str(error)[:200]}){attributes.changed()}"
        ) from error
    if abs(second - first) > _CLOSE * max(1.0, abs(first)):
        raise CannotExport(
            f"the loss of the same rows is {first:.7g} at first and {second:.7g} then, for what passes before it have "
            f"left{attributes.changed()}: an export has the numbers of the first pass in all steps; make them part of "
            "the batch"
        )


def _same(before, now) -> bool:
    return before is now or (type(before) is type(now) and isinstance(now, (int, float, str)) and before == now)


def _line_of(part) -> str:
    function = inspect.unwrap(getattr(type(part), "forward", None) or type(part))
    try:
        path, line = inspect.getsourcefile(function), inspect.getsourcelines(function)[1]
    except (OSError, TypeError):
        return ""
    return f", {path.rsplit('/', 1)[-1]}:{line}" if path and is_callers(path) else ""
