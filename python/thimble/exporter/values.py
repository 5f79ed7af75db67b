"""Values of a graph while it is read: sizes in rows, tensors that are known, tensors that are not."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import os
from typing import Any

import torch

_ROWS = contextvars.ContextVar("rows", default=(2, 3))
# Tensors that are known have all rows of an export.
_MOST_ROWS = 32


def exported_rows() -> tuple[int, int]:
    """The graph is exported for so many rows, twice; what differs between the two is a multiple of them."""
    return _ROWS.get()


@contextlib.contextmanager
def exporting(rows: int):
    """A module on batches of so many rows, which are the second number: so what is otherwise from some number of rows
    on is seen."""
    token = _ROWS.set((2, max(3, min(rows, _MOST_ROWS))))
    try:
        yield
    finally:
        _ROWS.reset(token)

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
    """A size in the two exports, for any number of rows: 7, or "rows*7"."""
    if isinstance(first, torch.SymInt) or isinstance(second, torch.SymInt):
        raise Unsupported("a size that depends on numbers in a tensor")
    if first == second:
        return int(first)
    rows = exported_rows()
    count = first // rows[0]
    if count * rows[0] != first or count * rows[1] != second:
        raise Unsupported(
            f"a size that is {first} for {rows[0]} rows and {second} for {rows[1]}; sizes may be multiples of the rows only"
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
class Complex:
    """A tensor of complex numbers, as two of one shape. `im` is None while it is real."""

    re: Any
    im: Any

    @property
    def shape(self) -> list:
        return self.re.shape


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
        """The part of the tensor that does not depend on the rows, and the axis that it is repeated along, or None. An
        axis of rows*k becomes one of k."""
        axes = [axis for axis, extent in enumerate(self.shape) if isinstance(extent, str)]
        if not axes:
            if not torch.equal(self.tensors[0], self.tensors[1]):
                raise Unsupported("numbers that depend on how many rows there are")
            return self.first.cpu(), None
        if len(axes) > 1:
            raise Unsupported("numbers that are not the same for every row")
        counts = exported_rows()
        each = self.first.shape[axes[0]] // counts[0]
        rows = [tensor.narrow(axes[0], 0, each) for tensor in self.tensors]
        for tensor, row, count in zip(self.tensors, rows, counts):
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


def check_same(pairs, graphs) -> None:
    """CannotExport where two exports are of other nodes, or of nodes that read others."""
    places = [{node: at for at, node in enumerate(graph.nodes)} for graph in graphs]

    def read_by(node, of):
        return [of[given] for given in node.all_input_nodes]

    for a, b in pairs:
        other = a.op != b.op or (a.target != b.target and a.op == "call_function")
        if other or read_by(a, places[0]) != read_by(b, places[1]):
            break
    else:
        if len(places[0]) == len(places[1]):
            return
    lines = " or ".join(dict.fromkeys(line for line in map(where_of, (a, b)) if line))
    raise CannotExport(
        "the graph of the module depends on how many rows there are" + (f" ({lines})" if lines else "") + "; write it "
        "without that"
    )
