"""Batches as loaders give them, as flat tensors by name and back: tuples in tuples, dicts, dataclasses, and whatever is
a mapping (BatchEncoding of transformers).

    ((x, {"mask": m}), y)    of a module with forward(self, picture, more)    "picture", "more.mask", "target"

A batch of every step has the layout of the first.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
from collections import UserDict, abc
from typing import Any

import torch

from .._errors import UserError
from .values import DTYPES, CannotExport

_KINDS = inspect.Parameter


@dataclasses.dataclass
class _Leaf:
    """A tensor, by its place among the flat ones."""

    at: int


@dataclasses.dataclass
class _Inside:
    """A container of others: `like` is an empty one, or one whose members are to be set."""

    keys: list
    members: list
    like: Any


class Layout:
    """Which tensors a batch has, and how a module and its loss are called with them."""

    def __init__(self, model, loss, example):
        self._model, self._loss = model, loss
        self.names: list[str] = []
        positional, keywords, labels = _calls(model, loss, example)
        self._arguments = [self._lay(name, value) for name, value in positional]
        self._keywords = {name: self._lay(name, value) for name, value in keywords}
        inputs = len(self.names)
        self._labels = [self._lay(name, value) for name, value in labels]
        self.targets = self.names[inputs:]
        if not self.names:
            raise CannotExport("a batch has no tensor")
        for name, tensor in self.of(example).items():
            if tensor.dtype not in DTYPES:
                raise CannotExport(
                    f"'{name}' of a batch is {tensor.dtype}; float32, int64, int32, uint8 and bool can be fed"
                )

    def of(self, batch) -> dict[str, torch.Tensor]:
        """The tensors of a batch by their names. UserError where it is of another layout."""
        found: dict[str, Any] = {}
        for name, value in itertools.chain(*_calls(self._model, self._loss, batch)):
            _gather(name, value, found)
        if list(found) != self.names:
            missing = [name for name in self.names if name not in found]
            more = [name for name in found if name not in self.names]
            said = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has {', '.join(more)}"] * bool(more)
            raise UserError(
                f"a batch {' and '.join(said) or 'has its arrays in another order'}, and the first had "
                f"{', '.join(self.names)}; have all batches alike"
            )
        return {name: _tensor(name, value) for name, value in found.items()}

    def call(self, tensors) -> tuple[list, dict, list]:
        """Arguments, keywords and the loss's targets out of flat tensors; None stands for one that is absent."""
        return (
            [_built(item, tensors) for item in self._arguments],
            {name: _built(item, tensors) for name, item in self._keywords.items()},
            [_built(item, tensors) for item in self._labels],
        )

    def _lay(self, name, value):
        inside = _members(value)
        if inside is not None:
            keys, members, like = inside
            return _Inside(keys, [self._lay(f"{name}.{key}", one) for key, one in zip(keys, members)], like)
        if value is None:
            return None
        self.names.append(name)
        return _Leaf(len(self.names) - 1)


def fields_of(model, loss, example) -> tuple[dict, list]:
    """A batch by name, and the names that are the loss's own."""
    layout = Layout(model, loss, example)
    return layout.of(example), layout.targets


def _calls(model, loss, batch):
    """Arguments of a module by position and by name, and targets of its loss: pairs of a name and a value."""
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        batch = {field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)}
    parameters = inspect.signature(model.forward).parameters
    if isinstance(batch, abc.Mapping):
        items = [(str(name), value) for name, value in batch.items()]
        if loss is None:
            return [], items, []
        *inputs, target = items
        if all(name in parameters for name, _ in inputs):
            return [], inputs, [target]
        return inputs, [], [target]
    if loss is None:
        raise CannotExport(
            "a batch without names goes with a loss of its own; give loss=..., or batches that are dicts"
        )
    *inputs, target = batch if isinstance(batch, (tuple, list)) and not _is_numbers(batch) else [batch]
    target = [("target", target)]
    if len(inputs) == 1 and _members(inputs[0]) is not None:
        keys, members, _ = _members(inputs[0])
        required, most, names, open_ended = _taken(parameters)
        if isinstance(inputs[0], abc.Mapping):
            if all(key in names for key in keys) and not (len(required) == 1 and required[0] not in keys):
                return [], list(zip(keys, members)), target
        elif open_ended or (len(required) > 1 and len(required) <= len(members) <= most):
            inputs = members
    names = [name for name, p in parameters.items() if p.kind is not _KINDS.VAR_POSITIONAL][: len(inputs)]
    if len(names) < len(inputs):
        names = [f"input{i}" for i in range(len(inputs))]
    return list(zip(names, inputs)), [], target


def _taken(parameters):
    """Parameters without a default, how many there may be by position, all names, and whether any number is taken."""
    by_place = [p for p in parameters.values() if p.kind in (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)]
    required = [p.name for p in by_place if p.default is _KINDS.empty]
    open_ended = any(p.kind is _KINDS.VAR_POSITIONAL for p in parameters.values())
    return required, len(by_place), list(parameters), open_ended


def _members(value):
    """Keys and members of a container, and what it is made of again; None: it is none."""
    if isinstance(value, abc.Mapping):
        kind = type(value)
        again = kind if isinstance(value, UserDict) or kind.__module__ == "collections" else dict
        return [str(key) for key in value], list(value.values()), (again, list(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return names, [getattr(value, name) for name in names], _empty(value, names)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(value._fields), list(value), type(value)
    if isinstance(value, (tuple, list)) and not _is_numbers(value):
        return [str(i) for i in range(len(value))], list(value), type(value)
    return None


def _empty(value, names):
    like = copy.copy(value)
    for name in names:
        object.__setattr__(like, name, None)
    return like


def _is_numbers(value) -> bool:
    """A list of numbers, or of such lists: an array of Python's. Text is none, but no container either."""
    if not isinstance(value, list) or not value:
        return False
    first = value[0]
    return isinstance(first, (int, float, str)) or _is_numbers(first)


def _built(item, tensors):
    if item is None:
        return None
    if isinstance(item, _Leaf):
        return tensors[item.at]
    members = [_built(member, tensors) for member in item.members]
    like = item.like
    if isinstance(like, tuple):
        kind, keys = like
        return kind(dict(zip(keys, members)))
    if not isinstance(like, type):
        made = copy.copy(like)
        for key, member in zip(item.keys, members):
            object.__setattr__(made, key, member)
        return made
    return like(*members) if hasattr(like, "_fields") else like(members)


def _gather(name, value, found):
    inside = _members(value)
    if inside is not None:
        for key, one in zip(inside[0], inside[1]):
            _gather(f"{name}.{key}", one, found)
    elif value is not None:
        found[name] = value


def _tensor(name, value) -> torch.Tensor:
    """A leaf as a tensor with a row for each record."""
    made = value if isinstance(value, torch.Tensor) else _converted(value)
    if made is None:
        hint = "; leave such columns out (remove_columns of a data set)" if _is_text(value) else ""
        raise CannotExport(f"'{name}' of a batch is {_kind_of(value)}, not a tensor with a row for each record{hint}")
    if made.ndim == 0:
        raise CannotExport(f"'{name}' of a batch is one number, not a tensor with a row for each record")
    return made


def _converted(value):
    """Arrays of NumPy's, and lists of numbers, whose fractions are float32 as PyTorch has them; else None."""
    if hasattr(value, "__array__") and getattr(getattr(value, "dtype", None), "kind", "O") in "fiub":
        return torch.as_tensor(value)
    if not _is_numbers(value):
        return None
    try:
        return torch.tensor(value)
    except (TypeError, ValueError):
        return None


def _is_text(value) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and bool(value) and _is_text(value[0]))


def _kind_of(value) -> str:
    if _is_text(value):
        return "text"
    if isinstance(value, list):
        return "a list of lists of different lengths" if _is_numbers(value) else "a list"
    return f"a {type(value).__name__}"
