"""Runs `torch.export` on a module with its loss: twice, for two numbers of rows. That works for every net that
exports at all, where a symbolic number of rows does not.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import warnings
from collections import abc

import torch
from torch import nn

from .apart import apart
from .batches import Layout
from .reader import Graph, Reader
from .tracing import noting_data, traceable
from .untouched import untouched
from .values import CannotExport, exported_rows, exporting, is_callers


class WithLoss(nn.Module):
    """The module to export: it takes flat tensors, and returns the loss and other outputs. Its mode is that of the
    user's module, each of whose parts has a mode of its own."""

    def __init__(self, model, loss, layout: Layout):
        super().__init__()
        self.model = model
        self.loss = loss
        self.layout = layout
        self.training = model.training

    def forward(self, *tensors):
        arguments, keywords, targets = self.layout.call(tensors)
        output = self.model(*arguments, **keywords)
        if self.loss is None:
            loss = (
                output["loss"]
                if isinstance(output, abc.Mapping)
                else output[0] if isinstance(output, tuple) else getattr(output, "loss", output)
            )
            rest = output.get("logits") if isinstance(output, abc.Mapping) else None
            return loss, [] if rest is None else [rest]
        flat = [
            leaf
            for leaf in torch.utils._pytree.tree_leaves(output)
            if isinstance(leaf, torch.Tensor)
        ]
        return self.loss(output, *targets), flat


def _export(wrapped, tensors, rows):
    lines: list[str] = []
    picked = tuple(tensor[torch.arange(rows) % tensor.shape[0]] for tensor in tensors)
    try:
        # PyTorch prints its graph as far as it got; what there is to say of it is raised.
        with traceable(wrapped), noting_data(lines), warnings.catch_warnings(), contextlib.redirect_stderr(
            io.StringIO()
        ):
            warnings.simplefilter("ignore")
            return torch.export.export(wrapped, picked, strict=False)
    except CannotExport:
        raise
    except Exception as error:  # of many kinds, all of them about the module
        first = next(
            (line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__
        )
        at = ""
        for frame in _frames(error):
            if is_callers(frame.filename):
                at = f" at {frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}"
        if lines and "fake tensor" in str(error):
            raise CannotExport(
                f"the forward pass takes a tensor's data ({lines[0]}), which an export does not see; change weights "
                "between steps, or compute with .detach() or a changed copy of them"
            ) from error
        hint = _hint(wrapped.model) if "data-dependent" in str(error) else ""
        raise CannotExport(f"torch.export cannot trace the module{at}: {first[:400]}{hint}") from error


def _hint(model) -> str:
    """Advice where Python branches on a number in a tensor."""
    for name, part in model.named_modules():
        counts = isinstance(part, nn.modules.batchnorm._BatchNorm) and part.training and part.track_running_stats
        if counts and part.momentum is None:
            return f"; '{name}' ({type(part).__name__}) has momentum=None, a mean over all steps: give it a momentum"
    return "; write what depends on numbers in a tensor as torch.where, or without it"


def _frames(error):
    trace = error.__traceback__
    while trace is not None:
        yield inspect.getframeinfo(trace, context=0)
        trace = trace.tb_next


def capture(model: nn.Module, loss, example) -> Graph:
    """The graph of a training step's forward pass."""
    layout = Layout(model, loss, example)
    batch, targets = layout.of(example), layout.targets
    wrapped = WithLoss(model, loss, layout)
    tensors = where_the_module_is(model, batch)
    with exporting(tensors[0].shape[0]), untouched(model, loss):
        exports = [_export(wrapped, tensors, rows) for rows in exported_rows()]
        return Reader(model, exports, batch, targets).read()


def capture_apart(model: nn.Module, loss, example) -> Graph:
    """The same, in a process of its own: what an export takes is gone with it."""

    def made():
        graph = capture(model, loss, example)
        graph.tensors = list(graph.tensors)
        graph.constants = {name: tensor.cpu().numpy() for name, tensor in graph.constants.items()}
        return graph

    graph = apart(made)
    graph.tensors = {name: _own(model, name).detach() for name in graph.tensors}
    graph.constants = {name: torch.from_numpy(array) for name, array in graph.constants.items()}
    return graph


def _own(model, name) -> torch.Tensor:
    holder, _, last = name.rpartition(".")
    return getattr(model.get_submodule(holder), last)


def where_the_module_is(model, batch) -> list:
    """The tensors of a batch on the device of the module's parameters."""
    first = next(model.parameters(), None)
    return [t if first is None else t.to(first.device) for t in batch.values()]
