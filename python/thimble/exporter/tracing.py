"""Replacements while a module is traced, where PyTorch's own code branches on numbers or hides gradients."""

from __future__ import annotations

import contextlib
import os
import random
import sys
import traceback

import torch
import torch.fx.proxy
import torch.utils.checkpoint

from .experts import all_at_once
from .functions import own_gradients
from .picks import last_of_rows
from .values import CannotExport, is_callers


@contextlib.contextmanager
def traceable(module):
    """The module can be traced inside."""
    with contextlib.ExitStack() as stack:
        for patch in (
            _no_layer_drop(module),
            _no_draws_of_python(module),
            _no_checkpoints(),
            _masks_as_they_are(),
            _no_checks_of_numbers(),
            _no_gradients_inside(),
            _no_autocast(),
            _every_line(),
            own_gradients(),
            all_at_once(),
            last_of_rows(),
        ):
            stack.enter_context(patch)
        yield


@contextlib.contextmanager
def _in_place_of(owner, name, other):
    before = getattr(owner, name)
    setattr(owner, name, other)
    try:
        yield
    finally:
        setattr(owner, name, before)


def noting_data(lines: list[str]):
    """Lines of the caller's where a tensor's `data` is taken, which an export does not see, while it is open."""
    data = torch.Tensor.data

    def noted(self):
        frame = sys._getframe(1)
        if is_callers(frame.f_code.co_filename):
            lines.append(f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}")
        return data.__get__(self)

    return _in_place_of(torch.Tensor, "data", property(noted, lambda self, other: data.__set__(self, other)))


@contextlib.contextmanager
def _no_layer_drop(module):
    """Modules of transformers draw a number for every layer and leave the layer out where it is below `layerdrop`. No
    number is below 0, so with a layerdrop of 0 no draw is traced."""
    shares = _layer_drops(module)
    draw = torch.rand
    if not shares or any(shares):
        yield
        return
    with _in_place_of(
        torch, "rand", lambda *size, **more: 1.0 if size == ([],) else draw(*size, **more)
    ):
        yield


def _layer_drops(module) -> list:
    having = [part for m in module.modules() for part in (m, getattr(m, "config", None))]
    return [part.layerdrop for part in having if hasattr(part, "layerdrop")]


_DRAWS = {"random", "uniform", "randint", "randrange", "choice", "choices", "sample", "shuffle", "gauss", "rand"}
_DRAWS |= {"randn", "normal", "normalvariate", "beta", "betavariate", "binomial", "permutation", "random_sample"}


@contextlib.contextmanager
def _no_draws_of_python(module):
    """Numbers of Python's generators, or NumPy's, would be the same in all steps. Draws for a
    layerdrop of 0 decide nothing."""
    shares = _layer_drops(module)
    if shares and not any(shares):
        yield
        return
    lines: list[str] = []
    with contextlib.ExitStack() as stack:
        for owner in filter(None, (random, getattr(sys.modules.get("numpy"), "random", None))):
            for name in _DRAWS & set(dir(owner)):
                stack.enter_context(_in_place_of(owner, name, _noting(lines, getattr(owner, name))))
        before = _states()
        yield
    if lines or _states() != before:
        raise CannotExport(
            f"the forward pass draws random numbers of Python's or NumPy's{''.join(lines[:1])}, which would be the "
            "same in every step; draw them by torch, or have them in the batch"
        )


def _noting(lines, draw):
    def noted(*args, **more):
        frames = [f for f in traceback.extract_stack()[:-1] if is_callers(f.filename)]
        if frames:
            lines.append(f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})")
        return draw(*args, **more)

    return noted


def _states():
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return random.getstate()
    kind, numbers, *rest = numpy.random.get_state()
    return random.getstate(), kind, numbers.tobytes(), rest


class _Through:
    """A reentrant checkpoint (activation checkpointing) computes its part where gradients are off, and again in its
    backward, which a trace does not see. Here the planner decides what to recompute."""

    @staticmethod
    def apply(function, preserve_rng_state, *args):
        del preserve_rng_state
        return function(*args)


def _no_checkpoints():
    return _in_place_of(torch.utils.checkpoint, "CheckpointFunction", _Through)


def _masks_as_they_are():
    """nn.Transformer compares a mask with the causal one, to name it to kernels; unnamed, it is a mask."""
    return _in_place_of(
        torch.nn.modules.transformer,
        "_detect_is_causal_mask",
        lambda mask, is_causal=None, size=None: bool(is_causal),
    )


def _no_gradients_inside():
    """A trace of a forward pass has none."""
    grad = torch.autograd.grad

    def refused(*args, **more):
        frame = sys._getframe(1)
        if not is_callers(frame.f_code.co_filename):
            return grad(*args, **more)
        raise CannotExport(
            f"torch.autograd.grad is called in the forward pass ({os.path.basename(frame.f_code.co_filename)}:"
            f"{frame.f_lineno}), and gradients of gradients cannot be trained here; write the loss without"
        )

    return _in_place_of(torch.autograd, "grad", refused)


def _no_autocast():
    """Refuses autocast of the caller: mixed precision is a setting of the run, and here all is fp32."""
    enter = torch.autocast.__enter__

    def entered(self):
        lines = [f for f in traceback.extract_stack()[:-1] if is_callers(f.filename)]
        if self._enabled and lines:
            raise CannotExport(
                f"torch.autocast is on in the forward pass ({os.path.basename(lines[-1].filename)}:{lines[-1].lineno}); "
                'precision is a setting of the run (precision="bf16"), so take it away'
            )
        return enter(self)

    return _in_place_of(torch.autocast, "__enter__", entered)


@contextlib.contextmanager
def _no_checks_of_numbers():
    """PyTorch's own functions that look at numbers to raise an error; eager PyTorch raises it where they are held
    against each other."""
    validates = torch.distributions.Distribution._validate_args
    functions = torch.nn.functional
    with _in_place_of(functions, "gaussian_nll_loss", _looking_at_none(functions.gaussian_nll_loss)):
        torch.distributions.Distribution.set_default_validate_args(False)
        try:
            yield
        finally:
            torch.distributions.Distribution.set_default_validate_args(validates)


def _looking_at_none(function):
    def call(*args, **more):
        with _in_place_of(torch, "any", lambda *_: False):
            return function(*args, **more)

    return call


_ENTRANCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "capture.py")


def _every_line():
    """An export notes the lines of functions that are called forward, and no loss is."""

    def lines(_, stack):
        begins = [at for at, frame in enumerate(stack) if frame.filename == _ENTRANCE and frame.name == "forward"]
        return traceback.StackSummary.from_list(stack[begins[0] + 1 :] if begins else [])

    tracer = torch.fx.proxy.TracerBase
    if not hasattr(tracer, "_filter_traceback_frames"):  # of another version
        return contextlib.nullcontext()
    return _in_place_of(tracer, "_filter_traceback_frames", lines)
