"""Random numbers: as many as are known, drawn anew in every step. PyTorch's own stream is another."""

from __future__ import annotations

import torch

from ..values import Unsupported, Value
from .registry import op, reshaped
from .elements import binary, compared, mapped, number_or_value


def drawn(r, kind, shape, whole=None):
    return r.emit("random", [], shape, kind=kind, whole=whole)


def _constant(r, item):
    """The number or tensor, through which no gradient passes."""
    item = number_or_value(r, item)
    return r.emit("detach", [item], item.shape) if isinstance(item, Value) else item


@op("randn", "randn_like")
def _randn(r, a):
    return drawn(r, "normal", a.shape)


@op("normal", "normal_functional", "normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor")
@op("normal.float_float")
def _normal(r, a):
    noise = drawn(r, "normal", a.shape)
    noise = noise if a.std == 1 else binary(r, "mul", noise, _constant(r, a.std))
    return noise if a.mean == 0 else binary(r, "add", noise, _constant(r, a.mean))


@op("rand_like")
def _rand_like(r, a):
    return drawn(r, "uniform", a.shape)


@op("uniform")
def _uniform(r, a):
    low, high = float(a.get("from")), float(a.to)
    numbers = drawn(r, "uniform", a.shape)
    numbers = numbers if high - low == 1 else binary(r, "mul", numbers, high - low)
    return numbers if low == 0 else binary(r, "add", numbers, low)


@op("exponential")
def _exponential(r, a):
    numbers = drawn(r, "exponential", a.shape)
    return numbers if a.lambd == 1 else binary(r, "mul", numbers, 1 / float(a.lambd))


@op("randint", "randint.low", "randint_like", "randint_like.low_dtype")
def _randint(r, a):
    low, shape = float(a.get("low", 0)), a.shape
    if a.high - low > 1 << 24:
        raise Unsupported("random whole numbers of more than 24 bits")
    numbers = drawn(r, "uniform", shape, whole=1)
    numbers = r.emit("mul", [numbers, a.high - low], shape, "i32", whole=1)
    numbers = r.emit("floor", [numbers], shape, "i32", whole=1)
    numbers = r.emit("add", [numbers, low], shape, "i32", whole=1) if low else numbers
    wanted = a.nodes[0].meta["val"].dtype
    return r.emit("cast", [numbers], shape) if wanted.is_floating_point else numbers


def _ones_of_share(r, share, shape):
    ones = compared(r, "lt", drawn(r, "uniform", shape), share, shape)
    return r.emit("cast", [ones], shape)


@op("bernoulli", "bernoulli.Tensor")
def _bernoulli_of_shares(r, a):
    return _ones_of_share(r, a.get("p", a.self), a.shape)


@op("bernoulli.float", "bernoulli.p")
def _bernoulli(r, a):
    """Of stochastic depth, rows of ones and zeros, divided by the share of ones right behind."""
    later = [user for user in a.nodes[0].users if user.target in _DIVISIONS]
    if len(later) != 1 or later[0].args[1] != a.p or not a.p:
        return _ones_of_share(r, float(a.p), a.shape)
    mask = r.emit("drop_mask", [], a.shape, p=1 - float(a.p))
    return r.emit("mul", [mask, float(a.p)], a.shape)


_DIVISIONS = (torch.ops.aten.div_.Scalar, torch.ops.aten.div_.Tensor, torch.ops.aten.div.Tensor)


@op("rand")
def _rand(r, a):
    """Of stochastic depth in transformers, floor(rand + share): ones where a row is kept."""
    chains = []
    for node in a.nodes:
        add = next(iter(node.users), None)
        floor = next(iter(add.users), None) if add is not None and len(node.users) == 1 else None
        adds = floor is not None and add.target is torch.ops.aten.add.Tensor
        floors = (torch.ops.aten.floor.default, torch.ops.aten.floor_.default)
        numbers = [item for item in add.args if isinstance(item, (int, float))] if adds else []
        if len(numbers) != 1 or floor.target not in floors:
            return drawn(r, "uniform", a.shape)
        chains.append((add, floor))
        share = float(numbers[0])
    mask = r.emit("drop_mask", [], a.shape, p=1 - share)
    mask = r.emit("mul", [mask, share], a.shape)
    for nodes in chains:
        r.settled.update(dict.fromkeys(nodes, mask))
    return mask


@op("rrelu")
def _rrelu(r, a):
    """Slopes below zero are drawn in training."""
    x = r.value(a.self)
    low, high = float(a.lower), float(a.upper)
    if not a.training:
        return mapped(r, "leaky_relu", x, slope=(low + high) / 2)
    slopes = binary(r, "add", binary(r, "mul", drawn(r, "uniform", x.shape), high - low), low)
    below = binary(r, "mul", mapped(r, "relu", mapped(r, "neg", x)), slopes)
    return reshaped(r, binary(r, "sub", mapped(r, "relu", x), below), a.shape)
