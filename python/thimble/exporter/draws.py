"""Random draws held still, in PyTorch and in an exported graph alike, so that one can be held against the other.

Every uniform number is 1/8, so that whatever is kept with a share above that is: dropout passes on all it is given, and as much larger
as ever. Normal and exponential numbers are 1/2.
"""

from __future__ import annotations

import copy
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

UNIFORM = 1 / 8
_DRAWN = {"uniform": UNIFORM, "normal": 1 / 2, "exponential": 1 / 2}
_ATEN = torch.ops.aten
_PLAIN = {"rand": "uniform", "rand_like": "uniform", "randn": "normal", "randn_like": "normal"}
_SUMS = (_ATEN.add.Tensor, _ATEN.detach.default)
_FLOORS = (_ATEN.floor.default, _ATEN.floor_.default)


class Still(TorchDispatchMode):
    """PyTorch's draws while it is open."""

    def __init__(self):
        super().__init__()
        self.uniform: dict[int, torch.Tensor] = {}  # by id: what was drawn from 0 to 1, and sums of it

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = op._schema.name.removeprefix("aten::")
        if name in _PLAIN:
            made = op(*args, **kwargs).fill_(_DRAWN[_PLAIN[name]])
            return self._marked(made) if name == "rand" else made
        draw = _DRAWS.get(name)
        if draw is not None:
            return draw(op, _named(op, args, kwargs))
        drawn = any(id(item) in self.uniform for item in args)
        if drawn and op in _FLOORS:  # floor(share + uniform): stochastic depth of transformers, which keeps
            return args[0].fill_(1.0) if op is _FLOORS[1] else torch.ones_like(args[0])
        made = op(*args, **kwargs)
        return self._marked(made) if drawn and op in _SUMS else made

    def _marked(self, tensor):
        self.uniform[id(tensor)] = tensor
        return tensor


def _named(op, args, kwargs) -> dict:
    given = {a.name: a.default_value for a in op._schema.arguments if a.has_default_value()}
    given.update(zip((a.name for a in op._schema.arguments), args))
    return {**given, **kwargs}


def _fill(op, given, numbers):
    """In place, or a new tensor of the shape and type that the op gives."""
    if op._schema.name.endswith("_"):
        target = given["self"]
    else:
        target = op(**{a.name: given[a.name] for a in op._schema.arguments if a.name in given})
    return target.copy_(numbers) if isinstance(numbers, torch.Tensor) else target.fill_(numbers)


def _bernoulli(op, given):
    share = given.get("p", given["self"])
    kept = (UNIFORM < share).float() if isinstance(share, torch.Tensor) else float(UNIFORM < share)
    return _fill(op, given, kept)


def _native_dropout(op, given):
    kept = not given["train"] or UNIFORM < 1 - given["p"]
    scale = 1 / (1 - given["p"]) if given["train"] and kept else float(kept)
    return given["input"] * scale, torch.full_like(given["input"], kept, dtype=torch.bool)


def _rrelu(op, given):
    if not given["training"]:
        return op(**given)
    slope = given["lower"] + UNIFORM * (given["upper"] - given["lower"])
    x = given["self"]
    given["noise"].copy_(torch.where(x > 0, 1.0, slope))
    return x * given["noise"]


def _randint(op, given):
    low = given.get("low", 0)
    return _fill(op, given, low + math.floor((given["high"] - low) * UNIFORM))


def _normal(op, given):
    mean, std = given.get("mean", 0.0), given.get("std", 1.0)
    return _fill(op, given, mean + std * _DRAWN["normal"])


def _uniform(op, given):
    low, high = given.get("from", 0.0), given.get("to", 1.0)
    return _fill(op, given, low + (high - low) * UNIFORM)


def _exponential(op, given):
    return _fill(op, given, _DRAWN["exponential"] / given["lambd"])


_DRAWS = {
    "bernoulli": _bernoulli,
    "bernoulli_": _bernoulli,
    "native_dropout": _native_dropout,
    "rrelu_with_noise": _rrelu,
    "randint": _randint,
    "randint_like": _randint,
    "normal": _normal,
    "normal_": _normal,
    "uniform_": _uniform,
    "exponential_": _exponential,
}


def still(nodes: list) -> list:
    """The nodes of a graph with the same draws."""
    made = []
    for node in nodes:
        kind = {"dropout": "p", "drop_mask": "p", "attention": "dropout"}.get(node.op)
        if node.op == "random":
            made += _times(node, _DRAWN[node.attrs["kind"]], op="drop_mask", attrs={"p": 0.0})
        elif kind is not None and node.attrs.get(kind):
            share = 1 - node.attrs[kind]
            made += _times(node, 1 / share if UNIFORM < share else 0.0, attrs={**node.attrs, kind: 0.0})
        else:
            made.append(node)
    return made


def _times(node, factor, **changed) -> list:
    """The result of the changed node, times a number."""
    inner, outer = copy.copy(node), copy.copy(node)
    for name, value in changed.items():
        setattr(inner, name, value)
    inner.outputs = [f"{node.outputs[0]}.still"]
    outer.op, outer.inputs, outer.attrs = "mul", [inner.outputs[0], factor], {}
    return [inner, outer]
