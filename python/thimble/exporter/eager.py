"""PyTorch's own forward and backward pass of what was exported, random draws held still."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import traceback

import torch
from torch import nn

from .draws import Still
from .values import CannotExport, is_callers


@dataclasses.dataclass
class Pass:
    loss: float
    gradients: dict  # by the names of parameters; None: PyTorch gives none
    buffers: dict  # what the forward pass left in those that it changes
    functions: list  # whose backward the caller wrote: "Clamp (net.py:12)"
    hooks: list  # on gradients, with the caller's lines


def run(wrapped, tensors, parameters, buffers=(), spill=None) -> Pass:
    """`spill`: a file for what the backward pass reads and for gradients, which are then one in memory at a time.
    REQUIRES: whoever calls sees to it that the module is as it was (`untouched`); values of parameters, which
    only the module itself could change, are theirs to compare."""
    for parameter in parameters.values():
        parameter.grad = None
    hooks: list[str] = []
    try:
        with as_exported(), _noting_hooks(hooks), contextlib.ExitStack() as spilling:
            if spill is not None:
                spilling.enter_context(spill.saving([*parameters.values(), *dict(buffers).values(), *tensors]))
                gradients = spilling.enter_context(spill.gradients(parameters))
            loss, outputs = wrapped(*tensors)
            del outputs  # logits, which nobody compares
            left = {name: buffer.detach().clone() for name, buffer in dict(buffers).items()}
            functions = _own_functions(loss)
            if loss.requires_grad:
                loss.sum().backward()  # of one number, whatever its axes
    except Exception as error:  # of many kinds, all of them about the module
        raise CannotExport(
            f"PyTorch itself cannot compute the gradients of the first batch: {type(error).__name__}: "
            f"{str(error)[:400]}"
        ) from error
    if spill is None:
        gradients = {name: parameter.grad for name, parameter in parameters.items()}
    for parameter in parameters.values():
        parameter.grad = None
    return Pass(loss.item(), gradients, left, functions, hooks + _hooks_of(wrapped))


@contextlib.contextmanager
def as_exported():
    """Numbers as an exact machine would have them: full products, no kernels that draw by themselves."""
    with Still(), torch.enable_grad(), torch.backends.cudnn.flags(
        enabled=False
    ), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        yield


@contextlib.contextmanager
def in_double(module):
    """Parameters and buffers in fp64, and what the module makes by itself; afterwards they are where they were, but
    for gradients, which are gone."""
    tensors = {id(t): t for t in (*module.parameters(), *module.buffers()) if t.dtype == torch.float32}
    kept = [(tensor, tensor.data) for tensor in tensors.values()]
    usual = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        for tensor, data in kept:
            tensor.grad = None
            tensor.data = data.double()
        yield
    finally:
        torch.set_default_dtype(usual)
        for tensor, data in kept:
            tensor.grad = None
            tensor.data = data


@contextlib.contextmanager
def _noting_hooks(notes):
    """Hooks on tensors that the forward pass registers."""
    before = torch.Tensor.register_hook

    def noted(self, hook):
        lines = [f for f in traceback.extract_stack()[:-1] if is_callers(f.filename)]
        if lines:
            notes.append(f"register_hook ({lines[-1].filename.rsplit('/', 1)[-1]}:{lines[-1].lineno})")
        return before(self, hook)

    torch.Tensor.register_hook = noted
    try:
        yield
    finally:
        torch.Tensor.register_hook = before


def _hooks_of(module: nn.Module) -> list[str]:
    """Hooks that stay from pass to pass."""
    found = [
        f"a backward hook on module '{name.removeprefix('model').removeprefix('.')}'"
        for name, part in module.named_modules()
        if part._backward_hooks or part._backward_pre_hooks
    ]
    return found + [
        f"a hook on the gradient of '{name.removeprefix('model.')}'"
        for name, parameter in module.named_parameters()
        if parameter._backward_hooks
    ]


def _own_functions(loss) -> list[str]:
    """Classes of the caller's in the graph that the loss came of, each once."""
    found, seen, left = [], set(), [loss.grad_fn]
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        left.extend(following for following, _ in node.next_functions)
        kind = getattr(node, "_forward_cls", None)
        if kind is None or kind.__module__.partition(".")[0] == "torch":
            continue
        found.append(f"{kind.__name__}{_line_of(kind)}")
    return list(dict.fromkeys(found))


def _line_of(kind) -> str:
    try:
        path, line = inspect.getsourcefile(kind), inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):
        return ""
    return f" ({path.rsplit('/', 1)[-1]}:{line})"
