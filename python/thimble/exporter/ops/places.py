"""Numbers taken from places and put or added there: `take_along`, `put_along` and `add_along` know other places in
every row of the last axis, `add_rows` the same places of all."""

from __future__ import annotations

import math

import torch

from ..values import Known, Unsupported, depends_on_rows
from .registry import op, axis_of, product, reshaped, broadcast
from .elements import binary, compared, masked
from .lookups import every_row, from_the_front, gathered
from .shapes import moved, sliced, with_part


def _whole(x):
    return None if x.dtype == "f32" else 1


def _cut(r, x, shape, but=None):
    """The front of each axis, of an extent that an index has."""
    for at, extent in enumerate(shape):
        if at != but and x.shape[at] != extent:
            x = sliced(r, x, at, 0, extent)
    return r.value(x)


@op("gather")
def _gather(r, a):
    if isinstance(a.self, Known) and (a.self.first == a.self.first.flatten()[0]).all():
        number = a.self.first.flatten()[0]
        return Known(tuple(number.expand(node.meta["val"].shape) for node in a.nodes))
    x = r.value(a.self)
    axis = axis_of(a.dim, x.shape)
    if isinstance(x.shape[axis], str):
        raise Unsupported("takes numbers of other rows")
    x = _cut(r, x, a.shape, axis)
    if isinstance(a.index, Known) and not depends_on_rows(a.index.shape[axis : axis + 1]):
        return gathered(r, x, axis, a.index, a.shape)
    x, index = moved(r, x, axis, len(x.shape) - 1), r.value(a.index)
    index = moved(r, index, axis, len(x.shape) - 1)
    taken = r.emit("take_along", [x, index], index.shape, x.dtype, whole=_whole(x))
    return moved(r, taken, len(x.shape) - 1, axis)


def _changed(r, x, axis, index, change):
    """x with what `change` makes of the part of it that the index reaches."""
    shape = index.shape
    at = next((at for at in range(len(shape)) if at != axis and x.shape[at] != shape[at]), None)
    if at is None:
        return change(x)
    part = r.value(sliced(r, x, at, 0, shape[at]))
    return with_part(r, x, (at, 0, shape[at]), _changed(r, part, axis, index, change))


def _along(r, op_name, x, axis, index, source, **attrs):
    """put_along or add_along of an axis, whichever it is."""
    last = len(x.shape) - 1
    turned = [moved(r, r.value(item), axis, last) for item in (index, source)]
    x = moved(r, x, axis, last)
    inputs = [x, *turned] if op_name == "put_along" else turned[::-1]
    made = r.emit(op_name, inputs, x.shape, x.dtype, whole=_whole(x), **attrs)
    return moved(r, made, last, axis)


def _put(r, x, axis, index, source):
    return _changed(r, x, axis, index, lambda part: _along(r, "put_along", part, axis, index, source))


def _added(r, x, axis, index, source, zeros=False):
    def change(part):
        sums = _along(r, "add_along", part, axis, index, source, width=part.shape[axis])
        return sums if zeros else binary(r, "add", part, sums)

    return _changed(r, x, axis, index, change)


def _operands(r, a):
    """The tensor, the axis, the index, and as much of the source as the index has."""
    x = r.value(a.self)
    axis = axis_of(a.dim, x.shape)
    if isinstance(x.shape[axis], str):
        raise Unsupported("writes to other rows")
    index = r.value(a.index)
    source = a.get("src")
    if source is None:
        source = a.value
        same = tuple(torch.full(node.args[2].meta["val"].shape, source, dtype=torch.float32) for node in a.nodes)
        return x, axis, index, Known(same) if x.dtype == "f32" else Known(tuple(t.int() for t in same))
    return x, axis, index, _cut(r, r.value(source), index.shape)


def _is_zero(item):
    return isinstance(item, Known) and not any(tensor.any() for tensor in item.tensors)


@op("scatter.value", "scatter.src")
def _scatter(r, a):
    return _put(r, *_operands(r, a))


@op("scatter_add")
def _scatter_add(r, a):
    return _added(r, *_operands(r, a), zeros=_is_zero(a.self))


@op("scatter.reduce", "scatter.value_reduce")
def _scatter_by(r, a):
    if a.reduce != "add":
        raise Unsupported(f"with reduce='{a.reduce}'; 'add' can be")
    return _added(r, *_operands(r, a), zeros=_is_zero(a.self))


@op("scatter_reduce.two")
def _scatter_reduce(r, a):
    if a.reduce not in ("sum", "mean"):
        raise Unsupported(f"with reduce='{a.reduce}'; 'sum' and 'mean' can be")
    x, axis, index, source = _operands(r, a)
    ones = r.emit("expand", [Known((torch.ones(1),) * 2)], index.shape)
    base = x if a.include_self else _put(r, x, axis, index, binary(r, "mul", ones, 0.0))
    total = _added(r, base, axis, index, source, zeros=a.include_self and _is_zero(a.self))
    if a.reduce == "sum":
        return total
    nothing = r.emit("expand", [Known((torch.zeros(1),) * 2)], x.shape)
    counts = _added(r, nothing, axis, index, ones, zeros=True)
    if a.include_self:
        return binary(r, "div", total, binary(r, "add", counts, 1.0))
    empty = compared(r, "eq", counts, 0.0, counts.shape)
    return binary(r, "div", total, masked(r, empty, 1.0, counts))


def _rows_added(r, x, ids, source, zeros):
    """x [R,...] with slices [M,...] added at numbers [M] of its first axis."""
    if isinstance(x.shape[0], str):
        raise Unsupported("adds to other rows")
    rest = x.shape[1:]
    width = product(rest)
    flat = reshaped(r, source, [ids.shape[0], width])
    sums = reshaped(r, r.emit("add_rows", [flat, ids], [x.shape[0], width], rows=x.shape[0]), x.shape)
    return sums if zeros else binary(r, "add", x, sums)


@op("index_add")
def _index_add(r, a):
    x, source = r.value(a.self), r.value(a.source)
    axis = axis_of(a.dim, x.shape)
    ids = reshaped(r, _places(a.index, x.shape[axis]), [source.shape[axis] if source.shape else 1])
    x, source = moved(r, x, axis, 0), moved(r, source, axis, 0)
    source = source if a.alpha == 1 else binary(r, "mul", source, float(a.alpha))
    return moved(r, _rows_added(r, x, ids, source, _is_zero(a.self)), 0, axis)


def _places(index, extent):
    return from_the_front(index, extent) if isinstance(index, Known) and not isinstance(extent, str) else index


@op("index_copy")
def _index_copy(r, a):
    x, source = r.value(a.self), r.value(a.source)
    axis = axis_of(a.dim, x.shape)
    return _slices_put(r, x, axis, _places(a.index, x.shape[axis]), source)


@op("index_fill.int_Scalar")
def _index_fill(r, a):
    x = r.value(a.self)
    axis = axis_of(a.dim, x.shape)
    index = reshaped(r, _places(a.index, x.shape[axis]), [product(a.index.shape)])
    shape = x.shape[:axis] + index.shape + x.shape[axis + 1 :]
    source = r.emit("expand", [Known((torch.tensor([float(a.value)]),) * 2)], shape)
    return _slices_put(r, x, axis, index, source)


def _slices_put(r, x, axis, index, source):
    """x with slices of an axis in place of those at numbers [M]."""
    if isinstance(x.shape[axis], str):
        raise Unsupported("writes to other rows")
    shape = x.shape[:axis] + [source.shape[axis]] + x.shape[axis + 1 :]
    along = [source.shape[axis] if at == axis else 1 for at in range(len(shape))]
    return _put(r, x, axis, _repeated(r, reshaped(r, index, along), shape), source)


def _repeated(r, index, shape):
    """Whole numbers for every place of a shape, as numbers in f32, which has them exactly."""
    if index.shape == shape:
        return index
    index = r.emit("mul", [index, 1.0], index.shape, "i32", whole=1)
    return r.emit("expand", [index], shape, "i32")


@op("index_put", "_unsafe_index_put")
def _index_put(r, a):
    x, values = r.value(a.self), a.get("values")
    given = [at for at, index in enumerate(a.indices) if index is not None]
    indexes = [a.indices[at] for at in given]
    masks = [index for index in indexes if _is_mask(index)]
    if masks and not all(isinstance(index, Known) and not depends_on_rows(index.shape) for index in indexes):
        return _put_by_mask(r, a, x, given, indexes, values)
    if len(indexes) > 1 and every_row(indexes[0]) and given == list(range(len(given))):
        return _put_in_rows(r, a, x, indexes, values)
    if masks:
        given, indexes = _places_of_masks(given, indexes)
    return _put_at(r, a, x, given, indexes, values)


def _is_mask(index):
    return index.first.dtype == torch.bool if isinstance(index, Known) else index.dtype == "u8"


def _places_of_masks(given, indexes):
    axes, places = [], []
    for at, index in zip(given, indexes):
        if not _is_mask(index):
            axes, places = [*axes, at + len(axes) - len(places)], [*places, index]
            continue
        for k, numbers in enumerate(index.first.nonzero(as_tuple=True)):
            axes, places = [*axes, at + k], [*places, Known((numbers, numbers))]
    return axes, places


def _put_by_mask(r, a, x, given, indexes, values):
    if len(indexes) != 1 or given != [0] or a.accumulate or math.prod(values.shape) != 1:
        raise Unsupported("a mask as an index with as many values as it has ones; write it with torch.where")
    mask = r.value(indexes[0])
    mask = reshaped(r, mask, mask.shape + [1] * (len(x.shape) - len(mask.shape)))
    return masked(r, mask, reshaped(r, values, []), x)


def _spread(r, values, shape):
    """Values that an index is given, for every place that it names."""
    values = r.value(values)
    if values.shape == list(shape):
        return values
    values = reshaped(r, values, [1] * (len(shape) - len(values.shape)) + values.shape)
    return r.emit("expand", [values], shape, values.dtype)


def _put_in_rows(r, a, x, indexes, values):
    """x[rows, places] of all rows: other places in each."""
    if len(indexes) != 2 or any(len(index.shape) > 2 for index in indexes):
        raise Unsupported("an index of the rows and of several other axes")
    shape = broadcast(*(index.shape for index in indexes))
    if shape[0] != "rows":
        raise Unsupported("an index whose first axis is not that of the rows")
    values = _spread(r, values, [*shape, *x.shape[2:]])
    count = shape[1] if len(shape) == 2 else 1
    places = _places(indexes[1], x.shape[1])
    places = r.value(places)
    places = _repeated(r, reshaped(r, places, [1] * (len(shape) - len(places.shape)) + places.shape), shape)
    places = reshaped(r, places, ["rows", count, *[1] * (len(x.shape) - 2)])
    source = reshaped(r, values, ["rows", count, *x.shape[2:]])
    places = _repeated(r, places, source.shape)
    return _added(r, x, 1, places, source) if a.accumulate else _put(r, x, 1, places, source)


def _put_at(r, a, x, axes, indexes, values):
    """x[:, i, j] by numbers that do not differ from row to row: those axes become one, in front."""
    extents = [x.shape[axis] for axis in axes]
    if any(isinstance(extent, str) for extent in extents):
        raise Unsupported("writes to other rows")
    if len(axes) > 1 and not all(isinstance(index, Known) for index in indexes):
        raise Unsupported("an index of several axes at once by numbers that are not known beforehand")
    places = indexes[0]
    if isinstance(places, Known):
        fronts = [from_the_front(index, extent) for index, extent in zip(indexes, extents)]
        places = Known(
            tuple(
                sum(f.tensors[k] * math.prod(extents[at + 1 :]) for at, f in enumerate(fronts))
                for k in range(2)
            )
        )
    shape, rest = places.shape, [at for at in range(len(x.shape)) if at not in axes]
    together = axes == list(range(axes[0], axes[0] + len(axes)))
    before = [x.shape[at] for at in rest if at < axes[0]] if together else []
    behind = [x.shape[at] for at in rest][len(before) :]
    values = _spread(r, values, [*before, *shape, *behind])
    order = [*range(len(before), len(before) + len(shape)), *range(len(before))]
    order += range(len(order), len(values.shape))
    if order != sorted(order):
        values = r.emit("permute", [values], [values.shape[at] for at in order], values.dtype, axes=order)
    values = reshaped(r, values, [product(shape), *(x.shape[at] for at in rest)])
    order = [*axes, *rest]
    turned = r.emit("permute", [x], [x.shape[at] for at in order], x.dtype, axes=order)
    flat = reshaped(r, turned, [math.prod(extents), *(x.shape[at] for at in rest)])
    ids = reshaped(r, places, [product(shape)])
    if a.accumulate:
        made = _rows_added(r, flat, ids, values, _is_zero(a.self))
    else:
        made = _slices_put(r, flat, 0, ids, values)
    back = [order.index(at) for at in range(len(order))]
    return r.emit("permute", [reshaped(r, made, turned.shape)], x.shape, x.dtype, axes=back)
