"""What the parity scripts read: safetensors as NumPy arrays."""
import json
import pathlib
import struct

import numpy as np


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = {"F32": np.float32, "U8": np.uint8, "I32": np.int32}[entry["dtype"]]
        tensors[name] = np.frombuffer(data[begin:end], dtype).reshape(entry["shape"]).copy()
    return tensors
