"""Losses, made of the ops that they are made of, but for the cross-entropy."""

from __future__ import annotations

from ..values import Unsupported, Value
from .registry import op, reshaped
from .elements import binary, compared, mapped
from .lookups import places_as_shares
from .sums import reduced

REDUCTIONS = {0: None, 1: "mean", 2: "sum"}


def finished(r, x, reduction):
    kind = REDUCTIONS[reduction]
    return x if kind is None else reduced(r, kind, x, None, False)


@op("cross_entropy_loss", "nll_loss_nd", "nll_loss", "nll_loss2d")
def _cross_entropy(r, a):
    logits, labels = r.value(a.self), r.value(a.target)
    if labels.dtype != "i32" or a.weight is not None or a.reduction == 0:
        return _written_out(r, a, logits, labels)
    node = next((n for n in reversed(r.graph.nodes) if logits.name in n.outputs), None)
    if "nll" in str(a.nodes[0].target):
        if node is None or node.op != "log_softmax":
            raise Unsupported("a negative log-likelihood of anything but log_softmax")
        logits = Value(node.inputs[0], logits.shape, "f32")
    return r.emit(
        "cross_entropy",
        [logits, labels],
        [],
        ignore=a.ignore_index,
        label_smoothing=float(a.get("label_smoothing", 0.0)),
        reduction=REDUCTIONS[a.reduction],
    )


def _written_out(r, a, logits, target):
    """With shares as targets, weights of classes, or a loss for each label."""
    if "nll" in a.nodes[0].target.name():
        shares = logits
    else:
        shares = r.emit("log_softmax", [logits], logits.shape, axis=1 if len(logits.shape) > 1 else 0)
    rank, classes = len(logits.shape), logits.shape[1]
    weight = None if a.weight is None else reshaped(r, a.weight, [1, classes] + [1] * (rank - 2))
    smooth = float(a.get("label_smoothing", 0.0))
    labelled = target.dtype == "i32"
    if labelled:
        ones = places_as_shares(r, target, classes)  # the classes come last
        axes = [0, rank - 1, *range(1, rank - 1)]
        wanted = ones if rank == 2 else r.emit("permute", [ones], logits.shape, axes=axes)
        counted = r.emit("cast", [compared(r, "ne", target, float(a.ignore_index), target.shape)], target.shape)
    else:
        wanted = binary(r, "add", binary(r, "mul", target, 1 - smooth), smooth / classes) if smooth else target

    def over_classes(what):
        what = what if weight is None else binary(r, "mul", what, weight)
        return reduced(r, "sum", what, [1], False)

    loss = mapped(r, "neg", over_classes(binary(r, "mul", wanted, shares)))
    if not labelled:
        kind = REDUCTIONS[a.reduction]
        return loss if kind is None else reduced(r, kind, loss, None, False)
    if smooth:
        every = binary(r, "mul", over_classes(shares), -smooth / classes)
        loss = binary(r, "add", binary(r, "mul", loss, 1 - smooth), every)
    loss = binary(r, "mul", loss, counted)
    if a.reduction != 1:
        return finished(r, loss, a.reduction)
    weights = binary(r, "mul", over_classes(wanted), counted)
    return binary(r, "div", reduced(r, "sum", loss, None, False), reduced(r, "sum", weights, None, False))


@op("mse_loss")
def _mse(r, a):
    return finished(r, mapped(r, "square", binary(r, "sub", a.self, a.target)), a.reduction)


@op("l1_loss")
def _l1(r, a):
    return finished(r, mapped(r, "abs", binary(r, "sub", a.self, a.target)), a.reduction)


@op("smooth_l1_loss")
def _smooth_l1(r, a):
    return finished(
        r,
        mapped(r, "smooth_l1", binary(r, "sub", a.self, a.target), beta=float(a.beta)),
        a.reduction,
    )


@op("huber_loss")
def _huber(r, a):
    loss = mapped(r, "smooth_l1", binary(r, "sub", a.self, a.target), beta=float(a.delta))
    return finished(r, binary(r, "mul", loss, float(a.delta)), a.reduction)


@op("binary_cross_entropy_with_logits")
def _bce(r, a):
    if a.pos_weight is None:
        loss = binary(r, "sub", mapped(r, "softplus", a.self), binary(r, "mul", a.self, a.target))
    else:  # (1 - y) x + (1 + (p - 1) y) softplus(-x)
        more = binary(r, "mul", binary(r, "sub", a.pos_weight, 1.0), a.target)
        ones = binary(r, "mul", binary(r, "add", more, 1.0), mapped(r, "softplus", mapped(r, "neg", a.self)))
        loss = binary(r, "add", binary(r, "mul", binary(r, "sub", 1.0, a.target), a.self), ones)
    return finished(r, loss if a.weight is None else binary(r, "mul", loss, a.weight), a.reduction)


FAINT = 1e-12  # shares of which PyTorch, too, makes next to no gradient
NONE = 3.0e-39  # what a sigmoid ends in that would be 0


def _log_of_share(r, share):
    """-100 at least, as PyTorch has it. Of faint shares the value alone: the slope of a logarithm at 0 is infinite, and
    that times the slope of a sigmoid there, 0, is no number."""
    share = r.value(share)
    faint = r.emit("cast", [compared(r, "le", share, FAINT, share.shape)], share.shape)
    there = r.emit("cast", [compared(r, "gt", share, NONE, share.shape)], share.shape)
    value = mapped(r, "log", binary(r, "mul", r.emit("detach", [share], share.shape), there))
    value = mapped(r, "clip", value, low=-100.0)
    steady = mapped(r, "log", binary(r, "add", share, faint))  # 0 where it is faint
    return binary(r, "add", steady, binary(r, "mul", value, faint))


@op("binary_cross_entropy")
def _bce_of_shares(r, a):
    yes, no = (_log_of_share(r, share) for share in (a.self, binary(r, "sub", 1.0, a.self)))
    loss = binary(
        r, "add", binary(r, "mul", a.target, yes), binary(r, "mul", binary(r, "sub", 1.0, a.target), no)
    )
    loss = mapped(r, "neg", loss)
    return finished(r, loss if a.weight is None else binary(r, "mul", loss, a.weight), a.reduction)


@op("kl_div")
def _kl_div(r, a):
    target = r.value(a.target)
    entropy = (
        binary(r, "sub", target, a.self)
        if a.log_target
        else binary(r, "sub", mapped(r, "log_of_share", target), a.self)
    )
    share = mapped(r, "exp", target) if a.log_target else target
    return finished(r, binary(r, "mul", share, entropy), a.reduction)
