"""Functions that state a gradient of their own (torch.autograd.Function), which torch.export would lose: it
traces what they compute alone."""

from __future__ import annotations

import contextlib
import sys

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .values import CannotExport, is_callers

TRIALS = 3  # draws of numbers that gradients are compared on


@contextlib.contextmanager
def own_gradients():
    """Such functions are traced with their gradient while it is open, or refused. Callers may hold on to `apply`, which
    calls the `forward` that it finds."""
    own = [(cls, cls.__dict__["forward"]) for cls in set(_callers(torch.autograd.Function)) if "forward" in cls.__dict__]
    for cls, _ in own:
        cls.forward = staticmethod(_Traced(cls, cls.forward))
    try:
        yield
    finally:
        for cls, forward in own:
            cls.forward = forward


def _callers(base):
    for cls in base.__subclasses__():
        if cls.__module__.partition(".")[0] != "torch":
            yield cls
        yield from _callers(cls)


class _Traced:
    """The computation of an autograd function, with its gradient."""

    def __init__(self, cls, forward):
        self.cls, self.forward = cls, forward
        self.apart = cls.setup_context is not torch.autograd.Function.setup_context

    def __call__(self, *args):
        args = args if self.apart else args[1:]
        kind = self._kind(args)
        if kind == "other":
            raise CannotExport(
                f"torch.autograd.Function '{self.cls.__name__}'{_line()} has a gradient of its own that mixes places; "
                "write it as x + (f(x) - x).detach(), or with ops that have that gradient"
            )
        context, made = self._run(args)
        if kind == "derived":
            return made
        slopes = _each(self.cls.backward(context, torch.ones_like(made)), args)
        made = made.detach()
        for x, slope in zip(args, slopes):
            if slope is not None:
                made = made + (x - x.detach()) * slope.detach()  # which adds nothing but the gradient
        return made

    def _run(self, args):
        context = _Context(args)
        if not self.apart:
            return context, self.forward(context, *args)
        made = self.forward(*args)
        self.cls.setup_context(context, args, made)
        return context, made

    def _kind(self, args) -> str:
        """derived: the gradient is that of what it computes; of elements: every number of it is one number of the
        result's, times a slope; other. Found out on random numbers."""
        derived = of_elements = True
        with torch._C.DisableTorchFunction(), _disable_current_modes(), torch.enable_grad():
            generator = torch.Generator().manual_seed(0)
            for trial in range(TRIALS):
                given = [_random(x, generator, 4.0**trial) for x in args]
                context, made = self._run(given)
                if not isinstance(made, torch.Tensor):
                    raise CannotExport(
                        f"torch.autograd.Function '{self.cls.__name__}'{_line()} gives several results; one can be"
                    )
                upstream = torch.randn(made.shape, generator=generator)
                own = _each(self.cls.backward(context, upstream), given)
                slopes = _each(self.cls.backward(context, torch.ones_like(made)), given)
                derived = derived and _same(own, self._derived(given, upstream))
                of_elements = of_elements and _same(
                    own, [g if g is None or g.shape != made.shape else upstream * g for g in slopes], made.shape
                )
        return "derived" if derived else "of elements" if of_elements else "other"

    def _derived(self, args, upstream) -> list:
        leaves = [x.detach().requires_grad_() if _differs(x) else x for x in args]
        made = self._run(leaves)[1]
        if not made.requires_grad:
            return [torch.zeros(x.shape) if _differs(x) else None for x in args]
        wanted = [x for x in leaves if _differs(x)]
        found = iter(torch.autograd.grad(made, wanted, upstream, allow_unused=True))
        return [next(found) if _differs(x) else None for x in leaves]


def _line() -> str:
    frame = sys._getframe()
    while frame is not None and not is_callers(frame.f_code.co_filename):
        frame = frame.f_back
    return f" ({frame.f_code.co_filename.rsplit('/', 1)[-1]}:{frame.f_lineno})" if frame is not None else ""


class _Context:
    """The context that forward and backward share."""

    def __init__(self, args):
        self.saved_tensors = ()
        self.needs_input_grad = tuple(_differs(x) for x in args)

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def __getattr__(self, name):
        if name.startswith(("mark_", "set_materialize", "save_for_forward")):
            return lambda *_: None
        raise AttributeError(name)


def _differs(x) -> bool:
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def _each(gradients, args) -> list:
    gradients = list(gradients) if isinstance(gradients, (tuple, list)) else [gradients]
    gradients += [None] * (len(args) - len(gradients))
    return [g if _differs(x) else None for x, g in zip(args, gradients)]


def _random(x, generator, size):
    if not isinstance(x, torch.Tensor):
        return x
    if not x.is_floating_point():
        return torch.randint(0, 2, x.shape, generator=generator).to(x.dtype)
    return torch.randn(x.shape, generator=generator) * size


def _same(first, second, shape=None) -> bool:
    for x, y in zip(first, second):
        if shape is not None and x is not None and x.shape != shape:
            return False
        zero = torch.zeros(())
        x, y = (zero if item is None else item.detach() for item in (x, y))
        if not torch.allclose(x, y, rtol=1e-4, atol=1e-5, equal_nan=True):  # of rounding
            return False
    return True
