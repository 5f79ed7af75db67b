"""Numbers by their places: rows of tables, indexes."""

from __future__ import annotations

import math

import torch

from ..values import Known, Unsupported, Value, depends_on_rows, exported_rows
from .registry import op, product, reshaped
from .shapes import in_runs, moved, sliced
from .elements import binary, compared


@op("embedding")
def _embedding(r, a):
    padding = None if a.get("padding_idx", -1) in (-1, None) else a.padding_idx
    return r.emit("embedding", [r.value(a.weight), r.value(a.indices)], a.shape, padding=padding)


def from_the_front(index, extent):
    """Known places of an axis, counted from its front; a known mask is the places it lets through."""
    tensors = [t.nonzero().flatten() if t.dtype == torch.bool else t for t in index.tensors]
    return Known(tuple(torch.where(t < 0, t + extent, t).long().cpu() for t in tensors))


def _taken(r, x, axis, index, shape):
    """Slices of an axis by known or fed numbers: rows of a table, as an embedding has them."""
    if isinstance(index, Known) and not isinstance(x.shape[axis], str):
        index = from_the_front(index, x.shape[axis])
        places = index.first
        begin = int(places[0]) if places.ndim == 1 and len(places) else 0
        if not depends_on_rows(index.shape) and torch.equal(
            places, torch.arange(begin, begin + max(1, places.numel()))
        ):
            return reshaped(r, sliced(r, x, axis, begin, begin + len(places)), shape)
        if places.ndim == 1 and not depends_on_rows(index.shape):
            taken = in_runs(r, x, axis, places.tolist())
            if taken is not None:
                return reshaped(r, taken, shape)
    ids = r.value(index)
    if ids.dtype != "i32":
        raise Unsupported("a mask as an index, whose result has no fixed size; choose torch.where")
    others = [at for at in range(len(x.shape)) if at != axis]
    if isinstance(x.shape[axis], str):
        raise Unsupported("an index of the rows")
    if axis != 0:
        extents = [x.shape[at] for at in (axis, *others)]
        x = r.emit("permute", [x], extents, x.dtype, axes=[axis, *others])
    width, rows = 1, False
    for extent in x.shape[1:]:
        rows = rows or isinstance(extent, str)
        width *= int(extent.partition("*")[2] or 1) if isinstance(extent, str) else extent
    width = width if not rows else "rows" if width == 1 else f"rows*{width}"
    taken = r.emit("embedding", [reshaped(r, x, [x.shape[0], width]), ids], [*ids.shape, width])
    taken = reshaped(r, taken, [*ids.shape, *x.shape[1:]])
    if axis != 0:  # the new axes go where the old one was
        count = len(ids.shape)
        axes = [*range(count, count + axis), *range(count), *range(count + axis, count + len(others))]
        taken = r.emit("permute", [taken], shape, x.dtype, axes=axes)
    return reshaped(r, taken, shape)


@op("index.Tensor")
def _index(r, a):
    given = [at for at, index in enumerate(a.indices) if index is not None]
    if given == [0, 1] and every_row(a.indices[0]):
        return _taken_of_rows(r, r.value(a.self), *a.indices[:2], a.shape)
    if len(given) > 1:
        return _taken_of_several(r, r.value(a.self), given, [a.indices[at] for at in given], a.shape)
    return _taken(r, r.value(a.self), given[0], a.indices[given[0]], a.shape)


def every_row(index) -> bool:
    """0, 1, 2, ... up to the last row, along one axis."""
    return isinstance(index, Known) and all(
        torch.equal(tensor.flatten().long().cpu(), torch.arange(rows))
        for tensor, rows in zip(index.tensors, exported_rows())
    )


def _taken_of_rows(r, x, rows, places, shape):
    """x[rows, places] of all rows: the same places of each, where they are known; else one of each."""
    if isinstance(places, Known):
        axis = next(i for i, extent in enumerate(rows.shape) if extent == "rows")
        rank = max(len(rows.shape), len(places.shape))
        at = axis + rank - len(rows.shape)
        apart = [1] * (rank - len(places.shape)) + places.shape
        if apart[at] == 1 and not depends_on_rows(apart):
            flat = Known(tuple(tensor.reshape(-1) for tensor in places.tensors))
            count, rest = flat.shape[0], x.shape[2:]
            taken = _taken(r, x, 1, flat, ["rows", count, *rest])
            others = apart[:at] + apart[at + 1 :]
            taken = reshaped(r, taken, ["rows", *others, *rest])
            if at:
                axes = [*range(1, at + 1), 0, *range(at + 1, len(taken.shape))]
                taken = r.emit("permute", [taken], shape, x.dtype, axes=axes)
            return reshaped(r, taken, shape)
    places = r.value(places)
    if places.shape != ["rows"] or len(x.shape) != 3 or x.dtype != "f32":
        return _taken_in_each(r, x, rows, places, shape)
    places = reshaped(r, places, ["rows", 1, 1])

    def standing_for(numbers):
        same = compared(r, "eq", places, Known((numbers, numbers)), ["rows", 1, x.shape[1]])
        return r.emit("cast", [same], same.shape)

    front = torch.arange(x.shape[1], dtype=torch.float32)
    # A place counted from the end, -1 for the last, stands for the same one.
    chosen = binary(r, "add", standing_for(front), standing_for(front - x.shape[1]))
    return reshaped(r, r.emit("matmul", [chosen, x], ["rows", 1, x.shape[2]]), shape)


def _taken_in_each(r, x, rows, places, shape):
    """x[rows, places] of other places in every row: `take_along` of its second axis."""
    if places.dtype != "i32" or "rows" not in rows.shape:
        raise Unsupported("other places of every row; whole numbers can be")
    axis, rank = rows.shape.index("rows"), max(len(rows.shape), len(places.shape))
    at = axis + rank - len(rows.shape)
    apart = [1] * (rank - len(places.shape)) + places.shape
    if at != 0 or apart[0] != "rows":
        raise Unsupported("other places of every row, whose first axis is not that of the rows")
    count, rest = product(apart[1:]), x.shape[2:]
    width, last = product(rest), 2
    flat = reshaped(r, x, ["rows", x.shape[1], width])
    turned = moved(r, flat, 1, last)
    index = reshaped(r, places, ["rows", 1, count])
    behind = Value(compared(r, "lt", index, 0.0, index.shape).name, index.shape, "i32")  # counted from the end
    index = binary(r, "add", index, binary(r, "mul", behind, float(x.shape[1])))
    index = index if width == 1 else r.emit("expand", [index], ["rows", width, count], "i32")
    whole = None if x.dtype == "f32" else 1
    taken = r.emit("take_along", [turned, index], ["rows", width, count], x.dtype, whole=whole)
    return reshaped(r, moved(r, taken, last, 1), shape)


def _taken_of_several(r, x, axes, indexes, shape):
    """x[:, i, j] by known numbers: those axes become one, and so do the indexes."""
    extents = [x.shape[axis] for axis in axes]
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    if not adjacent or any(isinstance(e, str) for e in extents):
        raise Unsupported("an index of several axes that do not lie side by side, or of the rows")
    if not all(isinstance(index, Known) and index.first.dtype != torch.bool for index in indexes):
        raise Unsupported("an index of several axes at once by numbers that are not known beforehand")
    fronts = [from_the_front(index, extent) for index, extent in zip(indexes, extents)]
    places = tuple(
        sum(f.tensors[k] * math.prod(extents[at + 1 :]) for at, f in enumerate(fronts)) for k in range(2)
    )
    one = x.shape[: axes[0]] + [math.prod(extents)] + x.shape[axes[-1] + 1 :]
    return _taken(r, reshaped(r, x, one), axes[0], Known(places), shape)


def gathered(r, x, axis, index, shape):
    """By known numbers: the axes along which they differ become one with the axis that they are places of."""
    numbers, _ = index.one_row()
    same = [at for at in range(len(shape)) if at != axis and _alike(numbers, at)]
    differ = [at for at in range(len(shape)) if at != axis and at not in same]
    order = [*same, *differ, axis]
    extents = [x.shape[at] for at in differ]
    count = math.prod(extents)
    for at in same:
        numbers = numbers.narrow(at, 0, 1)
    numbers = numbers.permute(order).reshape(count, -1)
    places = torch.arange(count)[:, None] * x.shape[axis] + numbers
    lead = [x.shape[at] for at in same]
    turned = r.emit("permute", [x], [x.shape[at] for at in order], x.dtype, axes=order)
    flat = reshaped(r, turned, [*lead, count * x.shape[axis]])
    wide = [*lead, count * shape[axis]]
    taken = _taken(r, flat, len(lead), Known((places.flatten(), places.flatten())), wide)
    taken = reshaped(r, taken, [shape[at] for at in order])
    back = [order.index(at) for at in range(len(order))]
    return r.emit("permute", [taken], shape, x.dtype, axes=back)


def _alike(numbers, axis) -> bool:
    return torch.equal(numbers, numbers.narrow(axis, 0, 1).expand_as(numbers))


def places_as_shares(r, index, extent):
    """Ones at the places, along a new last axis of `extent` numbers, and zeros elsewhere."""
    index = reshaped(r, index, [*index.shape, 1])
    front = torch.arange(extent, dtype=torch.float32)
    same = compared(r, "eq", index, Known((front, front)), [*index.shape[:-1], extent])
    return r.emit("cast", [same], same.shape)


@op("one_hot")
def _one_hot(r, a):
    if a.num_classes < 1:
        raise Unsupported("as many classes as the numbers have; give num_classes")
    ones = places_as_shares(r, r.value(a.self), a.num_classes)
    return Value(ones.name, ones.shape, "i32")


@op("unfold")
def _unfold(r, a):
    """Windows of an axis, which lie along a new last one."""
    x = r.value(a.self)
    axis = a.dimension % len(x.shape)
    if isinstance(x.shape[axis], str):
        raise Unsupported("windows of the rows")
    begins = torch.arange(0, x.shape[axis] - a.size + 1, a.step)
    places = begins[:, None] + torch.arange(a.size)
    between = x.shape[:axis] + list(places.shape) + x.shape[axis + 1 :]
    taken = _taken(r, x, axis, Known((places, places)), between)
    axes = [at for at in range(len(between)) if at != axis + 1] + [axis + 1]
    return r.emit("permute", [taken], a.shape, x.dtype, axes=axes)


@op("diagonal")
def _diagonal(r, a):
    x = r.value(a.self)
    one, two = a.dim1 % len(x.shape), a.dim2 % len(x.shape)
    order = [at for at in range(len(x.shape)) if at not in (one, two)] + [one, two]
    turned = r.emit("permute", [x], [x.shape[at] for at in order], x.dtype, axes=order)
    count, last = a.shape[-1], len(order) - 2
    front = torch.arange(count)
    rows, columns = front + max(0, -a.offset), front + max(0, a.offset)
    return _taken_of_several(
        r, turned, [last, last + 1], [Known((rows, rows)), Known((columns, columns))], a.shape
    )


@op("index_select")
def _index_select(r, a):
    x = r.value(a.self)
    return _taken(r, x, a.dim % len(x.shape), a.index, a.shape)
