"""The common part of handlers of ops: their table, and the arguments of a node."""

from __future__ import annotations

import math

import torch

from ..values import known_of, size_of

HANDLERS: dict = {}
_VIEWS = {
    "view",
    "reshape",
    "permute",
    "transpose",
    "slice",
    "select",
    "unsqueeze",
    "squeeze",
    "expand",
    "alias",
    "flatten",
    "unflatten",
    "chunk",
    "split",
    "t",
    "detach",
}


def draws(target) -> bool:
    """Whether an op gives other numbers in every step."""
    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ())


def changes_statistics(name: str) -> bool:
    return name.startswith("aten::batch_norm")


def is_view(node) -> bool:
    name = node.target.name() if node.op == "call_function" and hasattr(node.target, "name") else ""
    return name.removeprefix("aten::").partition(".")[0] in _VIEWS


class Arguments:
    """The arguments of a node, by name, with defaults; sizes for any number of rows."""

    def __init__(self, reader, a, b):
        self.reader, self.nodes = reader, (a, b)
        given = []
        for node in (a, b):
            names = [argument.name for argument in node.target._schema.arguments]
            values = {
                argument.name: argument.default_value
                for argument in node.target._schema.arguments
                if argument.has_default_value()
            }
            values.update(zip(names, node.args))
            values.update(node.kwargs)
            given.append(values)
        self.by_name = {name: self._one(given[0][name], given[1][name]) for name in given[0]}

    def _one(self, a, b):
        if isinstance(a, torch.fx.Node):
            return self.reader.env[0][a][0]
        if isinstance(a, (list, tuple)):
            return [self._one(x, y) for x, y in zip(a, b)]
        if isinstance(a, bool) or not isinstance(a, int):
            return a
        return a if a == b else size_of(a, b)

    def __getattr__(self, name):
        return self.get(name) if name in self.by_name else self.by_name[name]

    def get(self, name, otherwise=None):
        """Numbers of a buffer are known, unless the net changes them as it runs."""
        item = self.by_name.get(name, otherwise)
        if name.startswith("running_"):
            return item
        return [known_of(one) for one in item] if isinstance(item, list) else known_of(item)

    @property
    def shape(self) -> list:
        """Of the result."""
        return self._shape(*(node.meta["val"] for node in self.nodes))

    @property
    def first_shape(self) -> list:
        """Of the first result, where there are several."""
        results = [node.meta["val"] for node in self.nodes]
        return self._shape(*(one[0] if isinstance(one, (tuple, list)) else one for one in results))

    @staticmethod
    def _shape(first, second) -> list:
        return [size_of(x, y) for x, y in zip(first.shape, second.shape)]


def op(*names):
    def register(handler):
        for name in names:
            HANDLERS["aten::" + name] = handler
        return handler

    return register


def axis_of(axis, shape) -> int:
    return axis % max(1, len(shape))


def pair_of(numbers) -> list:
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return numbers * 2 if len(numbers) == 1 else numbers


def reshaped(r, x, shape):
    x = r.value(x)
    return x if x.shape == list(shape) else r.emit("reshape", [x], shape, x.dtype)


def broadcast(*shapes) -> list:
    rank = max(len(shape) for shape in shapes)
    padded = [[1] * (rank - len(shape)) + list(shape) for shape in shapes]
    return [next((extent for extent in extents if extent != 1), 1) for extents in zip(*padded)]


def times(numbers, count) -> list:
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return numbers * count if len(numbers) == 1 else numbers


def product(shape) -> int | str:
    """Of sizes, one of which may be a multiple of the rows."""
    counts = [int(e.partition("*")[2] or 1) if isinstance(e, str) else e for e in shape]
    rows = any(isinstance(e, str) for e in shape)
    return math.prod(counts) if not rows else "rows" if math.prod(counts) == 1 else f"rows*{math.prod(counts)}"
