"""Numbers by their places: rows of tables, indexes."""

from __future__ import annotations

import torch

from ..values import ROWS, Known, Unsupported, depends_on_rows
from .registry import op, reshaped
from .shapes import sliced
from .elements import binary, compared


@op("embedding")
def _embedding(r, a):
    padding = None if a.get("padding_idx", -1) in (-1, None) else a.padding_idx
    return r.emit("embedding", [r.value(a.weight), r.value(a.indices)], a.shape, padding=padding)


def _from_the_front(index, extent):
    """Known places of an axis, counted from its front; a known mask is the places it lets through."""
    tensors = [t.nonzero().flatten() if t.dtype == torch.bool else t for t in index.tensors]
    return Known(tuple(torch.where(t < 0, t + extent, t).long().cpu() for t in tensors))


def _taken(r, x, axis, index, shape):
    """Slices of an axis by known or fed numbers: rows of a table, as an embedding has them."""
    if isinstance(index, Known) and not isinstance(x.shape[axis], str):
        index = _from_the_front(index, x.shape[axis])
        places = index.first
        begin = int(places[0]) if places.ndim == 1 and len(places) else 0
        if not depends_on_rows(index.shape) and torch.equal(
            places, torch.arange(begin, begin + max(1, places.numel()))
        ):
            return reshaped(r, sliced(r, x, axis, begin, begin + len(places)), shape)
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
    if given == [0, 1] and _is_every_row(a.indices[0]):
        return _taken_of_rows(r, r.value(a.self), *a.indices[:2], a.shape)
    if len(given) != 1:
        raise Unsupported("an index of several axes at once")
    return _taken(r, r.value(a.self), given[0], a.indices[given[0]], a.shape)


def _is_every_row(index) -> bool:
    """0, 1, 2, ... up to the last row, along one axis."""
    return isinstance(index, Known) and all(
        torch.equal(tensor.flatten().long().cpu(), torch.arange(rows))
        for tensor, rows in zip(index.tensors, ROWS)
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
        raise Unsupported("other places of every row; one number a row of [rows,T,C] can be")
    places = reshaped(r, places, ["rows", 1, 1])

    def standing_for(numbers):
        same = compared(r, "eq", places, Known((numbers, numbers)), ["rows", 1, x.shape[1]])
        return r.emit("cast", [same], same.shape)

    front = torch.arange(x.shape[1], dtype=torch.float32)
    # A place counted from the end, -1 for the last, stands for the same one.
    chosen = binary(r, "add", standing_for(front), standing_for(front - x.shape[1]))
    return reshaped(r, r.emit("matmul", [chosen, x], ["rows", 1, x.shape[2]]), shape)


@op("gather")
def _gather(r, a):
    if isinstance(a.self, Known) and (a.self.first == a.self.first.flatten()[0]).all():
        number = a.self.first.flatten()[0]
        return Known(tuple(number.expand(node.meta["val"].shape) for node in a.nodes))
    raise Unsupported("takes other numbers of every row; an index of one axis for all can be")


@op("index_select")
def _index_select(r, a):
    x = r.value(a.self)
    return _taken(r, x, a.dim % len(x.shape), a.index, a.shape)
