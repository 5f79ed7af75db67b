"""Ops that move numbers around: `reshape`, `permute`, `slice`, `expand`, `concat` and `pad` are all it takes."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..values import Known, Unsupported, Value, exported_rows
from .registry import op, axis_of, reshaped, broadcast


@op(
    "view",
    "reshape",
    "flatten.using_ints",
    "unflatten.int",
    "unsqueeze",
    "squeeze",
    "squeeze.dim",
    "squeeze.dims",
    "_unsafe_view",
    "view_as",
    "reshape_as",
)
def _reshape(r, a):
    return reshaped(r, a.self, a.shape)


@op("contiguous", "alias", "detach", "clone", "lift_fresh_copy", "positive")
def _same(r, a):
    if "detach" in str(a.nodes[0].target):
        return r.emit("detach", [a.self], r.value(a.self).shape)
    return a.self


@op("to.dtype", "to.dtype_layout", "to.device", "_to_copy", "to.other", "type_as", "float")
def _to(r, a):
    x = r.value(a.self)
    wanted = a.nodes[0].meta["val"].dtype
    if wanted in (torch.float32,):
        return x if x.dtype == "f32" else r.emit("cast", [x], x.shape, "f32")
    if not wanted.is_floating_point and wanted != torch.bool and x.dtype in ("i32", "u8"):
        return Value(x.name, x.shape, "i32")
    if wanted in (torch.int64, torch.int32):
        return r.emit("trunc", [r.emit("detach", [x], x.shape)], x.shape, "i32", whole=1)
    if wanted == torch.bool:
        return (
            x if x.dtype == "u8" else r.emit("ne", [x, 0.0], x.shape, "u8")
        )
    raise Unsupported(
        f"a cast of {x.dtype} to {wanted}; numbers of a net are float32 here (precision is a setting of the run)"
    )


@op("permute")
def _permute(r, a):
    x = r.value(a.self)
    return r.emit("permute", [x], a.shape, x.dtype, axes=[axis_of(d, x.shape) for d in a.dims])


@op("movedim.int", "movedim.intlist")
def _movedim(r, a):
    x = r.value(a.self)
    first = torch.empty(*range(2, 2 + len(x.shape)), device="meta")
    moved = torch.movedim(first, a.source, a.destination)
    axes = [extent - 2 for extent in moved.shape]
    return r.emit("permute", [x], a.shape, x.dtype, axes=axes)


@op("repeat_interleave.self_int")
def _repeat_interleave(r, a):
    x = r.value(a.self)
    if a.dim is None:
        raise Unsupported("repeats a tensor as one row; name the axis")
    axis = axis_of(a.dim, x.shape)
    apart = x.shape[: axis + 1] + [1] + x.shape[axis + 1 :]
    wide = x.shape[: axis + 1] + [a.repeats] + x.shape[axis + 1 :]
    return reshaped(r, r.emit("expand", [reshaped(r, x, apart)], wide, x.dtype), a.shape)


@op("transpose.int", "transpose", "t", "swapaxes", "numpy_T")
def _transpose(r, a):
    x = r.value(a.self)
    axes = list(range(len(x.shape)))
    given = a.get("dim0", a.get("axis0", 0)), a.get("dim1", a.get("axis1", 1))
    one, two = (axis_of(axis, x.shape) for axis in given) if len(axes) > 1 else (0, 0)
    axes[one], axes[two] = axes[two], axes[one]
    return r.emit("permute", [x], a.shape, x.dtype, axes=axes)


@op("expand", "expand_as", "broadcast_to")
def _expand(r, a):
    x = r.value(a.self)
    return x if x.shape == a.shape else r.emit("expand", [x], a.shape, x.dtype)


@op("broadcast_tensors")
def _broadcast_tensors(r, a):
    values = [r.value(t) for t in a.tensors]
    shape = broadcast(*(value.shape for value in values))
    return [v if v.shape == shape else r.emit("expand", [v], shape, v.dtype) for v in values]


@op("repeat")
def _repeat(r, a):
    x = r.value(a.self)
    x = reshaped(r, x, [1] * (len(a.repeats) - len(x.shape)) + x.shape)
    for axis, times in enumerate(a.repeats):
        if times != 1 and x.shape[axis] == 1:
            shape = x.shape[:axis] + [times] + x.shape[axis + 1 :]
            x = r.emit("expand", [x], shape, x.dtype)
        elif isinstance(times, str) and not isinstance(x.shape[axis], str):
            before, behind = x.shape[:axis], x.shape[axis:]
            apart = reshaped(r, x, [*before, 1, *behind])
            x = r.emit("expand", [apart], [*before, times, *behind], x.dtype)
            count = int(times.partition("*")[2] or 1) * behind[0]
            x = reshaped(r, x, [*before, f"rows*{count}", *behind[1:]])
        elif times != 1:
            if isinstance(x.shape[axis], str):
                raise Unsupported("repeats the rows")
            x = r.emit(
                "concat",
                [x] * times,
                x.shape[:axis] + [x.shape[axis] * times] + x.shape[axis + 1 :],
                x.dtype,
                axis=axis,
            )
    return x


def sliced(r, x, axis, begin, end, step=1):
    extent = x.shape[axis]
    if isinstance(extent, str):
        if begin == 0 and (end == extent if isinstance(end, str) else end > 1 << 40):
            return x
        raise Unsupported("takes some of the rows")
    begin = min(extent, begin + extent if begin < 0 else begin)
    end = min(extent, end + extent if end < 0 else end)
    if (begin, end, step) == (0, extent, 1):
        return x
    shape = x.shape[:axis] + [max(0, (end - begin + step - 1) // step)] + x.shape[axis + 1 :]
    if 0 in shape:
        return _nothing(shape)
    return r.emit(
        "slice",
        [x],
        shape,
        x.dtype,
        axis=axis,
        begin=begin,
        end=end,
        step=step if step != 1 else None,
    )


def _nothing(shape):
    """A tensor without numbers, which is there to be joined to others."""
    return Known(
        tuple(
            torch.zeros([rows * int(e.partition("*")[2] or 1) if isinstance(e, str) else e for e in shape])
            for rows in exported_rows()
        )
    )


def with_part(r, x, where, part):
    """x with other numbers in a slice of it: `where` as of aten::slice, less the tensor."""
    axis, begin, end, step = [*where, *(0, None, None, 1)[len(where) :]]
    axis = axis_of(axis, x.shape)
    extent = x.shape[axis]
    if isinstance(extent, str) or step != 1:
        raise Unsupported("changes some of the rows, or every so many, in place")
    begin, end = slice(begin, end).indices(extent)[:2]
    pieces = [sliced(r, x, axis, 0, begin)] if begin > 0 else []
    pieces.append(r.value(part))
    if end < extent:
        pieces.append(sliced(r, x, axis, end, extent))
    return pieces[0] if len(pieces) == 1 else r.emit("concat", pieces, x.shape, x.dtype, axis=axis)


@op("slice.Tensor")
def _slice(r, a):
    x = r.value(a.self)
    return sliced(
        r, x, axis_of(a.dim, x.shape), a.start or 0, (1 << 62) if a.end is None else a.end, a.step
    )


@op("narrow")
def _narrow(r, a):
    x = r.value(a.self)
    return sliced(r, x, axis_of(a.dim, x.shape), a.start, a.start + a.length)


@op("select.int")
def _select(r, a):
    x = r.value(a.self)
    axis = axis_of(a.dim, x.shape)
    index = a.index + x.shape[axis] if a.index < 0 else a.index
    return reshaped(r, sliced(r, x, axis, index, index + 1), a.shape)


def within_rows(x, axis, what):
    """Refuses what would need to know how many rows there are."""
    if isinstance(x.shape[axis], str):
        raise Unsupported(f"{what}; only what lies within a row can be")


def parts(r, x, axis, sizes):
    begins = [sum(sizes[:i]) for i in range(len(sizes))]
    return [sliced(r, x, axis, begin, begin + size) for begin, size in zip(begins, sizes)]


@op("split.Tensor", "split_with_sizes", "chunk", "split.sizes")
def _split(r, a):
    x = r.value(a.self)
    axis = axis_of(a.dim, x.shape)
    within_rows(x, axis, "takes the rows apart")
    return parts(r, x, axis, [int(part.shape[axis]) for part in a.nodes[0].meta["val"]])


@op("unbind.int")
def _unbind(r, a):
    x = r.value(a.self)
    axis = axis_of(a.dim, x.shape)
    within_rows(x, axis, "takes the rows apart")
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    return [reshaped(r, part, shape) for part in parts(r, x, axis, [1] * x.shape[axis])]


@op("cat")
def _cat(r, a):
    tensors = [r.value(t) for t in a.tensors if 0 not in getattr(t, "shape", [])]
    if len(tensors) == 1:
        return tensors[0]
    whole = 1 if tensors[0].dtype == "i32" else None
    return r.emit("concat", tensors, a.shape, tensors[0].dtype, axis=axis_of(a.dim, a.shape), whole=whole)


@op("stack")
def _stack(r, a):
    axis = axis_of(a.dim, a.shape)
    one = a.shape[:axis] + [1] + a.shape[axis + 1 :]
    return r.emit(
        "concat",
        [reshaped(r, t, one) for t in a.tensors],
        a.shape,
        r.value(a.tensors[0]).dtype,
        axis=axis,
    )


def joined(r, pieces, axis):
    """Side by side along an axis."""
    if len(pieces) == 1:
        return pieces[0]
    shape = list(pieces[0].shape)
    shape[axis] = sum(piece.shape[axis] for piece in pieces)
    return r.emit("concat", pieces, shape, pieces[0].dtype, axis=axis)


def in_runs(r, x, axis, places):
    """Numbers of an axis by their known places, run by run of such as lie behind each other. None: too many runs."""
    begins = [i for i, place in enumerate(places) if i == 0 or place != places[i - 1] + 1]
    if not begins or len(begins) > 16:
        return None
    ends = [*begins[1:], len(places)]
    runs = [(places[i], places[j - 1] + 1) for i, j in zip(begins, ends)]
    return joined(r, [sliced(r, x, axis, *run) for run in runs], axis)


def _mirrored(r, a):
    """Padding by numbers of the tensor itself: `reflect`, `replicate`, `circular`."""
    x = r.value(a.self)
    for at in range(len(a.pad) // 2):
        axis, ends = len(x.shape) - 1 - at, a.pad[2 * at : 2 * at + 2]
        numbers = torch.arange(float(x.shape[axis])).reshape(1, 1, -1)
        places = F.pad(numbers, ends, mode=a.mode).flatten().long().tolist()
        x = in_runs(r, x, axis, places)
        if x is None:
            raise Unsupported(f"padding by '{a.mode}' of more than eight numbers on a side")
    return x


@op("pad", "constant_pad_nd")
def _pad(r, a):
    if a.get("mode", "constant") != "constant":
        return _mirrored(r, a)
    x = r.value(a.self)
    value = a.value or 0
    for at in range(len(a.pad) // 2):
        axis, before, behind = len(x.shape) - 1 - at, a.pad[2 * at], a.pad[2 * at + 1]
        if before < 0 or behind < 0:
            x = sliced(r, x, axis, max(0, -before), x.shape[axis] - max(0, -behind))
            before, behind = max(0, before), max(0, behind)
        if before or behind:
            shape = x.shape[:axis] + [x.shape[axis] + before + behind] + x.shape[axis + 1 :]
            x = r.emit(
                "pad", [x], shape, x.dtype, axis=axis, before=before, behind=behind, value=value
            )
    return x


@op("roll")
def _roll(r, a):
    x = r.value(a.self)
    if not a.dims:
        raise Unsupported("rolls a tensor as one row; name the axes")
    for shift, axis in zip(a.shifts, a.dims):
        axis = axis_of(axis, x.shape)
        within_rows(x, axis, "puts the rows into another order")
        shift %= x.shape[axis]
        if shift:
            ends = [
                sliced(r, x, axis, x.shape[axis] - shift, x.shape[axis]),
                sliced(r, x, axis, 0, x.shape[axis] - shift),
            ]
            x = r.emit("concat", ends, x.shape, x.dtype, axis=axis)
    return x


def flipped(r, x, axis):
    within_rows(x, axis, "puts the rows into another order")
    return joined(r, parts(r, x, axis, [1] * x.shape[axis])[::-1], axis)


@op("flip")
def _flip(r, a):
    x = r.value(a.self)
    for axis in a.dims:
        x = flipped(r, x, axis_of(axis, x.shape))
    return x


@op("pixel_shuffle")
def _pixel_shuffle(r, a):
    x, f = r.value(a.self), a.upscale_factor
    n, c, h, w = x.shape
    x = reshaped(r, x, [n, c // f // f, f, f, h, w])
    x = r.emit("permute", [x], [n, c // f // f, h, f, w, f], axes=[0, 1, 4, 2, 5, 3])
    return reshaped(r, x, a.shape)


def _filled(number):
    """A tensor that takes from another no more than its size."""

    def handler(r, a):
        value = a.get("fill_value", a.get("value", number))
        return Known(
            tuple(
                torch.full(node.meta["val"].shape, value, dtype=node.meta["val"].dtype)
                for node in a.nodes
            )
        )

    return handler


op("new_zeros", "zeros_like", "new_empty", "empty_like", "zero")(_filled(0))
op("new_ones", "ones_like")(_filled(1))
op("new_full", "full_like")(_filled(0))


@op("copy")
def _copy(r, a):
    x = r.value(a.src)
    return x if x.shape == a.shape else r.emit("expand", [x], a.shape, x.dtype)


op("fill.Scalar")(_filled(0))


def moved(r, x, axis, to):
    """With that axis at another place."""
    axes = [at for at in range(len(x.shape)) if at != axis]
    axes.insert(to, axis)
    if axes == sorted(axes):
        return x
    return r.emit("permute", [x], [x.shape[at] for at in axes], x.dtype, axes=axes)
