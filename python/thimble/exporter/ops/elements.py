"""Ops that work element by element."""

from __future__ import annotations

import torch

from ..values import Known, Unsupported, Value
from .registry import op, broadcast


def number_or_value(r, item):
    if isinstance(item, Known) and item.first.numel() == 1 and item.first.ndim == 0:
        return float(item.first)
    return float(item) if isinstance(item, (int, float)) else r.value(item)


def binary(r, name, x, y):
    x, y = number_or_value(r, x), number_or_value(r, y)
    values = [item for item in (x, y) if isinstance(item, Value)]
    if any(value.dtype != "f32" for value in values):
        values = [r.emit("cast", [v], v.shape, "f32") if v.dtype == "u8" else v for v in values]
        x, y = [values.pop(0) if isinstance(item, Value) else item for item in (x, y)]
        if any(isinstance(v, Value) and v.dtype != "f32" for v in (x, y)):
            raise Unsupported(f"'{name}' of whole numbers that are not known beforehand")
    shape = broadcast(*(item.shape for item in (x, y) if isinstance(item, Value)))
    return r.emit(name, [x, y], shape)


def _arithmetic(name):
    def handler(r, a):
        other = a.other
        if a.get("alpha", 1) != 1:
            other = (
                binary(r, "mul", other, float(a.alpha))
                if not isinstance(other, (int, float))
                else other * a.alpha
            )
        return binary(r, name, a.self, other)

    return handler


for _name in ("add", "sub", "mul", "div"):
    op(f"{_name}.Tensor", f"{_name}.Scalar")(_arithmetic(_name))
op("maximum")(_arithmetic("maximum"))
op("minimum")(_arithmetic("minimum"))


@op("rsub.Scalar", "rsub.Tensor")
def _rsub(r, a):
    return binary(r, "sub", a.other, a.self)


@op("addcmul")
def _addcmul(r, a):
    return binary(
        r, "add", a.self, binary(r, "mul", binary(r, "mul", a.tensor1, a.tensor2), float(a.value))
    )


def mapped(r, name, x, **attrs):
    x = r.value(x)
    return r.emit(name, [x], x.shape, **attrs)


for _name in (
    "relu",
    "sigmoid",
    "tanh",
    "silu",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "abs",
    "neg",
    "reciprocal",
    "erf",
    "sin",
    "cos",
    "log1p",
    "expm1",
    "mish",
    "log_sigmoid",
    "square",
):
    op(_name)(lambda r, a, name=_name: mapped(r, name, a.self))
op("hardswish")(lambda r, a: mapped(r, "hard_swish", a.self))
op("hardsigmoid")(lambda r, a: mapped(r, "hard_sigmoid", a.self))
op("gelu")(lambda r, a: mapped(r, "gelu", a.self, approximate=a.approximate))
op("leaky_relu")(lambda r, a: mapped(r, "leaky_relu", a.self, slope=float(a.negative_slope)))
op("elu")(lambda r, a: mapped(r, "elu", a.self, alpha=float(a.alpha)))
op("softplus")(lambda r, a: mapped(r, "softplus", a.self, beta=float(a.beta)))
op("relu6")(lambda r, a: mapped(r, "clip", a.self, low=0.0, high=6.0))
op("hardtanh")(lambda r, a: mapped(r, "clip", a.self, low=float(a.min_val), high=float(a.max_val)))


@op("clamp", "clamp_min", "clamp_max", "clip")
def _clamp(r, a):
    low, high = a.get("min"), a.get("max")
    return mapped(
        r,
        "clip",
        a.self,
        low=None if low is None else float(low),
        high=None if high is None else float(high),
    )


@op("pow.Tensor_Scalar")
def _pow(r, a):
    return mapped(r, "pow", a.self, exponent=float(a.exponent))


def masked(r, mask, x, y):
    """x where the mask has a one, else y: sums of products with the mask, which lose nothing but infinities."""
    if isinstance(mask, Known):
        ones = Known(tuple(tensor.to(torch.float32) for tensor in mask.tensors))
        zeros = Known(tuple(1 - tensor for tensor in ones.tensors))
    else:
        ones = r.emit("cast", [r.value(mask)], r.value(mask).shape)
        zeros = binary(r, "sub", 1.0, ones)

    def part(shares, item):
        item = number_or_value(r, item)
        if not isinstance(item, float):
            return binary(r, "mul", item, shares)
        item = max(-3.0e38, min(3.0e38, item))
        if item == 0:
            return None
        return (
            Known(tuple(t * item for t in shares.tensors))
            if isinstance(shares, Known)
            else binary(r, "mul", shares, item)
        )

    first, second = part(ones, x), part(zeros, y)
    if first is None or second is None:
        return r.value(first if second is None else second)
    return binary(r, "add", first, second)


@op("where.self", "where.ScalarOther", "where.ScalarSelf")
def _where(r, a):
    return masked(r, a.condition, a.self, a.other)


@op("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(r, a):
    return masked(r, a.mask, a.value, a.self)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    op(f"{_name}.Scalar", f"{_name}.Tensor")(
        lambda r, a, name=_name: r.emit(
            name, [number_or_value(r, a.self), number_or_value(r, a.other)], a.shape, "u8"
        )
    )
