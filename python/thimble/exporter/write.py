"""A captured graph as NAME.json beside NAME.safetensors: docs/import.md says what the fields are."""

from __future__ import annotations

import json
import os
import struct

import torch

FORMAT = 1
_STORED = {torch.float32: "F32", torch.int32: "I32", torch.uint8: "U8"}


def write(graph, path: str, *, name: str = "", batch: int = 1, groups=None) -> None:
    """`groups`: {"rate", "decay"} of each group of parameters, which say by "group" which one they are of."""
    stem = path.removesuffix(".json")
    tensors = {**graph.tensors, **graph.constants}
    write_safetensors(stem + ".safetensors", tensors)
    document = {
        "thimble_network": FORMAT,
        "name": name,
        "made_by": f"torch {torch.__version__}",
        "batch": batch,
        "weights": os.path.basename(stem) + ".safetensors",
        "inputs": graph.inputs,
        "parameters": list(graph.parameters.values()),
        "buffers": list(graph.buffers.values()),
        "constants": [
            {"name": key, "dtype": _STORED[value.dtype].lower(), "shape": list(value.shape)}
            for key, value in graph.constants.items()
        ],
        "groups": groups or [],
        "nodes": [
            {
                "op": node.op,
                "in": node.inputs,
                "out": node.outputs,
                "attrs": node.attrs,
                "shapes": node.shapes,
                "at": node.where,
            }
            for node in graph.nodes
        ],
        "loss": graph.loss,
        "outputs": graph.outputs,
    }
    temporary = stem + ".json.part"
    with open(temporary, "w", encoding="utf-8") as file:
        lines = [
            f" {json.dumps(key)}: "
            + (
                _rows(value)
                if isinstance(value, list) and value and isinstance(value[0], dict)
                else json.dumps(value)
            )
            for key, value in document.items()
        ]
        file.write("{\n" + ",\n".join(lines) + "\n}\n")
    os.replace(temporary, stem + ".json")


def _rows(items) -> str:
    return "[\n" + ",\n".join("  " + json.dumps(item) for item in items) + "\n ]"


def write_safetensors(path: str, tensors: dict) -> None:
    """Without a copy of all of them at once."""
    header, at = {}, 0
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    for key, tensor in ordered:
        size = tensor.numel() * tensor.element_size()
        header[key] = {
            "dtype": _STORED[tensor.dtype],
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
