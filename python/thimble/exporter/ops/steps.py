"""Rounding, whose gradient is zero, and quantisation, whose gradient passes straight through."""

from __future__ import annotations

from ..values import Unsupported
from .registry import op, reshaped
from .elements import binary, compared, mapped


def _rounded(name):
    def handler(r, a):
        x = r.value(a.self)
        return x if x.dtype != "f32" else mapped(r, name, x)

    return handler


for _name in ("round", "floor", "ceil", "trunc"):
    op(_name)(_rounded(_name))
op("fix")(_rounded("trunc"))


@op("round.decimals")
def _round_decimals(r, a):
    factor = 10.0**a.decimals
    whole = mapped(r, "round", binary(r, "mul", a.self, factor))
    return binary(r, "mul", whole, 1 / factor)


@op("frac")
def _frac(r, a):
    return binary(r, "sub", a.self, mapped(r, "trunc", a.self))


@op("remainder.Scalar", "floor_divide", "floor_divide.Scalar")
def _remainder(r, a):
    """Of whole numbers: half of one keeps what rounding does to a quotient away from the next."""
    x, by = r.value(a.self), a.other
    if x.dtype != "i32" or isinstance(by, bool) or not isinstance(by, int) or by < 1:
        raise Unsupported("of other than whole numbers by one that is known")
    shares = r.emit("mul", [r.emit("add", [x, 0.5], x.shape, whole=1), 1 / by], x.shape, whole=1)
    times = r.emit("floor", [shares], x.shape, "i32", whole=1)
    if "floor" in a.nodes[0].target.name():
        return times
    return binary(r, "sub", x, binary(r, "mul", times, float(by)))


def straight_through(r, x, value, slope):
    """The value, with the gradient of x times the slope: x - x.detach() is zero."""
    nothing = binary(r, "sub", x, r.emit("detach", [x], x.shape))
    value = r.emit("detach", [value], value.shape)
    return binary(r, "add", value, binary(r, "mul", nothing, slope))


@op("fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine")
def _fake_quantize(r, a):
    x = r.value(a.self)
    scale, zero = a.scale, a.zero_point
    if "per_channel" in a.nodes[0].target.name():
        shape = [extent if at == a.axis else 1 for at, extent in enumerate(x.shape)]
        scale, zero = (reshaped(r, item, shape) for item in (scale, zero))
        inverse = mapped(r, "reciprocal", scale)
    elif isinstance(scale, float):
        inverse = 1 / scale
    else:
        raise Unsupported("with a scale that is a tensor")
    places = binary(r, "add", mapped(r, "round", binary(r, "mul", x, inverse)), zero)
    low, high = float(a.quant_min), float(a.quant_max)
    clipped = mapped(r, "clip", places, low=low, high=high)
    inside = r.emit("cast", [compared(r, "eq", places, clipped, x.shape)], x.shape)
    value = binary(r, "mul", binary(r, "sub", clipped, zero), scale)
    return straight_through(r, x, value, inside)
