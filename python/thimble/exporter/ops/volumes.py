"""Convolutions and pooling over time and space, [N,C,T,H,W]: images, frame by frame, and what joins frames."""

from __future__ import annotations

from ..values import Unsupported
from .elements import binary, compared, masked
from .images import FAR_BELOW
from .registry import op, reshaped, times
from .shapes import sliced
from .sums import reduced


def frames_of(r, x):
    """[N,C,T,H,W] as images [N*T,C,H,W]."""
    n, c, t, h, w = x.shape
    turned = r.emit("permute", [x], [n, t, c, h, w], axes=[0, 2, 1, 3, 4])
    return reshaped(r, turned, [_times_rows(n, t), c, h, w])


def volume_of(r, images, frames):
    """The other way round."""
    nt, c, h, w = images.shape
    n = _parts_of_rows(nt, frames)
    apart = reshaped(r, images, [n, frames, c, h, w])
    return r.emit("permute", [apart], [n, c, frames, h, w], axes=[0, 2, 1, 3, 4])


def _times_rows(extent, factor):
    if not isinstance(extent, str):
        return extent * factor
    return _rows(int(extent.partition("*")[2] or 1) * factor)


def _parts_of_rows(extent, parts):
    if not isinstance(extent, str):
        return extent // parts
    return _rows(int(extent.partition("*")[2] or 1) // parts)


def _rows(count):
    return "rows" if count == 1 else f"rows*{count}"


def padded_in_time(r, x, by, number):
    if by == 0:
        return x
    shape = x.shape[:2] + [x.shape[2] + 2 * by] + x.shape[3:]
    return r.emit("pad", [x], shape, axis=2, before=by, behind=by, value=number)


def taps(x, kernel, stride, dilation, frames):
    """Of each place of a kernel in time: the frames that it sees, as (begin, end, step)."""
    return [
        (k * dilation, k * dilation + (frames - 1) * stride + 1, stride) for k in range(kernel)
    ]


@op("conv3d", "conv3d.padding")
def _conv3d(r, a):
    """A sum of convolutions of images, one for each frame of the kernel."""
    if isinstance(a.padding, str):
        raise Unsupported(f"a convolution in three dimensions with padding '{a.padding}'; give numbers")
    stride, padding, dilation = (times(s, 3) for s in (a.stride, a.padding, a.dilation))
    x, weight = padded_in_time(r, r.value(a.input), padding[0], 0.0), r.value(a.weight)
    bias, frames, total = None if a.bias is None else r.value(a.bias), a.shape[2], None
    image = [_times_rows(a.shape[0], frames), a.shape[1], *a.shape[3:]]
    for at, tap in enumerate(taps(x, weight.shape[2], stride[0], dilation[0], frames)):
        kernel = reshaped(
            r, sliced(r, weight, 2, at, at + 1), weight.shape[:2] + weight.shape[3:]
        )
        y = r.emit(
            "conv",
            [frames_of(r, sliced(r, x, 2, *tap)), kernel, bias if at == 0 else None],
            image,
            stride=stride[1:],
            padding=padding[1:],
            dilation=dilation[1:],
            groups=a.groups,
        )
        total = y if total is None else binary(r, "add", total, y)
    return volume_of(r, total, frames)


def _pool(r, a, kind, number, join):
    kernel, padding = times(a.kernel_size, 3), times(a.padding, 3)
    stride = times(a.stride, 3) if a.stride else kernel
    if a.ceil_mode:
        raise Unsupported("pooling in three dimensions with ceil_mode")
    x = padded_in_time(r, r.value(a.self), padding[0], number)
    images = frames_of(r, x)
    if (kernel[1:], stride[1:], padding[1:]) != ([1, 1], [1, 1], [0, 0]):
        images = r.emit(
            kind,
            [images],
            images.shape[:2] + a.shape[3:],
            kernel=kernel[1:],
            stride=stride[1:],
            padding=padding[1:],
        )
    pooled, result = volume_of(r, images, x.shape[2]), None
    for tap in taps(pooled, kernel[0], stride[0], 1, a.shape[2]):
        part = sliced(r, pooled, 2, *tap)
        result = part if result is None else join(result, part)
    return result


@op("max_pool3d")
def _max_pool3d(r, a):
    if set(times(a.dilation, 3)) != {1}:
        raise Unsupported("max pooling with dilation")

    def larger(x, y):
        return masked(r, compared(r, "lt", x, y, x.shape), y, x)

    return _pool(r, a, "max_pool", FAR_BELOW, larger)


@op("avg_pool3d")
def _avg_pool3d(r, a):
    if a.divisor_override or (any(times(a.padding, 3)) and not a.count_include_pad):
        raise Unsupported(
            "average pooling in three dimensions with divisor_override or padding that is not counted"
        )
    total = _pool(r, a, "avg_pool", 0.0, lambda x, y: binary(r, "add", x, y))
    return binary(r, "mul", total, 1 / times(a.kernel_size, 3)[0])


@op("adaptive_avg_pool3d")
def _adaptive(r, a):
    if a.shape[2:] != [1, 1, 1]:
        raise Unsupported("adaptive pooling in three dimensions to more than one number")
    return reduced(r, "mean", a.self, [2, 3, 4], True)
