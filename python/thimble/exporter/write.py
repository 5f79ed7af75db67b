"""A captured graph as NAME.json beside NAME.safetensors: docs/import.md says what the fields are."""

from __future__ import annotations

import json
import os

import torch

from .files import STORED

FORMAT = 1


def weights_of(path: str) -> str:
    return path.removesuffix(".json") + ".safetensors"


def write_graph(
    graph, path: str, weights: str, *, name: str = "", batch: int = 1, groups=None, checked: str = ""
) -> None:
    """The network file alone; `weights`: a file in its folder.

    groups   {"rate", "decay"} of each group of parameters, which say by "group" which one they are of
    checked  against what it was held before it was written: for people
    """
    document = {
        "thimble_network": FORMAT,
        "name": name,
        "made_by": f"torch {torch.__version__}",
        "batch": batch,
        "checked": checked,
        "weights": weights,
        "inputs": graph.inputs,
        "parameters": list(graph.parameters.values()),
        "buffers": list(graph.buffers.values()),
        "constants": [
            {"name": key, "dtype": STORED[value.dtype].lower(), "shape": list(value.shape)}
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
    path = path.removesuffix(".json") + ".json"
    temporary = path + ".part"
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
    os.replace(temporary, path)


def _rows(items) -> str:
    return "[\n" + ",\n".join("  " + json.dumps(item) for item in items) + "\n ]"
