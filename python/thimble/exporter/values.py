"""What flows through a graph while it is read: sizes in rows, tensors that are known, tensors that are not."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import torch

# The graph is exported for so many rows, twice; what differs between the two is a multiple of them.
ROWS = (2, 3)

DTYPES = {
    torch.float32: "f32",
    torch.int64: "i32",
    torch.int32: "i32",
    torch.bool: "u8",
    torch.uint8: "u8",
}


class CannotExport(Exception):
    """Says what of a module has no counterpart, all of it at once, and where it stands."""


class Unsupported(Exception):
    """Of one node; collected, never seen by callers."""


def size_of(first: int, second: int) -> int | str:
    """A size in the exports for ROWS rows, for any number of them: 7, or "rows*7"."""
    if isinstance(first, torch.SymInt) or isinstance(second, torch.SymInt):
        raise Unsupported("a size that depends on numbers in a tensor")
    if first == second:
        return int(first)
    count = first // ROWS[0]
    if count * ROWS[0] != first or count * ROWS[1] != second:
        raise Unsupported(
            f"a size that is {first} for {ROWS[0]} rows and {second} for {ROWS[1]}; sizes may be multiples of the rows only"
        )
    return "rows" if count == 1 else f"rows*{count}"


def depends_on_rows(shape) -> bool:
    return any(isinstance(extent, str) for extent in shape)


@dataclasses.dataclass(eq=False)
class Value:
    """A tensor of the graph. Sharing one of them is how aliases see what is done in place."""

    name: str
    shape: list
    dtype: str


@dataclasses.dataclass(eq=False)
class Known:
    """A tensor that no input and no parameter has a part in, in both exports."""

    tensors: tuple[torch.Tensor, torch.Tensor]

    @property
    def shape(self) -> list:
        return [size_of(a, b) for a, b in zip(self.tensors[0].shape, self.tensors[1].shape)]

    @property
    def first(self) -> torch.Tensor:
        return self.tensors[0]

    def one_row(self) -> tuple[torch.Tensor, int | None]:
        """What does not depend on the rows, and the axis that it is repeated along; None: along none. Of
        an axis of rows*k, k are left."""
        axes = [axis for axis, extent in enumerate(self.shape) if isinstance(extent, str)]
        if not axes:
            if not torch.equal(self.tensors[0], self.tensors[1]):
                raise Unsupported("numbers that depend on how many rows there are")
            return self.first.cpu(), None
        if len(axes) > 1:
            raise Unsupported("numbers that are not the same for every row")
        each = self.first.shape[axes[0]] // ROWS[0]
        rows = [tensor.narrow(axes[0], 0, each) for tensor in self.tensors]
        for tensor, row, count in zip(self.tensors, rows, ROWS):
            same = torch.equal(tensor, torch.cat([row] * count, axes[0]))
            if not same or not torch.equal(row, rows[0]):
                raise Unsupported("numbers that are not the same for every row")
        return rows[0].cpu(), axes[0]


class Buffer:
    """A buffer of the module: running statistics, or numbers that are known."""

    def __init__(self, name: str, tensor: torch.Tensor):
        self.name, self.tensor, self.known = name, tensor, None


def known_of(item):
    """A buffer's numbers, apart from the module's own; anything else as it is."""
    if not isinstance(item, Buffer):
        return item
    item.known = item.known or Known((item.tensor.detach().clone(), item.tensor.detach().clone()))
    return item.known


@dataclasses.dataclass
class Node:
    op: str
    inputs: list  # names of values, numbers, None
    outputs: list  # names
    attrs: dict[str, Any]
    where: str
    shapes: list  # of the outputs


_OURS = (
    os.path.dirname(torch.__file__) + os.sep,
    os.path.dirname(os.path.abspath(__file__)) + os.sep,
)


def is_callers(path: str) -> bool:
    """Whether a file is neither PyTorch's nor this package's."""
    return not path.startswith(_OURS)


def where_of(node) -> str:
    """The innermost line of the caller's source that a node comes from: "net.py:12: x = self.conv(x)"."""
    trace = node.meta.get("stack_trace") or ""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    found = ""
    for at, line in enumerate(lines):
        if not line.startswith('File "') or not is_callers(line.split('"')[1]):
            continue
        path, number = line.split('"')[1], line.split(", line ")[1].split(",")[0]
        code = (
            lines[at + 1] if at + 1 < len(lines) and not lines[at + 1].startswith("File ") else ""
        )
        found = f"{path.rsplit('/', 1)[-1]}:{number}" + (f": {code[:120]}" if code else "")
    return found or _module_of(node)


def _module_of(node) -> str:
    """The module that a node is of, where no line of the caller's is: "module '2.norm' (LayerNorm)"."""
    for path, kind in reversed(list((node.meta.get("nn_module_stack") or {}).values())):
        name = path.removeprefix("model").removeprefix(".")
        kind = (kind if isinstance(kind, str) else kind.__name__).rsplit(".", 1)[-1]
        if name and not kind.startswith("_"):
            return f"module '{name}' ({kind})"
    return ""
