"""Losses, made of the ops that they are made of, but for the cross-entropy."""

from __future__ import annotations

from ..values import Unsupported, Value
from .registry import op
from .elements import binary, mapped
from .sums import reduced

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
    return r.emit(
        "cross_entropy",
        [logits, labels],
        [],
        ignore=a.ignore_index,
        label_smoothing=float(a.get("label_smoothing", 0.0)),
        reduction=REDUCTIONS[a.reduction],
    )


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
    if a.pos_weight is not None:
        raise Unsupported("binary cross-entropy with pos_weight")
    loss = binary(r, "sub", mapped(r, "softplus", a.self), binary(r, "mul", a.self, a.target))
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
