"""Arrays of others and tensors of ours, without copies where there is a way."""

from __future__ import annotations

import ctypes
from typing import Any

from ._errors import UserError

try:
    import numpy as np
except ImportError:  # planning, and runs on data sets, do without
    np = None  # type: ignore[assignment]

F32, F64, F16, BF16, I32, I64, U8 = range(7)
_NUMPY_NAMES = {F32: "float32", F64: "float64", F16: "float16", BF16: "uint16", I32: "int32",
                I64: "int64", U8: "uint8"}
NAMES = {F32: "float32", F64: "float64", F16: "float16", BF16: "bfloat16", I32: "int32",
         I64: "int64", U8: "uint8"}


def need_numpy() -> Any:
    if np is None:
        raise ImportError("thimble: arrays go in and out as NumPy's, which is not here; "
                          "`pip install numpy`")
    return np


def numpy_dtype(dtype: int) -> Any:
    """bfloat16, which NumPy has not, goes as its 16 bits."""
    return need_numpy().dtype(_NUMPY_NAMES[dtype])


def view_of(address: int, shape: tuple[int, ...], dtype: int, owner: Any = None) -> Any:
    """The bytes at `address` as an array that does not own them, but keeps `owner` alive."""
    numpy = need_numpy()
    kind = numpy_dtype(dtype)
    size = kind.itemsize
    for extent in shape:
        size *= extent
    room = (ctypes.c_ubyte * size).from_address(address)
    room.owner = owner  # type: ignore[attr-defined]
    return numpy.frombuffer(room, dtype=kind).reshape(shape)


def as_array(value: Any, name: str) -> Any:
    """Whatever speaks DLPack or NumPy, as NumPy's: a view where it lies in the host's memory."""
    numpy = need_numpy()
    if isinstance(value, numpy.ndarray):
        return value
    if hasattr(value, "detach"):  # of PyTorch, with a gradient or on a card
        value = value.detach()
        if value.device.type != "cpu":
            value = value.cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
    if hasattr(value, "__array__"):
        return numpy.asarray(value)
    if hasattr(value, "__dlpack__"):
        return numpy.from_dlpack(value)
    try:
        return numpy.asarray(value)
    except ValueError as error:
        raise UserError(f"'{name}' is no array: {error}") from error


def fitting(array: Any, name: str, dtype: int) -> Any:
    """The array, if its numbers can go where `dtype` is read; else says why not."""
    numpy = need_numpy()
    wanted = numpy_dtype(dtype)
    have = array.dtype
    if have == wanted or (dtype == BF16 and have == numpy.float32):
        return array
    if have.kind == "f" and wanted.kind == "f" and dtype != BF16:
        return array
    if have.kind == "b" and wanted.kind in "iu":
        return array
    if have.kind in "iu" and wanted.kind in "iu" and dtype != BF16:
        limits = numpy.iinfo(wanted)
        if array.size and (array.min() < limits.min or array.max() > limits.max):
            raise UserError(f"'{name}' has numbers from {array.min()} to {array.max()}, and "
                            f"{NAMES[dtype]} ends at {limits.max}")
        return array
    raise UserError(f"'{name}' is {have}, and {NAMES[dtype]} is read there; convert it before")


def to_bfloat16_bits(array: Any) -> Any:
    """Rounded to nearest, ties to even."""
    numpy = need_numpy()
    bits = numpy.ascontiguousarray(array, dtype=numpy.float32).view(numpy.uint32)
    rounded = bits + (0x7FFF + ((bits >> 16) & 1))
    quiet = numpy.isnan(array)
    return numpy.where(quiet, (bits >> 16) | 0x40, rounded >> 16).astype(numpy.uint16)


def from_bfloat16_bits(bits: Any) -> Any:
    numpy = need_numpy()
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)
