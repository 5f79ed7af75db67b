"""Complex numbers as pairs of real ones, and Fourier transforms as products with known tables of cosines and sines."""

from __future__ import annotations

import math

import torch

from ..values import Complex, Known, Unsupported
from .registry import HANDLERS, Arguments, axis_of, op, reshaped
from .elements import binary, mapped
from .shapes import moved, sliced
from .sums import root


def _complex(item):
    """A pair of it; None: it is real."""
    if isinstance(item, Complex):
        return item
    if isinstance(item, Known) and item.first.is_complex():
        return Complex(*(Known(tuple(getattr(t, part).contiguous() for t in item.tensors)) for part in ("real", "imag")))
    return None


def _pair(item):
    return _complex(item) or Complex(item, None)


def _product(r, x, table):
    """Of the last axis with a table [n, m]."""
    return r.emit("matmul", [x, r.value(Known((table, table)))], [*x.shape[:-1], table.shape[1]])


def _added(r, x, y, name="add"):
    return x if y is None else binary(r, name, x, y)


def _scale(norm, count, inverse):
    return {"ortho": 1 / math.sqrt(count), "forward": 1.0 if inverse else 1 / count}.get(
        norm, 1 / count if inverse else 1.0
    )


def _tables(count, kept, factor, inverse):
    """Cosines and sines [count, kept] of exp(-i t k 2 pi / count), or of its conjugate."""
    angles = torch.outer(torch.arange(count), torch.arange(kept)).remainder(count).double() * (2 * math.pi / count)
    sines = angles.sin() if inverse else -angles.sin()
    return (angles.cos() * factor).float(), (sines * factor).float()


def _along(r, x, axis, inverse, norm, half=False):
    """The transform of a pair along one axis; `half`: of real numbers, the part that the rest mirrors."""
    count, last = x.shape[axis], len(x.shape) - 1
    if isinstance(count, str):
        raise Unsupported("a transform over the rows")
    cosines, sines = _tables(count, count // 2 + 1 if half else count, _scale(norm, count, inverse), inverse)
    re = moved(r, r.value(x.re), axis, last)
    made_re, made_im = _product(r, re, cosines), _product(r, re, sines)
    if x.im is not None:
        im = moved(r, r.value(x.im), axis, last)
        made_re = binary(r, "sub", made_re, _product(r, im, sines))
        made_im = binary(r, "add", made_im, _product(r, im, cosines))
    return Complex(moved(r, made_re, last, axis), moved(r, made_im, last, axis))


def _back_to_real(r, x, axis, count, norm):
    """Real numbers from the half that a transform keeps of them."""
    kept, last = x.shape[axis], len(x.shape) - 1
    cosines, sines = _tables(count, kept, _scale(norm, count, True), True)
    twice = torch.full((kept, 1), 2.0)
    twice[0] = 1.0
    if count % 2 == 0 and kept == count // 2 + 1:
        twice[-1] = 1.0
    re, im = (moved(r, r.value(part), axis, last) for part in (x.re, x.im))
    made = _product(r, re, cosines.T.contiguous() * twice)
    made = binary(r, "sub", made, _product(r, im, sines.T.contiguous() * twice))
    return moved(r, made, last, axis)


def _transform(inverse, of_real):
    def handler(r, a):
        x = _pair(a.self if _complex(a.self) else r.value(a.self))
        dims = a.get("dim")
        dims = [dims] if isinstance(dims, int) else list(range(len(x.shape))) if dims is None else list(dims)
        axes = [axis_of(d, x.shape) for d in dims]
        for axis in axes[: -1 if of_real and inverse else None]:
            kept = a.shape[axis]
            if kept != x.shape[axis] and not (of_real and axis == axes[-1] and kept == x.shape[axis] // 2 + 1):
                raise Unsupported("a transform of a part of an axis, or of more than it has; cut or pad before")
        if of_real and not inverse:
            x = _along(r, x, axes[-1], False, a.norm, half=True)
            axes = axes[:-1]
        for axis in axes[:-1] if of_real and inverse else axes:
            x = _along(r, x, axis, inverse, a.norm)
        return _back_to_real(r, x, axes[-1], a.shape[axes[-1]], a.norm) if of_real and inverse else x

    return handler


for _name in ("fft", "fft2", "fftn"):
    op(f"fft_{_name}")(_transform(False, False))
    op(f"fft_i{_name}")(_transform(True, False))
    op(f"fft_r{_name}")(_transform(False, True))
    op(f"fft_ir{_name}")(_transform(True, True))


@op("view_as_complex")
def _of_pairs(r, a):
    x = r.value(a.self)
    last = len(x.shape) - 1
    return Complex(*(reshaped(r, sliced(r, x, last, k, k + 1), x.shape[:-1]) for k in (0, 1)))


@op("view_as_real")
def _as_pairs(r, a):
    x = _pair(a.self)
    parts = [reshaped(r, part, [*x.shape, 1]) for part in (x.re, x.im)]
    return r.emit("concat", parts, [*x.shape, 2], axis=len(x.shape))


@op("complex")
def _made_of(r, a):
    return Complex(r.value(a.real), r.value(a.imag))


@op("real")
def _real(r, a):
    return _pair(a.self).re


@op("imag")
def _imag(r, a):
    return _pair(a.self).im


@op("conj", "_conj", "resolve_conj", "conj_physical")
def _conjugate(r, a):
    x = _complex(a.self)
    if x is None or "resolve" in a.nodes[0].target.name():
        return a.self
    return Complex(x.re, mapped(r, "neg", x.im))


def _multiplied(r, x, y):
    if y.im is None or x.im is None:
        x, y = (x, y) if y.im is None else (y, x)
        return Complex(binary(r, "mul", x.re, y.re), binary(r, "mul", x.im, y.re))
    re = binary(r, "sub", binary(r, "mul", x.re, y.re), binary(r, "mul", x.im, y.im))
    return Complex(re, binary(r, "add", binary(r, "mul", x.re, y.im), binary(r, "mul", x.im, y.re)))


def _arithmetic(name):
    def handler(r, a):
        if a.get("alpha", 1) != 1:
            raise Unsupported("of complex numbers with alpha other than 1")
        x, y = _pair(a.self), _pair(a.other)
        if name == "mul":
            return _multiplied(r, x, y)
        if name == "div":
            if y.im is not None:
                raise Unsupported("a division by complex numbers")
            return Complex(binary(r, "div", x.re, y.re), binary(r, "div", x.im, y.re))
        im = mapped(r, "neg", y.im) if x.im is None and name == "sub" else x.im
        im = y.im if x.im is None and name == "add" else im
        both = x.im is not None and y.im is not None
        return Complex(binary(r, name, x.re, y.re), binary(r, name, x.im, y.im) if both else im)

    return handler


def _size(r, a):
    x = a.self
    return root(r, binary(r, "add", mapped(r, "square", x.re), mapped(r, "square", x.im)), 2)


def _of_both(handler):
    """Of the parts, each by itself."""

    def apart(r, a):
        made = []
        for part in ("re", "im"):
            one = Arguments.__new__(Arguments)
            one.__dict__.update(a.__dict__)
            one.by_name = {name: _part_of(item, part) for name, item in a.by_name.items()}
            made.append(handler(r, one))
        return Complex(*made)

    return apart


def _part_of(item, part):
    if isinstance(item, list):
        return [_part_of(one, part) for one in item]
    pair = _complex(item)
    return item if pair is None else getattr(pair, part)


def _where_complex(name, handler):
    real = HANDLERS["aten::" + name]

    def chosen(r, a):
        items = [one for item in a.by_name.values() for one in (item if isinstance(item, list) else [item])]
        return (handler if any(_complex(item) for item in items) else real)(r, a)

    HANDLERS["aten::" + name] = chosen


for _name in ("add", "sub", "mul", "div"):
    for _kind in ("Tensor", "Scalar"):
        _where_complex(f"{_name}.{_kind}", _arithmetic(_name))
_where_complex("abs", _size)
_MOVES = ("view", "reshape", "flatten.using_ints", "unflatten.int", "unsqueeze", "squeeze", "squeeze.dim", "permute")
_MOVES += ("transpose.int", "expand", "slice.Tensor", "select.int", "contiguous", "clone", "alias", "cat", "stack", "roll")
for _name in _MOVES:
    if "aten::" + _name in HANDLERS:
        _where_complex(_name, _of_both(HANDLERS["aten::" + _name]))
