"""Tensors in safetensors files, without a copy of all of them at once."""

from __future__ import annotations

import json
import mmap
import os
import struct

import torch

from .._process import FilePages

STORED = {torch.float32: "F32", torch.int32: "I32", torch.uint8: "U8"}
_PIECE = 1 << 22
_READ = {
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I32": torch.int32,
    "U8": torch.uint8,
    "I64": torch.int64,
}


def write_safetensors(path: str, tensors: dict) -> None:
    header, at = {}, 0
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    for key, tensor in ordered:
        size = tensor.numel() * tensor.element_size()
        header[key] = {
            "dtype": STORED[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    temporary = path + ".part"
    mapped = FilePages()
    with open(temporary, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in ordered:
            if tensor.numel():
                file.write(_bytes_of(tensor))
                mapped.let_go_of(tensor)
    os.replace(temporary, path)


def _bytes_of(tensor) -> memoryview:
    return memoryview(tensor.detach().cpu().contiguous().numpy().reshape(-1)).cast("B")


def differing(path: str | os.PathLike[str], tensors: dict[str, torch.Tensor]) -> list[str]:
    """Names of the tensors that are not in the file with the same bits, of which it reads one piece at a time."""
    names = []
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        for name, tensor in tensors.items():
            begin, end = header.get(name, {"data_offsets": (0, -1)})["data_offsets"]
            if end - begin != tensor.numel() * tensor.element_size():
                names.append(name)
                continue
            file.seek(8 + length + begin)
            own = _bytes_of(tensor) if end > begin else memoryview(b"")
            pieces = range(0, end - begin, _PIECE)
            if any(file.read(min(_PIECE, end - begin - at)) != own[at : at + _PIECE] for at in pieces):
                names.append(name)
    return names


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, torch.Tensor]:
    """Tensors that are read as they are looked at; what is written to them stays out of the file."""
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        dtype, (begin, end) = _READ[entry["dtype"]], entry["data_offsets"]
        count = (end - begin) // dtype.itemsize
        tensors[name] = (
            torch.frombuffer(data, dtype=dtype, offset=8 + length + begin, count=count)
            if count
            else torch.empty(0, dtype=dtype)
        ).reshape(entry["shape"])
    return tensors
