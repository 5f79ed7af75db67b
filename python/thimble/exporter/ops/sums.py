"""Sums, means and shares over axes."""

from __future__ import annotations

from ..values import Unsupported
from .registry import op, axis_of
from .elements import binary, mapped


def reduced(r, kind, x, dims, keep):
    x = r.value(x)
    axes = sorted({axis_of(d, x.shape) for d in dims}) if dims else list(range(len(x.shape)))
    shape = (
        [1 if i in axes else e for i, e in enumerate(x.shape)]
        if keep
        else [e for i, e in enumerate(x.shape) if i not in axes]
    )
    return r.emit(kind, [x], shape, axes=axes, keep=bool(keep))


for _name in ("sum", "mean"):
    op(_name, f"{_name}.dim", f"{_name}.dim_IntList")(
        lambda r, a, kind=_name: reduced(r, kind, a.self, a.get("dim"), a.get("keepdim", False))
    )


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
    variance = binary(
        r,
        "mul",
        reduced(r, "mean", mapped(r, "square", error), dims, a.keepdim),
        count / (count - off),
    )
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
