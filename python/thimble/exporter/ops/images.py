"""Pooling and resizing."""

from __future__ import annotations

from ..values import Unsupported
from .registry import op, pair_of


@op("max_pool2d")
def _max_pool(r, a):
    if set(pair_of(a.dilation)) != {1}:
        raise Unsupported("max pooling with dilation")
    x = r.value(a.self)
    if a.ceil_mode:
        x = _reaching(r, x, a)
    return r.emit(
        "max_pool",
        [x],
        a.shape,
        kernel=pair_of(a.kernel_size),
        stride=pair_of(a.stride or a.kernel_size),
        padding=pair_of(a.padding),
    )


def _reaching(r, x, a):
    """Images that the last windows of ceil_mode do not look beyond: numbers below all others behind."""
    kernel, stride = pair_of(a.kernel_size), pair_of(a.stride or a.kernel_size)
    padding = pair_of(a.padding)
    for at, axis in enumerate((2, 3)):
        reach = (a.shape[axis] - 1) * stride[at] + kernel[at] - 2 * padding[at]
        if reach > x.shape[axis]:
            shape = x.shape[:axis] + [reach] + x.shape[axis + 1 :]
            behind = reach - x.shape[axis]
            x = r.emit("pad", [x], shape, axis=axis, before=0, behind=behind, value=-3.0e38)
    return x


@op("avg_pool2d")
def _avg_pool(r, a):
    if (
        a.ceil_mode
        or a.divisor_override
        or (set(pair_of(a.padding)) != {0} and not a.count_include_pad)
    ):
        raise Unsupported(
            "average pooling with ceil_mode, divisor_override or padding that is not counted"
        )
    return r.emit(
        "avg_pool",
        [r.value(a.self)],
        a.shape,
        kernel=pair_of(a.kernel_size),
        stride=pair_of(a.stride or a.kernel_size),
        padding=pair_of(a.padding),
    )


@op("adaptive_avg_pool2d")
def _adaptive(r, a):
    return r.emit("resize", [r.value(a.self)], a.shape, size=a.shape[2:], mode="average")


@op("upsample_bilinear2d.vec", "upsample_bilinear2d")
def _bilinear(r, a):
    return r.emit(
        "resize",
        [r.value(a.input if a.get("input") is not None else a.self)],
        a.shape,
        size=a.shape[2:],
        mode="corners" if a.align_corners else "bilinear",
    )


@op("upsample_nearest2d.vec", "upsample_nearest2d")
def _nearest(r, a):
    return r.emit(
        "resize",
        [r.value(a.input if a.get("input") is not None else a.self)],
        a.shape,
        size=a.shape[2:],
        mode="nearest",
    )


@op("adaptive_avg_pool1d")
def _adaptive_row(r, a):
    if a.shape[-1] != 1:
        raise Unsupported("adaptive pooling of rows to more than one number")
    x = r.value(a.self)
    return r.emit("mean", [x], a.shape, axes=[len(x.shape) - 1], keep=True)
