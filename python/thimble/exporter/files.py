"""Tensors in safetensors files, without a copy of all of them at once."""

from __future__ import annotations

import json
import mmap
import os
import struct

import torch

STORED = {torch.float32: "F32", torch.int32: "I32", torch.uint8: "U8"}
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
    with open(temporary, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in ordered:
            file.write(tensor.detach().cpu().contiguous().numpy().tobytes())
    os.replace(temporary, path)


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
