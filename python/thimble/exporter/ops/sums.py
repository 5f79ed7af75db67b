"""Sums, means and shares over axes."""

from __future__ import annotations

import torch

from ..values import Known, Unsupported, Value
from .registry import op, axis_of, reshaped
from .elements import FARTHEST, as_floats, binary, compared, mapped, masked, ones_of
from .shapes import moved, parts, sliced


def reduced(r, kind, x, dims, keep):
    x = r.value(x)
    whole = kind == "max" and x.dtype == "i32" or kind == "sum" and x.dtype != "f32"  # counts, ids and places
    x = x if x.dtype == "i32" and whole else as_floats(r, x)
    axes = sorted({axis_of(d, x.shape) for d in dims}) if dims else list(range(len(x.shape)))
    shape = (
        [1 if i in axes else e for i, e in enumerate(x.shape)]
        if keep
        else [e for i, e in enumerate(x.shape) if i not in axes]
    )
    dtype = "i32" if whole else "f32"
    return r.emit(kind, [x], shape, dtype, axes=axes, keep=bool(keep), whole=1 if whole else None)


for _name in ("sum", "mean"):
    op(_name, f"{_name}.dim", f"{_name}.dim_IntList")(
        lambda r, a, kind=_name: reduced(r, kind, a.self, a.get("dim"), a.get("keepdim", False))
    )


@op("var.correction", "var_mean.correction")
def _var(r, a):
    x = r.value(a.self)
    dims = a.dim or list(range(len(x.shape)))
    count, rows = 1, None
    for d in dims:
        extent = x.shape[axis_of(d, x.shape)]
        if isinstance(extent, str):
            rows = extent
        else:
            count *= extent
    off = 1 if a.correction is None else a.correction
    mean = reduced(r, "mean", x, dims, True)
    squares = mapped(r, "square", binary(r, "sub", x, mean))
    if rows is None or not off:
        variance = reduced(r, "mean", squares, dims, a.keepdim)
        variance = binary(r, "mul", variance, count / (count - off) if off else 1.0)
    else:
        every = binary(r, "mul", rows, count)
        variance = binary(r, "div", reduced(r, "sum", squares, dims, a.keepdim), binary(r, "sub", every, off))
    if "var_mean" in str(a.nodes[0].target):
        return [variance, reduced(r, "mean", x, dims, a.keepdim)]
    return variance


def largest(r, x, axes, keep):
    """Of x, over axes; the mean of those that are it, so that each of them has its share of the gradient."""
    top = reduced(r, "max", x, axes, True)
    those = r.emit("cast", [compared(r, "eq", x, top, x.shape)], x.shape)
    total = reduced(r, "sum", binary(r, "mul", x, those), axes, keep)
    return binary(r, "div", total, reduced(r, "sum", those, axes, keep))


def place_of_largest(r, x, axis, keep, free=None):
    """The first place of the largest number along an axis, as a whole number. `free`: ones where it may be."""
    top = reduced(r, "max", x, [axis], True)
    extent, shape = x.shape[axis], [1] * len(x.shape)
    shape[axis] = x.shape[axis]
    behind = torch.arange(extent, 0, -1, dtype=torch.int32).reshape(shape)  # larger in front
    those = Value(compared(r, "eq", x, top, x.shape).name, x.shape, "i32")
    those = those if free is None else binary(r, "mul", those, free)
    first = binary(r, "mul", those, Known((behind, behind)))
    first = reduced(r, "max", first, [axis], keep)
    return binary(r, "sub", float(extent), first)


def signed(r, a):
    """The tensor, for the largest number of it; its negative, for the smallest."""
    x, name = r.value(a.self), a.nodes[0].target.name()
    return mapped(r, "neg", x) if "min" in name else x, "min" in name


@op("amax", "amin", "max", "min")
def _amax(r, a):
    x, negated = signed(r, a)
    top = largest(r, x, a.get("dim") or list(range(len(x.shape))), a.get("keepdim", False))
    return mapped(r, "neg", top) if negated else top


@op("argmax", "argmin")
def _argmax(r, a):
    x, _ = signed(r, a)
    if a.dim is None or isinstance(x.shape[axis_of(a.dim, x.shape)], str):
        raise Unsupported("the place of the largest number of all rows; name another axis")
    return place_of_largest(r, x, axis_of(a.dim, x.shape), a.keepdim)


@op("max.dim", "min.dim")
def _max(r, a):
    x, negated = signed(r, a)
    axis = axis_of(a.dim, x.shape)
    if isinstance(x.shape[axis], str):
        raise Unsupported("the largest number of all rows and its place; amax and amin give the number alone")
    top = largest(r, x, [axis], a.keepdim)
    return [mapped(r, "neg", top) if negated else top, place_of_largest(r, x, axis, a.keepdim)]


_MOST_BY_TURNS = 8  # numbers that are found one after another


@op("topk")
def _topk(r, a):
    """The k largest along an axis, the first of equal ones first, and their places: by turns, where they are few."""
    x = r.value(a.self)
    axis = axis_of(a.dim, x.shape)
    if isinstance(x.shape[axis], str):
        raise Unsupported("the largest numbers of all rows")
    if a.k > _MOST_BY_TURNS:
        return _ordered(r, x, axis, a.largest, a.k)
    turned, last = moved(r, x, axis, len(x.shape) - 1), len(x.shape) - 1
    left = as_floats(r, r.emit("detach", [turned], turned.shape, turned.dtype))
    left = left if a.largest else mapped(r, "neg", left)
    if a.k > 1:  # so that what was taken is no larger than any other
        left = mapped(r, "clip", left, low=-FARTHEST, high=FARTHEST)
    places, free = [], None
    for turn in range(a.k):
        places.append(place_of_largest(r, left, last, True, free))
        if turn + 1 < a.k:
            gone = compared(r, "eq", Known((torch.arange(x.shape[axis], dtype=torch.float32),) * 2), places[-1], left.shape)
            left = masked(r, gone, -FARTHEST, left)
            stays = binary(r, "sub", 1.0, Value(gone.name, left.shape, "i32"))
            free = stays if free is None else binary(r, "mul", free, stays)
    index = r.emit("concat", places, [*turned.shape[:-1], a.k], "i32", axis=last) if a.k > 1 else places[0]
    return _taken_along(r, turned, index, axis)


def _taken_along(r, turned, index, axis):
    """Numbers at places of the last axis, and the places, both with that axis where it was."""
    last = len(turned.shape) - 1
    whole = None if turned.dtype == "f32" else 1
    values = r.emit("take_along", [turned, index], index.shape, turned.dtype, whole=whole)
    return [moved(r, values, last, axis), moved(r, index, last, axis)]


def _ordered(r, x, axis, descending, count):
    """The first numbers in order, and their places: each number's rank is how many come before it, of all pairs."""
    extent, last = x.shape[axis], len(x.shape) - 1
    if extent > _MOST_IN_ORDER:
        raise Unsupported(f"an order of {extent} numbers; {_MOST_IN_ORDER} at most are sorted here, all pairs of them compared")
    turned = moved(r, x, axis, last)
    keys = as_floats(r, r.emit("detach", [turned], turned.shape, turned.dtype))
    own, other = reshaped(r, keys, [*keys.shape, 1]), reshaped(r, keys, [*keys.shape[:-1], 1, extent])
    pairs = [*keys.shape, extent]
    before = r.emit("cast", [compared(r, "gt" if descending else "lt", other, own, pairs)], pairs)
    same = r.emit("cast", [compared(r, "eq", other, own, pairs)], pairs)
    in_front = torch.ones(extent, extent).tril(-1)  # of equal numbers, those that stand in front
    before = binary(r, "add", before, binary(r, "mul", same, Known((in_front, in_front))))
    rank = reduced(r, "sum", before, [last + 1], False)
    wanted = torch.arange(count, dtype=torch.float32)[:, None]
    chosen = [*keys.shape[:-1], count, extent]
    ranks = reshaped(r, rank, [*keys.shape[:-1], 1, extent])
    those = Value(compared(r, "eq", ranks, Known((wanted, wanted)), chosen).name, chosen, "i32")
    front = torch.arange(extent, dtype=torch.int32)
    index = reduced(r, "max", binary(r, "mul", those, Known((front, front))), [last + 1], False)
    return _taken_along(r, turned, index, axis)


_MOST_IN_ORDER = 2048


@op("sort", "sort.stable", "argsort", "argsort.stable")
def _sort(r, a):
    x = r.value(a.self)
    axis = axis_of(a.dim, x.shape)
    if isinstance(x.shape[axis], str):
        raise Unsupported("an order of all rows")
    values, places = _ordered(r, x, axis, bool(a.descending), x.shape[axis])
    return places if "argsort" in a.nodes[0].target.name() else [values, places]


@op("kthvalue")
def _kth(r, a):
    x = r.value(a.self)
    axis = axis_of(a.dim, x.shape)
    values, places = _ordered(r, x, axis, False, a.k)
    pair = [sliced(r, item, axis, a.k - 1, a.k) for item in (values, places)]
    return pair if a.keepdim else [reshaped(r, item, a.first_shape) for item in pair]


@op("any", "any.dim", "any.dims", "all", "all.dim", "all.dims")
def _any(r, a):
    """Whether there is a one among a mask's; of all: whether there is no zero."""
    ones = ones_of(r, a.self)
    every = "all" in a.nodes[0].target.name()
    dims = a.get("dim")
    dims = [dims] if isinstance(dims, int) else dims
    found = reduced(r, "max", binary(r, "sub", 1.0, ones) if every else ones, dims, a.get("keepdim", False))
    found = binary(r, "sub", 1.0, found) if every else found
    return Value(found.name, found.shape, "u8")


@op("prod.dim_int")
def _prod(r, a):
    x = r.value(a.self)
    axis = axis_of(a.dim, x.shape)
    if isinstance(x.shape[axis], str):
        raise Unsupported("a product of the rows")
    if x.shape[axis] > 64:
        products = r.emit("cumprod", [as_floats(r, x)], x.shape, axis=axis)
        return reshaped(r, parts(r, products, axis, [x.shape[axis] - 1, 1])[1], a.shape)
    factors = parts(r, x, axis, [1] * x.shape[axis])
    result = factors[0]
    for factor in factors[1:]:
        result = binary(r, "mul", result, factor)
    return reshaped(r, result, a.shape)


@op("softmax.int", "_softmax")
def _softmax(r, a):
    x = r.value(a.self)
    return r.emit("softmax", [x], x.shape, axis=axis_of(a.dim, x.shape))


@op("log_softmax.int", "_log_softmax")
def _log_softmax(r, a):
    x = r.value(a.self)
    return r.emit("log_softmax", [x], x.shape, axis=axis_of(a.dim, x.shape))


@op("logsumexp")
def _logsumexp(r, a):
    """Of x: x - log_softmax(x), the same for all; their mean."""
    x = r.value(a.self)
    if len(a.dim) != 1:
        raise Unsupported("over several axes; one can be")
    shares = r.emit("log_softmax", [x], x.shape, axis=axis_of(a.dim[0], x.shape))
    return reduced(r, "mean", binary(r, "sub", x, shares), a.dim, a.keepdim)


def root(r, x, order):
    """Of numbers from 0 on. At 0 the gradient of what they are sums of is 0, which an infinite slope would spoil: there
    it is the root of 1, less 1."""
    zero = r.emit("cast", [compared(r, "eq", x, 0.0, x.shape)], x.shape)
    x = binary(r, "add", x, zero)
    x = mapped(r, "sqrt", x) if order == 2 else mapped(r, "pow", x, exponent=1 / order)
    return binary(r, "sub", x, zero)


@op("linalg_vector_norm", "norm.ScalarOpt_dim")
def _norm(r, a):
    order = a.get("ord", a.get("p"))
    if order == 2:
        return root(r, reduced(r, "sum", mapped(r, "square", a.self), a.dim, a.keepdim), 2)
    sizes = mapped(r, "abs", a.self)
    if order == 1:
        return reduced(r, "sum", sizes, a.dim, a.keepdim)
    if order == float("inf"):
        return largest(r, sizes, a.dim or list(range(len(sizes.shape))), a.keepdim)
    if order < 1:
        raise Unsupported(f"a norm of order {order}; those from 1 on can be")
    powers = reduced(r, "sum", mapped(r, "pow", sizes, exponent=float(order)), a.dim, a.keepdim)
    return root(r, powers, order)


@op("std.correction")
def _std(r, a):
    return root(r, _var(r, a), 2)


@op("cumsum")
def _cumsum(r, a):
    """A product with a triangle of ones."""
    x = r.value(a.self)
    axis, last = axis_of(a.dim, x.shape), len(x.shape) - 1
    if isinstance(x.shape[axis], str):
        raise Unsupported("sums up over the rows")
    axes = list(range(len(x.shape)))
    axes[axis], axes[last] = last, axis

    def turned(value, shape):
        return value if axis == last else r.emit("permute", [value], shape, x.dtype, axes=axes)

    triangle = torch.ones(x.shape[axis], x.shape[axis]).triu()
    shape = [x.shape[k] for k in axes]
    factors = [turned(x, shape), r.value(Known((triangle, triangle)))]
    if last == 0:
        factors[0] = reshaped(r, factors[0], [1, *shape])
    whole = None if x.dtype == "f32" else 1
    dtype = "f32" if whole is None else "i32"
    sums = r.emit("matmul", factors, [1, *shape] if last == 0 else shape, dtype, whole=whole)
    return turned(reshaped(r, sums, shape), x.shape)


@op("cumprod")
def _cumprod(r, a):
    x = as_floats(r, r.value(a.self))
    axis = axis_of(a.dim, x.shape)
    if isinstance(x.shape[axis], str):
        raise Unsupported("multiplies up over the rows")
    return r.emit("cumprod", [x], x.shape, axis=axis)
