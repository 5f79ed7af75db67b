"""Ops that work element by element."""

from __future__ import annotations

import math

import torch

from ..values import Known, Unsupported, Value
from .registry import op, broadcast
from .shapes import parts


FARTHEST = 3.0e38  # stands for what is infinite


def number_or_value(r, item):
    if isinstance(item, str):
        return _rows_as_value(r, item)
    if isinstance(item, Known) and item.first.numel() == 1 and item.first.ndim == 0:
        item = float(item.one_row()[0])
    return finite(float(item)) if isinstance(item, (int, float)) else r.value(item)


def finite(item):
    """A number as a file can have it; anything else as it is."""
    if not isinstance(item, float):
        return item
    if math.isnan(item):
        raise Unsupported("a number that is none (nan)")
    return max(-FARTHEST, min(FARTHEST, item))


def _rows_as_value(r, extent):
    """How many rows there are, or so many times that: a sum of ones."""
    one = torch.tensor([float(extent.partition("*")[2] or 1)])
    ones = r.emit("expand", [Known((one, one))], ["rows"])
    return r.emit("sum", [ones], [], axes=[0], keep=False)


def binary(r, name, x, y):
    x, y = number_or_value(r, x), number_or_value(r, y)
    shape = broadcast(*(item.shape for item in (x, y) if isinstance(item, Value)))
    if name in ("add", "sub", "mul") and are_whole(x, y):
        return r.emit(name, [x, y], shape, "i32", whole=1)
    return r.emit(name, [as_floats(r, x), as_floats(r, y)], shape)


def are_whole(*items) -> bool:
    """Whether what is made of numbers and values is whole numbers again: ids, labels, places."""
    dtypes = [item.dtype for item in items if isinstance(item, Value)]
    numbers = [item for item in items if isinstance(item, float)]
    return "i32" in dtypes and "f32" not in dtypes and all(n.is_integer() for n in numbers)


def as_floats(r, item):
    if not isinstance(item, Value) or item.dtype == "f32":
        return item
    return r.emit("cast", [item], item.shape)


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


_ALSO = {"sub": "subtract", "mul": "multiply", "div": "divide"}
for _name in ("add", "sub", "mul", "div"):
    for _known in (_name, _ALSO.get(_name, _name)):
        op(f"{_known}.Tensor", f"{_known}.Scalar")(_arithmetic(_name))
op("true_divide.Tensor", "true_divide.Scalar")(_arithmetic("div"))


def compared(r, name, x, y, shape):
    """Ones and zeros."""
    return r.emit(name, [number_or_value(r, x), number_or_value(r, y)], shape, "u8")


def chosen(r, name, x, y, shape):
    """x where it is `name` than y, else y."""
    return masked(r, compared(r, name, x, y, shape), x, y)


@op("maximum", "minimum", "max.other", "min.other")
def _larger(r, a):
    name = "lt" if "min" in str(a.nodes[0].target) else "gt"
    return chosen(r, name, a.self, a.other, a.shape)


@op("clamp.Tensor", "clamp_min.Tensor", "clamp_max.Tensor")
def _clamp_by(r, a):
    low, high = a.get("min"), a.get("max")
    x = a.self if low is None else chosen(r, "gt", a.self, low, a.shape)
    return x if high is None else chosen(r, "lt", x, high, a.shape)


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
    "acos",
    "asin",
    "atan",
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
    low, high = (None if end is None else float(end) for end in (low, high))
    x = r.value(a.self)
    if are_whole(x, *(end for end in (low, high) if end is not None)):
        return r.emit("clip", [x], x.shape, "i32", low=low, high=high, whole=1)
    return mapped(r, "clip", x, low=low, high=high)


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
    x, y = number_or_value(r, x), number_or_value(r, y)
    if are_whole(x, y):
        ones, zeros = (_as_whole(r.value(shares)) for shares in (ones, zeros))

    def part(shares, item):
        if not isinstance(item, float):
            return binary(r, "mul", item, shares)
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


def _as_whole(ones):
    return Value(ones.name, ones.shape, "i32")


@op("where.self", "where.ScalarOther", "where.ScalarSelf")
def _where(r, a):
    return masked(r, a.condition, a.self, a.other)


@op("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(r, a):
    return masked(r, a.mask, a.value, a.self)


@op("sign", "sgn")
def _sign(r, a):
    above, below = (compared(r, name, a.self, 0.0, a.shape) for name in ("gt", "lt"))
    return binary(r, "sub", *(r.emit("cast", [mask], mask.shape) for mask in (above, below)))


@op("pow.Scalar", "exp2")
def _exponential(r, a):
    base = float(a.get("self", 2)) if "pow" in str(a.nodes[0].target) else 2.0
    if base <= 0:
        raise Unsupported(f"powers of {base}; those of numbers above 0 can be")
    exponent = a.exponent if "pow" in str(a.nodes[0].target) else a.self
    return mapped(r, "exp", binary(r, "mul", exponent, math.log(base)))


@op("erfc")
def _erfc(r, a):
    return binary(r, "sub", 1.0, mapped(r, "erf", a.self))


@op("tan")
def _tan(r, a):
    return binary(r, "div", mapped(r, "sin", a.self), mapped(r, "cos", a.self))


@op("sinh", "cosh")
def _hyperbolic(r, a):
    up, down = mapped(r, "exp", a.self), mapped(r, "exp", mapped(r, "neg", a.self))
    name = "sub" if "sinh" in str(a.nodes[0].target) else "add"
    return binary(r, "mul", binary(r, name, up, down), 0.5)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    op(f"{_name}.Scalar", f"{_name}.Tensor")(
        lambda r, a, name=_name: compared(r, name, a.self, a.other, a.shape)
    )


def ones_of(r, mask):
    """A mask as ones and zeros to count with."""
    mask = r.value(mask)
    if mask.dtype != "u8":
        mask = compared(r, "ne", mask, 0.0, mask.shape)
    return r.emit("cast", [mask], mask.shape)


def _as_mask(value):
    return Value(value.name, value.shape, "u8")


@op("logical_and", "bitwise_and.Tensor", "__and__.Tensor")
def _and(r, a):
    return _as_mask(binary(r, "mul", ones_of(r, a.self), ones_of(r, a.other)))


@op("logical_or", "bitwise_or.Tensor", "__or__.Tensor")
def _or(r, a):
    x, y = ones_of(r, a.self), ones_of(r, a.other)
    return _as_mask(binary(r, "sub", binary(r, "add", x, y), binary(r, "mul", x, y)))


@op("logical_not", "bitwise_not")
def _not(r, a):
    return _as_mask(binary(r, "sub", 1.0, ones_of(r, a.self)))


@op("prelu")
def _prelu(r, a):
    x, weight = r.value(a.self), r.value(a.weight)
    if len(x.shape) > 2 and weight.shape != [1]:
        weight = r.emit("reshape", [weight], weight.shape + [1] * (len(x.shape) - 2))
    below = mapped(r, "relu", mapped(r, "neg", x))
    return binary(r, "sub", mapped(r, "relu", x), binary(r, "mul", below, weight))


@op("selu")
def _selu(r, a):
    return binary(
        r, "mul", mapped(r, "elu", a.self, alpha=1.6732632423543772), 1.0507009873554805
    )


@op("glu")
def _glu(r, a):
    x = r.value(a.self)
    axis = a.dim % len(x.shape)
    first, gate = parts(r, x, axis, [x.shape[axis] // 2] * 2)
    return binary(r, "mul", first, mapped(r, "sigmoid", gate))


@op("tril", "triu")
def _triangle(r, a):
    x = r.value(a.self)
    kept = a.nodes[0].target(torch.ones(*x.shape[-2:]), a.diagonal)
    return binary(r, "mul", x, Known((kept, kept)))


for _name, _base in (("log2", 2.0), ("log10", 10.0)):
    op(_name)(
        lambda r, a, base=_base: binary(r, "mul", mapped(r, "log", a.self), 1 / math.log(base))
    )
