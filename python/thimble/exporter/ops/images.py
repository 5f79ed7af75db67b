"""Pooling and resizing."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..values import Known, Unsupported
from .elements import binary
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


def _reaching(r, x, a, number=-3.0e38):
    """Images that the last windows of ceil_mode do not look beyond: numbers below all others behind."""
    kernel, stride = pair_of(a.kernel_size), pair_of(a.stride or a.kernel_size)
    padding = pair_of(a.padding)
    for at, axis in enumerate((2, 3)):
        reach = (a.shape[axis] - 1) * stride[at] + kernel[at] - 2 * padding[at]
        if reach > x.shape[axis]:
            shape = x.shape[:axis] + [reach] + x.shape[axis + 1 :]
            behind = reach - x.shape[axis]
            x = r.emit("pad", [x], shape, axis=axis, before=0, behind=behind, value=number)
    return x


@op("avg_pool2d")
def _avg_pool(r, a):
    x = r.value(a.self)
    kernel, padding = pair_of(a.kernel_size), pair_of(a.padding)
    pooled = r.emit(
        "avg_pool",
        [_reaching(r, x, a, 0.0)],
        a.shape,
        kernel=kernel,
        stride=pair_of(a.stride or a.kernel_size),
        padding=padding,
    )
    plain = a.count_include_pad or set(padding) == {0}
    if plain and not a.ceil_mode and not a.divisor_override:
        return pooled
    # By how many numbers PyTorch divides, window by window, where we divide by all of a window.
    ones = torch.ones(1, 1, *x.shape[2:])
    settings = [a.kernel_size, a.stride, a.padding, a.ceil_mode]
    sums = F.avg_pool2d(ones, *settings, divisor_override=1)
    means = F.avg_pool2d(ones, *settings, a.count_include_pad, a.divisor_override)
    factors = kernel[0] * kernel[1] * means / sums
    return binary(r, "mul", pooled, Known((factors, factors)))


@op("adaptive_max_pool2d")
def _adaptive_max(r, a):
    x, sides = r.value(a.self), a.nodes[0].meta["val"][0].shape[2:]
    kernel = [extent // side for extent, side in zip(x.shape[2:], sides)]
    if any(k * side != extent for k, side, extent in zip(kernel, sides, x.shape[2:])):
        raise Unsupported("adaptive max pooling of windows that are not all alike")
    shape = [*x.shape[:2], *sides]
    pooled = r.emit("max_pool", [x], shape, kernel=kernel, stride=kernel, padding=[0, 0])
    return [pooled, None]


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
