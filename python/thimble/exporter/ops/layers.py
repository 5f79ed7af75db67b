"""Products, convolutions, norms, attention, recurrent layers, dropout."""

from __future__ import annotations

import math

import torch

from ..values import Known, Unsupported, Value, depends_on_rows
from .registry import op, product, reshaped, times
from .shapes import flipped, sliced
from .elements import binary, mapped, masked
from .sums import reduced


@op("linear")
def _linear(r, a):
    return r.emit(
        "linear", [a.input, r.value(a.weight), None if a.bias is None else r.value(a.bias)], a.shape
    )


@op("bilinear")
def _bilinear(r, a):
    """A product with all pairs of numbers of both."""
    one, two, weight = r.value(a.input1), r.value(a.input2), r.value(a.weight)
    pairs = binary(r, "mul", reshaped(r, one, [*one.shape, 1]), reshaped(r, two, [*two.shape[:-1], 1, two.shape[-1]]))
    count = one.shape[-1] * two.shape[-1]
    pairs = reshaped(r, pairs, [*one.shape[:-1], count])
    weight = reshaped(r, weight, [weight.shape[0], count])
    return r.emit("linear", [pairs, weight, None if a.bias is None else r.value(a.bias)], a.shape)


@op("addmm")
def _addmm(r, a):
    if a.beta != 1 or a.alpha != 1:
        raise Unsupported("with alpha or beta other than 1")
    return binary(r, "add", r.emit("matmul", [r.value(a.mat1), r.value(a.mat2)], a.shape), a.self)


@op("baddbmm")
def _baddbmm(r, a):
    product = r.emit("matmul", [r.value(a.batch1), r.value(a.batch2)], a.shape)
    product = product if a.alpha == 1 else binary(r, "mul", product, float(a.alpha))
    if a.beta == 0:
        return product
    given = a.self if a.beta == 1 else binary(r, "mul", a.self, float(a.beta))
    return binary(r, "add", product, given)


@op("mm", "bmm", "matmul")
def _matmul(r, a):
    x, y = r.value(a.self), r.value(a.get("mat2", a.get("other")))
    shape = list(a.shape)
    if len(y.shape) == 1:
        y, shape = reshaped(r, y, [*y.shape, 1]), [*shape, 1]
    if len(x.shape) == 1:
        x, shape = reshaped(r, x, [1, *x.shape]), [*shape[:-1], 1, shape[-1]]
    return reshaped(r, r.emit("matmul", [x, y], shape), a.shape)


@op("einsum")
def _einsum(r, a):
    return contracted(r, a.equation, [r.value(t) for t in a.tensors], a.shape)


def contracted(r, equation, tensors, shape):
    """A sum of products of two tensors, as one batched matrix product."""
    left, arrow, out = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != 2 or "." in equation or any(len(set(t)) != len(t) for t in terms):
        raise Unsupported(
            f"einsum '{equation}'; of two operands, with an arrow, each letter once in an operand, it can be"
        )
    extent = {
        letter: e for term, tensor in zip(terms, tensors) for letter, e in zip(term, tensor.shape)
    }
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
        turned = (
            tensor
            if order == sorted(order)
            else r.emit("permute", [tensor], [extent[c] for c in letters], axes=order)
        )
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
            reach = [d * (k - 1) for d, k in zip(times(a.dilation, spatial), kernel)]
            padding = [x // 2 if a.padding == "same" else 0 for x in reach]
            x = _one_more_behind(r, r.value(a.input), reach) if a.padding == "same" else r.value(a.input)
        else:
            padding, x = times(a.padding, spatial), r.value(a.input)
        return r.emit(
            "conv",
            [x, r.value(a.weight), None if a.bias is None else r.value(a.bias)],
            a.shape,
            stride=times(a.stride, spatial),
            padding=padding,
            dilation=times(a.dilation, spatial),
            groups=a.groups,
        )

    return handler


def _one_more_behind(r, x, reach):
    """Of padding 'same' with an even kernel: the number that the end has more than the front."""
    for at, numbers in enumerate(reach):
        if numbers % 2:
            shape = list(x.shape)
            shape[2 + at] += 1
            x = r.emit("pad", [x], shape, axis=2 + at, before=0, behind=1, value=0)
    return x


op("conv2d", "conv2d.padding")(_convolution(2))
op("conv1d", "conv1d.padding")(_convolution(1))


@op("conv_transpose2d.input")
def _conv_transpose(r, a):
    return r.emit(
        "conv_transpose",
        [r.value(a.input), r.value(a.weight), None if a.bias is None else r.value(a.bias)],
        a.shape,
        stride=times(a.stride, 2),
        padding=times(a.padding, 2),
        dilation=times(a.dilation, 2),
        groups=a.groups,
    )


@op("conv_transpose1d")
def _conv_transpose_row(r, a):
    """Of images that are one number wide."""
    x, weight = r.value(a.input), r.value(a.weight)
    made = r.emit(
        "conv_transpose",
        [
            reshaped(r, x, [*x.shape, 1]),
            reshaped(r, weight, [*weight.shape, 1]),
            None if a.bias is None else r.value(a.bias),
        ],
        [*a.shape, 1],
        stride=[*times(a.stride, 1), 1],
        padding=[*times(a.padding, 1), 0],
        dilation=[*times(a.dilation, 1), 1],
        groups=a.groups,
    )
    return reshaped(r, made, a.shape)


@op("batch_norm")
def _batch_norm(r, a):
    x = r.value(a.input)
    if a.running_mean is None and a.training and not depends_on_rows(x.shape):
        return _standardised(r, a, x)
    if a.running_mean is None and a.training:
        return _by_the_batch(r, a, x)
    if a.running_mean is None or a.momentum is None:
        raise Unsupported("with momentum=None, a mean over all steps; build it with a momentum")
    if a.training and a.running_mean.name in r.graph.buffers:
        raise Unsupported("twice in one forward pass, which moves its statistics twice; give each call a layer of its own")
    running = [r.buffer(item) for item in (a.running_mean, a.running_var)]
    scales = [None if item is None else r.value(item) for item in (a.weight, a.bias)]
    return r.emit(
        "batch_norm",
        [x, *scales, *running],
        x.shape,
        momentum=float(a.momentum),
        epsilon=float(a.eps),
        training=bool(a.training),
    )


def _standardised(r, a, x):
    """Of a tensor without rows, a weight: each channel [1,C,...] by itself."""
    order = [1, 0, *range(2, len(x.shape))]
    turned = x if x.shape[0] == 1 else r.emit("permute", [x], [x.shape[at] for at in order], axes=order)
    channels = x.shape[1]
    flat = reshaped(r, turned, [channels, math.prod(x.shape) // channels])
    made = r.emit("layer_norm", [flat], flat.shape, axes=1, epsilon=float(a.eps))
    for name, item in (("mul", a.weight), ("add", a.bias)):
        if item is not None:
            made = binary(r, name, made, reshaped(r, item, [channels, 1]))
    made = reshaped(r, made, [turned.shape[at] for at in order] if turned is not x else x.shape)
    return made if turned is x else r.emit("permute", [made], x.shape, axes=order)


def _by_the_batch(r, a, x):
    """Of rows, without running statistics: those of the batch, in evaluation too."""
    axes = [at for at in range(len(x.shape)) if at != 1]
    mean = reduced(r, "mean", x, axes, True)
    off = binary(r, "sub", x, mean)
    variance = reduced(r, "mean", mapped(r, "square", off), axes, True)
    made = binary(r, "mul", off, mapped(r, "rsqrt", binary(r, "add", variance, float(a.eps))))
    for name, item in (("mul", a.weight), ("add", a.bias)):
        if item is not None:
            made = binary(r, name, made, reshaped(r, item, [x.shape[1], *[1] * (len(x.shape) - 2)]))
    return made


def _affine(r, a):
    return [None if item is None else r.value(item) for item in (a.weight, a.get("bias"))]


@op("layer_norm")
def _layer_norm(r, a):
    x = r.value(a.input)
    return r.emit(
        "layer_norm",
        [x, *_affine(r, a)],
        x.shape,
        axes=len(a.normalized_shape),
        epsilon=float(a.eps),
    )


@op("rms_norm")
def _rms_norm(r, a):
    x = r.value(a.input)
    epsilon = 1.1920928955078125e-07 if a.eps is None else float(a.eps)
    return r.emit(
        "rms_norm", [x, _affine(r, a)[0]], x.shape, axes=len(a.normalized_shape), epsilon=epsilon
    )


@op("instance_norm")
def _instance_norm(r, a):
    if not a.use_input_stats or a.running_mean is not None:
        raise Unsupported("instance norm with running statistics; build it with track_running_stats=False")
    return _in_groups(r, a, r.value(a.input).shape[1])


@op("group_norm")
def _group_norm(r, a):
    return _in_groups(r, a, a.num_groups)


def _in_groups(r, a, groups):
    """Whatever has channels, as images."""
    x = r.value(a.input)
    image = reshaped(r, x, [*x.shape, 1, 1][:4] if len(x.shape) < 4 else [*x.shape[:3], math.prod(x.shape[3:])])
    y = r.emit("group_norm", [image, *_affine(r, a)], image.shape, groups=groups, epsilon=float(a.eps))
    return reshaped(r, y, x.shape)


@op("dropout", "feature_dropout")
def _dropout(r, a):
    given = a.get("input", a.get("self"))
    if not a.train or a.p == 0:
        return given
    x = r.value(given)
    if "feature" in str(a.nodes[0].target):  # whole channels
        shape = x.shape[:2] + [1] * (len(x.shape) - 2)
        return binary(r, "mul", x, r.emit("drop_mask", [], shape, p=float(a.p)))
    return r.emit("dropout", [x], x.shape, p=float(a.p))


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
    if len(q.shape) > 4:
        q, k, v, mask = _joined_in_front(r, q, k, v, mask)
    if len(q.shape) == 3:  # one head
        q, k, v = (reshaped(r, item, [item.shape[0], 1, *item.shape[1:]]) for item in (q, k, v))
        if mask is not None and len(mask.shape) == 3:
            mask = reshaped(r, mask, [mask.shape[0], 1, *mask.shape[1:]])
    made = r.emit(
        "attention",
        [q, k, v, mask],
        [*q.shape[:3], v.shape[3]],
        causal=causal,
        scale=None if a.scale is None else float(a.scale),
        dropout=float(a.dropout_p),
    )
    return reshaped(r, made, a.shape)


def _joined_in_front(r, q, k, v, mask):
    """Windows, frames and the like as rows: [rows, ..., heads, T, D] is [rows*..., heads, T, D]."""
    front = q.shape[:-3]
    joined = product(front)

    def as_rows(item):
        if item.shape[:-3] != front:
            item = r.emit("expand", [item], [*front, *item.shape[-3:]], item.dtype)
        return reshaped(r, item, [joined, *item.shape[-3:]])

    if mask is not None:
        mask = reshaped(r, mask, [1] * (len(q.shape) - len(mask.shape)) + mask.shape)
        mask = reshaped(r, mask, mask.shape[-3:]) if all(e == 1 for e in mask.shape[:-3]) else as_rows(mask)
    return as_rows(q), as_rows(k), as_rows(v), mask


def _known_mask(mask):
    """A mask that lets everything through, or what lies before, needs no tensor."""
    tensor, _ = mask.one_row()
    if tensor.dtype != torch.bool:
        if not tensor.any():
            return None, False
        if not ((tensor == 0) | (tensor == -math.inf)).all():
            return mask, False
        mask = Known(tuple(t == 0 for t in mask.tensors))
        tensor = tensor == 0
    if tensor.all():
        return None, False
    queries, keys = tensor.shape[-2:]
    if torch.equal(
        tensor, torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries).expand_as(tensor)
    ):
        return None, True
    bias = tuple(torch.zeros(t.shape).masked_fill(~t.cpu(), -3.0e38) for t in mask.tensors)
    return Known(bias), False


@op("lstm.input")
def _lstm(r, a):
    x = r.value(a.input)
    states = [r.value(item) for item in a.hx]
    each = 4 if a.has_biases else 2
    weights = [[r.value(w) for w in a.params[i : i + each]] for i in range(0, len(a.params), each)]
    if (
        any(len(layer) != each for layer in weights)
        or weights[0][1].shape[0] != 4 * weights[0][1].shape[1]
    ):
        raise Unsupported("an LSTM with a projection of its state")
    if not a.batch_first:
        x = r.emit("permute", [x], [x.shape[1], x.shape[0], x.shape[2]], axes=[1, 0, 2])
    rows, steps, hidden = x.shape[0], x.shape[1], weights[0][1].shape[1]
    last_h, last_c = [], []
    ways = 2 if a.bidirectional else 1
    for at in range(0, len(weights), ways):
        if at > 0 and a.train and a.dropout > 0:
            x = r.emit("dropout", [x], x.shape, p=float(a.dropout))
        made = []
        for way in range(ways):
            start = [
                reshaped(r, sliced(r, s, 0, at + way, at + way + 1), [rows, hidden]) for s in states
            ]
            y, h, c = r.emit_all(
                "lstm",
                [flipped(r, x, 1) if way else x, *start, *weights[at + way]],
                [([rows, steps, hidden], "f32"), ([rows, hidden], "f32"), ([rows, hidden], "f32")],
            )
            made.append(flipped(r, y, 1) if way else y)
            last_h.append(reshaped(r, h, [1, rows, hidden]))
            last_c.append(reshaped(r, c, [1, rows, hidden]))
        x = made[0] if ways == 1 else r.emit("concat", made, [rows, steps, 2 * hidden], axis=2)
    hidden_out = ways * hidden
    if not a.batch_first:
        x = r.emit("permute", [x], [steps, rows, hidden_out], axes=[1, 0, 2])
    join = lambda states: (
        states[0]
        if len(states) == 1
        else r.emit("concat", states, [len(states), rows, hidden], axis=0)
    )
    return [x, join(last_h), join(last_c)]
