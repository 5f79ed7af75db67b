"""Ops of PyTorch as ops of a network file. Each handler gets the reader and the node's arguments by name, and
gives a value, or a list of them. Many become few: every change of shape is `reshape`, `permute`, `slice`
or `expand`; losses are made of the ops that they are made of, but for the cross-entropy.
"""

from __future__ import annotations

import torch

from .values import Known, Unsupported, Value, size_of

HANDLERS: dict = {}
DRAWS = {"aten::bernoulli_.float", "aten::bernoulli.p", "aten::rand", "aten::randn", "aten::rand_like", "aten::randn_like"}
_VIEWS = {"view", "reshape", "permute", "transpose", "slice", "select", "unsqueeze", "squeeze", "expand", "alias", "flatten", "unflatten",
          "chunk", "split", "t", "detach"}


def changes_statistics(name: str) -> bool:
    return name.startswith("aten::batch_norm")


def is_view(node) -> bool:
    name = node.target.name() if node.op == "call_function" and hasattr(node.target, "name") else ""
    return name.removeprefix("aten::").partition(".")[0] in _VIEWS


class Arguments:
    """The arguments of a node, by name, with defaults; sizes for any number of rows."""

    def __init__(self, reader, a, b):
        self.reader, self.nodes = reader, (a, b)
        given = []
        for node in (a, b):
            names = [argument.name for argument in node.target._schema.arguments]
            values = {argument.name: argument.default_value for argument in node.target._schema.arguments if argument.has_default_value()}
            values.update(zip(names, node.args))
            values.update(node.kwargs)
            given.append(values)
        self.by_name = {name: self._one(given[0][name], given[1][name]) for name in given[0]}

    def _one(self, a, b):
        if isinstance(a, torch.fx.Node):
            return self.reader.env[0][a][0]
        if isinstance(a, (list, tuple)):
            return [self._one(x, y) for x, y in zip(a, b)]
        if isinstance(a, bool) or not isinstance(a, int):
            return a
        return a if a == b else size_of(a, b)

    def __getattr__(self, name):
        return self.by_name[name]

    def get(self, name, otherwise=None):
        return self.by_name.get(name, otherwise)

    @property
    def shape(self) -> list:
        """Of the result."""
        first, second = (node.meta["val"] for node in self.nodes)
        return [size_of(x, y) for x, y in zip(first.shape, second.shape)]


def op(*names):
    def register(handler):
        for name in names:
            HANDLERS["aten::" + name] = handler
        return handler
    return register


def axis_of(axis, shape) -> int:
    return axis % max(1, len(shape))


def pair_of(numbers) -> list:
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return numbers * 2 if len(numbers) == 1 else numbers


def reshaped(r, x, shape):
    x = r.value(x)
    return x if x.shape == list(shape) else r.emit("reshape", [x], shape, x.dtype)


# Shapes.

@op("view", "reshape", "flatten.using_ints", "unflatten.int", "unsqueeze", "squeeze", "squeeze.dim", "squeeze.dims", "_unsafe_view", "view_as", "reshape_as")
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
    if wanted in (torch.int64, torch.int32) and x.dtype == "i32":
        return x
    if wanted == torch.bool and x.dtype == "u8":
        return x
    raise Unsupported(f"a cast of {x.dtype} to {wanted}; numbers of a net are float32 here (precision is a setting of the run)")


@op("permute")
def _permute(r, a):
    x = r.value(a.self)
    return r.emit("permute", [x], a.shape, x.dtype, axes=[axis_of(d, x.shape) for d in a.dims])


@op("transpose.int", "t", "swapaxes", "numpy_T")
def _transpose(r, a):
    x = r.value(a.self)
    axes = list(range(len(x.shape)))
    one, two = (axis_of(a.get("dim0", 0), x.shape), axis_of(a.get("dim1", 1), x.shape)) if len(axes) > 1 else (0, 0)
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
            shape = x.shape[:axis] + [times] + x.shape[axis + 1:]
            x = r.emit("expand", [x], shape, x.dtype)
        elif times != 1:
            if isinstance(times, str) or isinstance(x.shape[axis], str):
                raise Unsupported("repeats an axis as often as there are rows")
            x = r.emit("concat", [x] * times, x.shape[:axis] + [x.shape[axis] * times] + x.shape[axis + 1:], x.dtype, axis=axis)
    return x


def sliced(r, x, axis, begin, end, step=1):
    extent = x.shape[axis]
    if isinstance(extent, str):
        if begin == 0 and (not isinstance(end, int) or end > 1 << 40):
            return x
        raise Unsupported("takes some of the rows")
    begin = min(extent, begin + extent if begin < 0 else begin)
    end = min(extent, end + extent if end < 0 else end)
    if (begin, end, step) == (0, extent, 1):
        return x
    shape = x.shape[:axis] + [(end - begin + step - 1) // step] + x.shape[axis + 1:]
    return r.emit("slice", [x], shape, x.dtype, axis=axis, begin=begin, end=end, step=step if step != 1 else None)


@op("slice.Tensor")
def _slice(r, a):
    x = r.value(a.self)
    return sliced(r, x, axis_of(a.dim, x.shape), a.start or 0, (1 << 62) if a.end is None else a.end, a.step)


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


def parts(r, x, axis, sizes):
    begins = [sum(sizes[:i]) for i in range(len(sizes))]
    return [sliced(r, x, axis, begin, begin + size) for begin, size in zip(begins, sizes)]


@op("split.Tensor", "split_with_sizes", "chunk", "split.sizes")
def _split(r, a):
    x = r.value(a.self)
    axis = axis_of(a.dim, x.shape)
    return parts(r, x, axis, [int(part.shape[axis]) for part in a.nodes[0].meta["val"]])


@op("unbind.int")
def _unbind(r, a):
    x = r.value(a.self)
    axis = axis_of(a.dim, x.shape)
    shape = x.shape[:axis] + x.shape[axis + 1:]
    return [reshaped(r, part, shape) for part in parts(r, x, axis, [1] * x.shape[axis])]


@op("cat")
def _cat(r, a):
    tensors = [r.value(t) for t in a.tensors]
    tensors = [t for t in tensors if len(t.shape) != 1 or t.shape[0] != 0]
    return r.emit("concat", tensors, a.shape, tensors[0].dtype, axis=axis_of(a.dim, a.shape))


@op("stack")
def _stack(r, a):
    axis = axis_of(a.dim, a.shape)
    one = a.shape[:axis] + [1] + a.shape[axis + 1:]
    return r.emit("concat", [reshaped(r, t, one) for t in a.tensors], a.shape, r.value(a.tensors[0]).dtype, axis=axis)


@op("pad", "constant_pad_nd")
def _pad(r, a):
    if a.get("mode", "constant") != "constant":
        raise Unsupported(f"padding by '{a.mode}'; constants can be")
    x = r.value(a.self)
    value = a.value or 0
    for at in range(len(a.pad) // 2):
        axis, before, behind = len(x.shape) - 1 - at, a.pad[2 * at], a.pad[2 * at + 1]
        if before < 0 or behind < 0:
            x = sliced(r, x, axis, max(0, -before), x.shape[axis] - max(0, -behind))
            before, behind = max(0, before), max(0, behind)
        if before or behind:
            shape = x.shape[:axis] + [x.shape[axis] + before + behind] + x.shape[axis + 1:]
            x = r.emit("pad", [x], shape, x.dtype, axis=axis, before=before, behind=behind, value=value)
    return x


@op("roll")
def _roll(r, a):
    x = r.value(a.self)
    if not a.dims:
        raise Unsupported("rolls a tensor as one row; name the axes")
    for shift, axis in zip(a.shifts, a.dims):
        axis = axis_of(axis, x.shape)
        shift %= x.shape[axis]
        if shift:
            ends = [sliced(r, x, axis, x.shape[axis] - shift, x.shape[axis]), sliced(r, x, axis, 0, x.shape[axis] - shift)]
            x = r.emit("concat", ends, x.shape, x.dtype, axis=axis)
    return x


@op("flip")
def _flip(r, a):
    x = r.value(a.self)
    for axis in a.dims:
        axis = axis_of(axis, x.shape)
        x = r.emit("concat", parts(r, x, axis, [1] * x.shape[axis])[::-1], x.shape, x.dtype, axis=axis)
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
        value = a.get("fill_value", number)
        return Known(tuple(torch.full(node.meta["val"].shape, value, dtype=node.meta["val"].dtype) for node in a.nodes))
    return handler


op("new_zeros", "zeros_like", "new_empty", "empty_like")(_filled(0))
op("new_ones", "ones_like")(_filled(1))
op("new_full", "full_like")(_filled(0))


# Element by element.

def broadcast(*shapes) -> list:
    rank = max(len(shape) for shape in shapes)
    padded = [[1] * (rank - len(shape)) + list(shape) for shape in shapes]
    return [next((extent for extent in extents if extent != 1), 1) for extents in zip(*padded)]


def number_or_value(r, item):
    if isinstance(item, Known) and item.first.numel() == 1 and item.first.ndim == 0:
        return float(item.first)
    return float(item) if isinstance(item, (int, float)) else r.value(item)


def binary(r, name, x, y):
    x, y = number_or_value(r, x), number_or_value(r, y)
    values = [item for item in (x, y) if isinstance(item, Value)]
    if any(value.dtype != "f32" for value in values):
        values = [r.emit("cast", [v], v.shape, "f32") if v.dtype == "u8" else v for v in values]
        x, y = [values.pop(0) if isinstance(item, Value) else item for item in (x, y)]
        if any(isinstance(v, Value) and v.dtype != "f32" for v in (x, y)):
            raise Unsupported(f"'{name}' of whole numbers that are not known beforehand")
    shape = broadcast(*(item.shape for item in (x, y) if isinstance(item, Value)))
    return r.emit(name, [x, y], shape)


def _arithmetic(name):
    def handler(r, a):
        other = a.other
        if a.get("alpha", 1) != 1:
            other = binary(r, "mul", other, float(a.alpha)) if not isinstance(other, (int, float)) else other * a.alpha
        return binary(r, name, a.self, other)
    return handler


for _name in ("add", "sub", "mul", "div"):
    op(f"{_name}.Tensor", f"{_name}.Scalar")(_arithmetic(_name))
op("maximum")(_arithmetic("maximum"))
op("minimum")(_arithmetic("minimum"))


@op("rsub.Scalar", "rsub.Tensor")
def _rsub(r, a):
    return binary(r, "sub", a.other, a.self)


@op("addcmul")
def _addcmul(r, a):
    return binary(r, "add", a.self, binary(r, "mul", binary(r, "mul", a.tensor1, a.tensor2), float(a.value)))


def mapped(r, name, x, **attrs):
    x = r.value(x)
    return r.emit(name, [x], x.shape, **attrs)


for _name in ("relu", "sigmoid", "tanh", "silu", "exp", "log", "sqrt", "rsqrt", "abs", "neg", "reciprocal", "erf", "sin", "cos", "log1p", "expm1", "mish",
              "log_sigmoid", "square"):
    op(_name)(lambda r, a, name=_name: mapped(r, name, a.self))
op("hardswish")(lambda r, a: mapped(r, "hard_swish", a.self))
op("hardsigmoid")(lambda r, a: mapped(r, "hard_sigmoid", a.self))
op("gelu")(lambda r, a: mapped(r, "gelu", a.self, approximate=a.approximate))
op("leaky_relu")(lambda r, a: mapped(r, "leaky_relu", a.self, slope=float(a.negative_slope)))
op("elu")(lambda r, a: mapped(r, "elu", a.self, alpha=float(a.alpha)))
op("softplus")(lambda r, a: mapped(r, "softplus", a.self, beta=float(a.beta)))
op("relu6")(lambda r, a: mapped(r, "clip", a.self, low=0.0, high=6.0))
op("hardtanh")(lambda r, a: mapped(r, "clip", a.self, low=float(a.min_val), high=float(a.max_val)))


@op("clamp", "clamp_min", "clamp_max", "clip")
def _clamp(r, a):
    low, high = a.get("min"), a.get("max")
    return mapped(r, "clip", a.self, low=None if low is None else float(low), high=None if high is None else float(high))


@op("pow.Tensor_Scalar")
def _pow(r, a):
    return mapped(r, "pow", a.self, exponent=float(a.exponent))


def masked(r, mask, x, y):
    """x where the mask has a one, else y: sums of products with the mask, which lose nothing but infinities."""
    if isinstance(mask, Known):
        ones = Known(tuple(tensor.to(torch.float32) for tensor in mask.tensors))
        zeros = Known(tuple(1 - tensor for tensor in ones.tensors))
    else:
        ones = r.emit("cast", [r.value(mask)], r.value(mask).shape)
        zeros = binary(r, "sub", 1.0, ones)

    def part(shares, item):
        item = number_or_value(r, item)
        if not isinstance(item, float):
            return binary(r, "mul", item, shares)
        item = max(-3.0e38, min(3.0e38, item))
        if item == 0:
            return None
        return Known(tuple(t * item for t in shares.tensors)) if isinstance(shares, Known) else binary(r, "mul", shares, item)
    first, second = part(ones, x), part(zeros, y)
    if first is None or second is None:
        return r.value(first if second is None else second)
    return binary(r, "add", first, second)


@op("where.self", "where.ScalarOther", "where.ScalarSelf")
def _where(r, a):
    return masked(r, a.condition, a.self, a.other)


@op("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(r, a):
    return masked(r, a.mask, a.value, a.self)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    op(f"{_name}.Scalar", f"{_name}.Tensor")(
        lambda r, a, name=_name: r.emit(name, [number_or_value(r, a.self), number_or_value(r, a.other)], a.shape, "u8"))


# Sums.

def reduced(r, kind, x, dims, keep):
    x = r.value(x)
    axes = sorted({axis_of(d, x.shape) for d in dims}) if dims else list(range(len(x.shape)))
    shape = [1 if i in axes else e for i, e in enumerate(x.shape)] if keep else [e for i, e in enumerate(x.shape) if i not in axes]
    return r.emit(kind, [x], shape, axes=axes, keep=bool(keep))


for _name in ("sum", "mean"):
    op(_name, f"{_name}.dim", f"{_name}.dim_IntList")(
        lambda r, a, kind=_name: reduced(r, kind, a.self, a.get("dim"), a.get("keepdim", False)))


@op("var.correction", "var_mean.correction")
def _var(r, a):
    x = r.value(a.self)
    dims = a.dim or list(range(len(x.shape)))
    count = 1
    for d in dims:
        if isinstance(x.shape[axis_of(d, x.shape)], str):
            raise Unsupported("a variance over the rows")
        count *= x.shape[axis_of(d, x.shape)]
    off = 1 if a.correction is None else a.correction
    mean = reduced(r, "mean", x, dims, True)
    error = binary(r, "sub", x, mean)
    variance = binary(r, "mul", reduced(r, "mean", mapped(r, "square", error), dims, a.keepdim), count / (count - off))
    if "var_mean" in str(a.nodes[0].target):
        return [variance, reduced(r, "mean", x, dims, a.keepdim)]
    return variance


@op("softmax.int", "_softmax")
def _softmax(r, a):
    x = r.value(a.self)
    return r.emit("softmax", [x], x.shape, axis=axis_of(a.dim, x.shape))


@op("log_softmax.int", "_log_softmax")
def _log_softmax(r, a):
    x = r.value(a.self)
    return r.emit("log_softmax", [x], x.shape, axis=axis_of(a.dim, x.shape))


# Layers.

@op("linear")
def _linear(r, a):
    return r.emit("linear", [a.input, r.value(a.weight), None if a.bias is None else r.value(a.bias)], a.shape)


@op("addmm")
def _addmm(r, a):
    if a.beta != 1 or a.alpha != 1:
        raise Unsupported("with alpha or beta other than 1")
    return binary(r, "add", r.emit("matmul", [r.value(a.mat1), r.value(a.mat2)], a.shape), a.self)


@op("mm", "bmm", "matmul")
def _matmul(r, a):
    other = a.get("mat2", a.get("other"))
    return r.emit("matmul", [r.value(a.self), r.value(other)], a.shape)


@op("einsum")
def _einsum(r, a):
    return contracted(r, a.equation, [r.value(t) for t in a.tensors], a.shape)


def contracted(r, equation, tensors, shape):
    """A sum of products of two tensors, as one batched matrix product."""
    left, arrow, out = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != 2 or "." in equation or any(len(set(t)) != len(t) for t in terms):
        raise Unsupported(f"einsum '{equation}'; of two operands, with an arrow, each letter once in an operand, it can be")
    extent = {letter: e for term, tensor in zip(terms, tensors) for letter, e in zip(term, tensor.shape)}
    both = [c for c in terms[0] if c in terms[1]]
    shared, summed = [c for c in both if c in out], [c for c in both if c not in out]
    own = [[c for c in term if c not in both] for term in terms]
    if any(c not in out for c in own[0] + own[1]):
        raise Unsupported(f"einsum '{equation}', which sums one operand alone")

    def size(letters):
        total, rows = 1, 0
        for c in letters:
            e = extent[c]
            rows += isinstance(e, str)
            total *= (int(e.partition("*")[2] or 1)) if isinstance(e, str) else e
        if rows > 1:
            raise Unsupported("a product over the rows, twice")
        return total if rows == 0 else "rows" if total == 1 else f"rows*{total}"

    def arranged(tensor, term, letters, groups):
        order = [term.index(c) for c in letters]
        turned = tensor if order == sorted(order) else r.emit("permute", [tensor], [extent[c] for c in letters], axes=order)
        return reshaped(r, turned, [size(g) for g in groups])
    x = arranged(tensors[0], terms[0], shared + own[0] + summed, [shared, own[0], summed])
    y = arranged(tensors[1], terms[1], shared + summed + own[1], [shared, summed, own[1]])
    product = r.emit("matmul", [x, y], [size(shared), size(own[0]), size(own[1])])
    letters = shared + own[0] + own[1]
    product = reshaped(r, product, [extent[c] for c in letters])
    order = [letters.index(c) for c in out]
    return product if order == sorted(order) else r.emit("permute", [product], shape, axes=order)


def _convolution(spatial):
    def handler(r, a):
        if isinstance(a.padding, str):
            kernel = r.value(a.weight).shape[2:]
            reach = [d * (k - 1) for d, k in zip(_times(a.dilation, spatial), kernel)]
            if a.padding == "same" and any(x % 2 for x in reach):
                raise Unsupported("padding 'same' of an even kernel; pad before it")
            padding = [x // 2 if a.padding == "same" else 0 for x in reach]
        else:
            padding = _times(a.padding, spatial)
        return r.emit("conv", [r.value(a.input), r.value(a.weight), None if a.bias is None else r.value(a.bias)], a.shape, stride=_times(a.stride, spatial),
                      padding=padding, dilation=_times(a.dilation, spatial), groups=a.groups)
    return handler


def _times(numbers, count) -> list:
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return numbers * count if len(numbers) == 1 else numbers


op("conv2d", "conv2d.padding")(_convolution(2))
op("conv1d", "conv1d.padding")(_convolution(1))


@op("conv_transpose2d.input")
def _conv_transpose(r, a):
    return r.emit("conv_transpose", [r.value(a.input), r.value(a.weight), None if a.bias is None else r.value(a.bias)], a.shape, stride=_times(a.stride, 2),
                  padding=_times(a.padding, 2), dilation=_times(a.dilation, 2), groups=a.groups)


@op("batch_norm")
def _batch_norm(r, a):
    if a.running_mean is None or a.momentum is None:
        raise Unsupported("without running statistics or with momentum=None; build it with track_running_stats=True and a momentum")
    running = [r.buffer(item) for item in (a.running_mean, a.running_var)]
    scales = [None if item is None else r.value(item) for item in (a.weight, a.bias)]
    return r.emit("batch_norm", [r.value(a.input), *scales, *running], r.value(a.input).shape, momentum=float(a.momentum), epsilon=float(a.eps), training=bool(a.training))


def _affine(r, a):
    return [None if item is None else r.value(item) for item in (a.weight, a.get("bias"))]


@op("layer_norm")
def _layer_norm(r, a):
    x = r.value(a.input)
    return r.emit("layer_norm", [x, *_affine(r, a)], x.shape, axes=len(a.normalized_shape), epsilon=float(a.eps))


@op("rms_norm")
def _rms_norm(r, a):
    x = r.value(a.input)
    epsilon = 1.1920928955078125e-07 if a.eps is None else float(a.eps)
    return r.emit("rms_norm", [x, _affine(r, a)[0]], x.shape, axes=len(a.normalized_shape), epsilon=epsilon)


@op("group_norm")
def _group_norm(r, a):
    x = r.value(a.input)
    return r.emit("group_norm", [x, *_affine(r, a)], x.shape, groups=a.num_groups, epsilon=float(a.eps))


@op("embedding")
def _embedding(r, a):
    if a.get("padding_idx", -1) not in (-1, None):
        weight = r.value(a.weight)
        return r.emit("embedding", [weight, r.value(a.indices)], a.shape, padding=a.padding_idx)
    return r.emit("embedding", [r.value(a.weight), r.value(a.indices)], a.shape)


@op("index.Tensor")
def _index(r, a):
    if len(a.indices) != 1 or a.indices[0] is None:
        raise Unsupported("an index other than of the first axis")
    table, ids = r.value(a.self), r.value(a.indices[0])
    if ids.dtype != "i32":
        raise Unsupported("a mask as an index, whose result has no fixed size; choose torch.where")
    flat = reshaped(r, table, [table.shape[0], -1 if len(table.shape) > 2 else (table.shape[1] if len(table.shape) == 2 else 1)])
    if len(table.shape) > 2:
        raise Unsupported("an index of a tensor with more than two axes")
    return reshaped(r, r.emit("embedding", [flat, ids], [*ids.shape, *flat.shape[1:]]), a.shape)


@op("dropout", "feature_dropout")
def _dropout(r, a):
    given = a.get("input", a.get("self"))
    if not a.train or a.p == 0:
        return given
    x = r.value(given)
    return r.emit("dropout", [x], x.shape, p=float(a.p))


@op("bernoulli_.float", "bernoulli.p")
def _bernoulli(r, a):
    """Stochastic depth: rows of ones and zeros, divided by the share of ones right behind."""
    users = [list(node.users) for node in a.nodes]
    later = [u for u in users[0] if u.target in (torch.ops.aten.div_.Scalar, torch.ops.aten.div_.Tensor, torch.ops.aten.div.Tensor)]
    if len(later) != 1 or later[0].args[1] != a.p:
        raise Unsupported("random numbers; dropout and stochastic depth can be")
    mask = r.emit("drop_mask", [], a.shape, p=1 - float(a.p))
    return r.emit("mul", [mask, float(a.p)], a.shape)


@op("scaled_dot_product_attention")
def _attention(r, a):
    q, k, v = (r.value(item) for item in (a.query, a.key, a.value))
    mask, causal = a.attn_mask, bool(a.is_causal)
    if isinstance(mask, Known):
        mask, causal = _known_mask(mask)
    if isinstance(mask, Value) and mask.dtype == "u8":
        mask = masked(r, mask, 0.0, -3.0e38)
    if mask is not None:
        mask = r.value(mask)
    return r.emit("attention", [q, k, v, mask], a.shape, causal=causal, scale=None if a.scale is None else float(a.scale), dropout=float(a.dropout_p))


def _known_mask(mask):
    """A mask that lets everything through, or what lies before, needs no tensor."""
    tensor, _ = mask.one_row()
    if tensor.dtype != torch.bool:
        return (None, False) if not tensor.any() else (mask, False)
    if tensor.all():
        return None, False
    queries, keys = tensor.shape[-2:]
    if torch.equal(tensor, torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries).expand_as(tensor)):
        return None, True
    bias = tuple(torch.zeros(t.shape).masked_fill(~t, -3.0e38) for t in mask.tensors)
    return Known(bias), False


@op("lstm.input")
def _lstm(r, a):
    if a.bidirectional:
        raise Unsupported("an LSTM in both directions")
    x = r.value(a.input)
    states = [r.value(item) for item in a.hx]
    each = 4 if a.has_biases else 2
    weights = [[r.value(w) for w in a.params[i: i + each]] for i in range(0, len(a.params), each)]
    if any(len(layer) != each for layer in weights) or weights[0][1].shape[0] != 4 * weights[0][1].shape[1]:
        raise Unsupported("an LSTM with a projection of its state")
    if not a.batch_first:
        x = r.emit("permute", [x], [x.shape[1], x.shape[0], x.shape[2]], axes=[1, 0, 2])
    rows, steps, hidden = x.shape[0], x.shape[1], weights[0][1].shape[1]
    last_h, last_c = [], []
    for at, layer in enumerate(weights):
        if at > 0 and a.train and a.dropout > 0:
            x = r.emit("dropout", [x], x.shape, p=float(a.dropout))
        start = [reshaped(r, sliced(r, s, 0, at, at + 1), [rows, hidden]) for s in states]
        x, h, c = r.emit_all("lstm", [x, *start, *layer], [([rows, steps, hidden], "f32"), ([rows, hidden], "f32"), ([rows, hidden], "f32")])
        last_h.append(reshaped(r, h, [1, rows, hidden]))
        last_c.append(reshaped(r, c, [1, rows, hidden]))
    if not a.batch_first:
        x = r.emit("permute", [x], [steps, rows, hidden], axes=[1, 0, 2])
    join = lambda states: states[0] if len(states) == 1 else r.emit("concat", states, [len(states), rows, hidden], axis=0)
    return [x, join(last_h), join(last_c)]


# Images.

@op("max_pool2d")
def _max_pool(r, a):
    if a.ceil_mode or set(pair_of(a.dilation)) != {1}:
        raise Unsupported("max pooling with ceil_mode or dilation")
    return r.emit("max_pool", [r.value(a.self)], a.shape, kernel=pair_of(a.kernel_size), stride=pair_of(a.stride or a.kernel_size), padding=pair_of(a.padding))


@op("avg_pool2d")
def _avg_pool(r, a):
    if a.ceil_mode or a.divisor_override or (set(pair_of(a.padding)) != {0} and not a.count_include_pad):
        raise Unsupported("average pooling with ceil_mode, divisor_override or padding that is not counted")
    return r.emit("avg_pool", [r.value(a.self)], a.shape, kernel=pair_of(a.kernel_size), stride=pair_of(a.stride or a.kernel_size), padding=pair_of(a.padding))


@op("adaptive_avg_pool2d")
def _adaptive(r, a):
    return r.emit("resize", [r.value(a.self)], a.shape, size=a.shape[2:], mode="average")


@op("upsample_bilinear2d.vec", "upsample_bilinear2d")
def _bilinear(r, a):
    return r.emit("resize", [r.value(a.input if a.get("input") is not None else a.self)], a.shape, size=a.shape[2:], mode="corners" if a.align_corners else "bilinear")


@op("upsample_nearest2d.vec", "upsample_nearest2d")
def _nearest(r, a):
    return r.emit("resize", [r.value(a.input if a.get("input") is not None else a.self)], a.shape, size=a.shape[2:], mode="nearest")


# Losses.

REDUCTIONS = {0: None, 1: "mean", 2: "sum"}


def finished(r, x, reduction):
    kind = REDUCTIONS[reduction]
    return x if kind is None else reduced(r, kind, x, None, False)


@op("cross_entropy_loss", "nll_loss_nd", "nll_loss", "nll_loss2d")
def _cross_entropy(r, a):
    logits, labels = r.value(a.self), r.value(a.target)
    if labels.dtype != "i32":
        raise Unsupported("a cross-entropy with probabilities as targets; labels can be")
    if a.weight is not None or a.reduction == 0:
        raise Unsupported("a cross-entropy with weights of classes, or one that is not summed")
    node = next((n for n in reversed(r.graph.nodes) if logits.name in n.outputs), None)
    if "nll" in str(a.nodes[0].target):
        if node is None or node.op != "log_softmax":
            raise Unsupported("a negative log-likelihood of anything but log_softmax")
        logits = Value(node.inputs[0], logits.shape, "f32")
    return r.emit("cross_entropy", [logits, labels], [], ignore=a.ignore_index, label_smoothing=float(a.get("label_smoothing", 0.0)), reduction=REDUCTIONS[a.reduction])


@op("mse_loss")
def _mse(r, a):
    return finished(r, mapped(r, "square", binary(r, "sub", a.self, a.target)), a.reduction)


@op("l1_loss")
def _l1(r, a):
    return finished(r, mapped(r, "abs", binary(r, "sub", a.self, a.target)), a.reduction)


@op("smooth_l1_loss")
def _smooth_l1(r, a):
    return finished(r, mapped(r, "smooth_l1", binary(r, "sub", a.self, a.target), beta=float(a.beta)), a.reduction)


@op("huber_loss")
def _huber(r, a):
    loss = mapped(r, "smooth_l1", binary(r, "sub", a.self, a.target), beta=float(a.delta))
    return finished(r, binary(r, "mul", loss, float(a.delta)), a.reduction)


@op("binary_cross_entropy_with_logits")
def _bce(r, a):
    if a.pos_weight is not None:
        raise Unsupported("binary cross-entropy with pos_weight")
    loss = binary(r, "sub", mapped(r, "softplus", a.self), binary(r, "mul", a.self, a.target))
    return finished(r, loss if a.weight is None else binary(r, "mul", loss, a.weight), a.reduction)


@op("kl_div")
def _kl_div(r, a):
    target = r.value(a.target)
    entropy = binary(r, "sub", target, a.self) if a.log_target else binary(r, "sub", mapped(r, "log_of_share", target), a.self)
    share = mapped(r, "exp", target) if a.log_target else target
    return finished(r, binary(r, "mul", share, entropy), a.reduction)
