"""The common part of the parity scripts: safetensors as NumPy arrays, and training beside each other."""
import json
import pathlib
import struct

import numpy as np
import torch


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


class Agreement:
    """Losses of two programs, step by step."""

    LIMIT = 1e-4

    def __init__(self):
        self.steps, self.worst = 0, 0.0

    def step(self, ours, theirs):
        self.steps += 1
        difference = abs(theirs - ours) / abs(theirs)
        self.worst = max(self.worst, difference)
        print(f"step {self.steps:3}  thimble {ours:.7f}  PyTorch {theirs:.7f}  "
              f"relative difference {difference:.2e}", flush=True)

    def train(self, optimizer, batches, ours, loss_of):
        """A step for each of our losses, on the batches of that folder."""
        for step, loss_of_ours in enumerate(ours):
            batch = {name: torch.from_numpy(tensor) for name, tensor in
                     read_safetensors(f"{batches}/batch-{step:06}.safetensors").items()}
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(batch)
            loss.backward()
            optimizer.step()
            self.step(loss_of_ours, loss.item())

    def verdict(self):
        """The exit code."""
        agree = self.worst <= self.LIMIT
        print(f"worst relative difference {self.worst:.2e} (limit {self.LIMIT:.0e}): "
              f"{'agree' if agree else 'DISAGREE'}")
        return 0 if agree else 1
