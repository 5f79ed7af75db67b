"""Pooling and resizing."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..values import Known, Unsupported
from .elements import binary, compared, masked
from .registry import op, pair_of, reshaped
from .shapes import sliced
from .sums import largest

# The number beyond a picture, below all that a net computes. It is finite in 16 bits, too: the lowest of 32 bits would
# be infinite there, and infinity times zero is not a number.
FAR_BELOW = -6.0e4


@op("max_pool2d_with_indices")
def _max_pool_and_places(r, a):
    return [_max_pool(r, a), None]


@op("max_pool2d")
def _max_pool(r, a):
    x, kernel = with_channels(r, a), pair_of(a.kernel_size)
    stride, padding = pair_of(a.stride or a.kernel_size), pair_of(a.padding)
    if set(pair_of(a.dilation)) != {1}:
        raise Unsupported("max pooling with dilation")
    square = are_square(kernel, stride, padding)
    if a.ceil_mode:
        x = _reaching(r, x, a, -3.0e38 if square else FAR_BELOW)
    if not square:
        for axis, settings in zip((2, 3), zip(kernel, stride, padding)):
            x = largest_along(r, x, axis, *settings, a.first_shape[axis])
        return x
    return r.emit("max_pool", [x], a.first_shape, kernel=kernel, stride=stride, padding=padding)


def with_channels(r, a, spatial=2):
    """The tensor to pool, whose axes behind the rows and the channels are so many."""
    x = r.value(a.self)
    if len(x.shape) != 2 + spatial:
        raise Unsupported(
            "pooling of a tensor without an axis for its channels; put unsqueeze(1) before, squeeze(1) behind"
        )
    return x


def are_square(*pairs) -> bool:
    """Windows as high as wide, which there are kernels for."""
    return all(pair[0] == pair[1] for pair in pairs)


def largest_along(r, x, axis, kernel, stride, padding, windows):
    """Max pooling along one axis: of so many windows, the larger of what their first places see, their second, ..."""
    if (kernel, stride, padding) == (1, 1, 0):
        return x
    if (kernel, padding, windows) == (x.shape[axis], 0, 1):
        return largest(r, x, [axis], True)
    if kernel > 32:
        raise Unsupported("max pooling of more than 32 numbers at a time, along one axis alone")
    if padding:
        shape = list(x.shape)
        shape[axis] += 2 * padding
        x = r.emit("pad", [x], shape, axis=axis, before=padding, behind=padding, value=FAR_BELOW)
    best = None
    for at in range(kernel):
        seen = sliced(r, x, axis, at, at + (windows - 1) * stride + 1, stride)
        best = seen if best is None else masked(r, compared(r, "lt", best, seen, seen.shape), seen, best)
    return best


def _reaching(r, x, a, number):
    """Images that the last windows of ceil_mode do not look beyond: such numbers behind."""
    kernel, stride = pair_of(a.kernel_size), pair_of(a.stride or a.kernel_size)
    padding = pair_of(a.padding)
    for at, axis in enumerate((2, 3)):
        reach = (a.first_shape[axis] - 1) * stride[at] + kernel[at] - 2 * padding[at]
        if reach > x.shape[axis]:
            shape = x.shape[:axis] + [reach] + x.shape[axis + 1 :]
            behind = reach - x.shape[axis]
            x = r.emit("pad", [x], shape, axis=axis, before=0, behind=behind, value=number)
    return x


@op("avg_pool2d")
def _avg_pool(r, a):
    x = with_channels(r, a)
    kernel, padding = pair_of(a.kernel_size), pair_of(a.padding)
    if not are_square(kernel, pair_of(a.stride or a.kernel_size), padding):
        return _means_along(r, a, x)
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


def _means_along(r, a, x):
    """Average pooling by windows that are not square, along one axis and then the other."""
    settings = zip(*(pair_of(s) for s in (a.kernel_size, a.stride or a.kernel_size, a.padding)))
    for axis, (kernel, stride, padding) in zip((2, 3), settings):

        def pooled(eye):
            if not a.divisor_override:
                return F.avg_pool1d(eye, kernel, stride, padding, a.ceil_mode, a.count_include_pad)
            settings = (1, kernel), (1, stride), (0, padding), a.ceil_mode
            return F.avg_pool2d(eye.unsqueeze(2), *settings, divisor_override=1).squeeze(2)

        x = x if (kernel, stride) == (1, 1) else by_matrix(r, x, axis, pooled)
    return binary(r, "mul", x, 1 / a.divisor_override) if a.divisor_override else x


@op("adaptive_max_pool2d", "adaptive_max_pool1d")
def _adaptive_max(r, a):
    x, sides = with_channels(r, a, 1 if "1d" in a.nodes[0].target.name() else 2), a.first_shape[2:]
    kernel = [extent // side for extent, side in zip(x.shape[2:], sides)]
    if any(k * side != extent for k, side, extent in zip(kernel, sides, x.shape[2:])):
        raise Unsupported("adaptive max pooling of windows that are not all alike")
    if len(kernel) == 2 and are_square(kernel):
        pooled = r.emit("max_pool", [x], a.first_shape, kernel=kernel, stride=kernel, padding=[0, 0])
        return [pooled, None]
    for axis, (numbers, side) in enumerate(zip(kernel, sides), 2):
        x = largest_along(r, x, axis, numbers, numbers, 0, side)
    return [x, None]


@op("adaptive_avg_pool2d")
def _adaptive(r, a):
    return r.emit("resize", [with_channels(r, a)], a.shape, size=a.shape[2:], mode="average")


@op("upsample_bilinear2d.vec", "upsample_bilinear2d")
def _bilinear(r, a):
    return _resized(r, a, "corners" if a.align_corners else "bilinear")


@op("upsample_nearest2d.vec", "upsample_nearest2d")
def _nearest(r, a):
    return _resized(r, a, "nearest")


def _resized(r, a, mode):
    """By the ratio of the sizes, as `resize` does it, unless PyTorch goes by factors of which the sizes are rounded."""
    x, sides = r.value(a.get("input", a.get("self"))), a.shape[2:]
    factors = a.get("scale_factors") or [a.get("scales_h"), a.get("scales_w")]
    if mode != "corners" and any(f and f * side != to for f, side, to in zip(factors, x.shape[2:], sides)):
        if a.get("scale_factors") is None:
            raise Unsupported("resizing by factors that are not the ratio of the sizes; name the sizes")
        return _by_axis(r, a)
    return r.emit("resize", [x], a.shape, size=sides, mode=mode)


@op("adaptive_avg_pool1d")
def _adaptive_row(r, a):
    x = r.value(a.self)
    if a.shape[-1] != 1:
        x = with_channels(r, a, 1)
        return by_matrix(r, x, 2, lambda eye: F.adaptive_avg_pool1d(eye, a.shape[-1]))
    return r.emit("mean", [x], a.shape, axes=[len(x.shape) - 1], keep=True)


@op("col2im")
def _fold(r, a):
    """Windows put back, [N,C*h*w,L]: side by side, or, a step apart, added up place by place."""
    x, sides, kernel = r.value(a.self), a.shape[2:], pair_of(a.kernel_size)
    plain = set(pair_of(a.padding)) == {0} and set(pair_of(a.dilation)) == {1}
    stride = pair_of(a.stride)
    if not plain or stride not in (kernel, [1, 1]):
        raise Unsupported("fold of windows that are neither side by side nor one step apart, or padded")
    n, c = a.shape[:2]
    counts = [(side - k) // s + 1 for side, k, s in zip(sides, kernel, stride)]
    if [count * k for count, k in zip(counts, kernel)] == sides:
        apart = reshaped(r, x, [n, c, *kernel, *counts])
        turned = [n, c, counts[0], kernel[0], counts[1], kernel[1]]
        return reshaped(r, r.emit("permute", [apart], turned, axes=[0, 1, 4, 2, 5, 3]), a.shape)
    if stride != [1, 1]:
        raise Unsupported("fold of windows that leave a rest")
    places, total = reshaped(r, x, [n, c, kernel[0] * kernel[1], *counts]), None
    for at in range(kernel[0] * kernel[1]):
        part = reshaped(r, sliced(r, places, 2, at, at + 1), [n, c, *counts])
        for axis, before in zip((2, 3), (at // kernel[1], at % kernel[1])):
            behind = a.shape[axis] - part.shape[axis] - before
            shape = [*part.shape[:axis], a.shape[axis], *part.shape[axis + 1 :]]
            if before or behind:
                part = r.emit("pad", [part], shape, axis=axis, before=before, behind=behind, value=0)
        total = part if total is None else binary(r, "add", total, part)
    return total


def by_matrix(r, x, axis, resized):
    """An axis whose numbers become sums of them, weighed by known numbers: a product with what becomes of ones."""
    extent, last = x.shape[axis], len(x.shape) - 1
    weights = resized(torch.eye(extent).unsqueeze(1)).squeeze(1)  # [from, to]
    axes = list(range(len(x.shape)))
    axes[axis], axes[last] = last, axis

    def turned(value, shape):
        return value if axis == last else r.emit("permute", [value], shape, axes=axes)

    x = turned(x, [x.shape[k] for k in axes])
    shape = [*x.shape[:-1], weights.shape[1]]
    y = r.emit("matmul", [x, r.value(Known((weights, weights)))], shape)
    return turned(y, [shape[k] for k in axes])


@op(
    "upsample_linear1d.vec",
    "upsample_nearest1d.vec",
    "upsample_bicubic2d.vec",
    "upsample_trilinear3d.vec",
    "upsample_nearest3d.vec",
    "_upsample_nearest_exact1d.vec",
    "_upsample_nearest_exact2d.vec",
    "_upsample_nearest_exact3d.vec",
    "_upsample_bilinear2d_aa.vec",
    "_upsample_bicubic2d_aa.vec",
)
def _by_axis(r, a):
    """Resizing that works along one axis after another."""
    x, target = r.value(a.input), a.nodes[0].target
    spatial = len(x.shape) - 2
    corners = [] if a.get("align_corners") is None else [a.align_corners]
    for at in range(spatial):

        def resized(eye, at=at):
            """[N,1,L] as images that are resized along one axis; along the others they are two numbers wide, which
            stay."""
            sides = [2] * spatial
            sides[at] = eye.shape[2]
            apart = [1] * spatial
            apart[at] = eye.shape[2]
            image = eye.reshape(-1, 1, *apart).expand(-1, 1, *sides).contiguous()
            size = factors = None
            if a.scale_factors is None:
                size = [a.shape[2 + k] if k == at else 2 for k in range(spatial)]
            else:
                factors = [float(a.scale_factors[k]) if k == at else 1.0 for k in range(spatial)]
            made = target(image, size, *corners, factors).movedim(2 + at, 2)
            return made.flatten(3)[..., 0] if spatial > 1 else made

        x = by_matrix(r, x, 2 + at, resized)
    return x
