"""Modules, losses and ways to train of the kinds that people write. Each is trained like PyTorch trains it, or refused with its
line; `../border.py` holds them to that.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from typing import Callable

import torch

ROWS = 6
PARTS = (2, 4)  # rows of a micro-batch: one that divides the batch, and one that does not
CASES: list[Case] = []


def sgd(model, rate=0.1):
    """The update is linear in the gradient, so that a factor that is wrong shows."""
    return torch.optim.SGD(model.parameters(), rate, momentum=0.9)


def adamw(model):
    return torch.optim.AdamW(model.parameters(), 1e-2, weight_decay=0.1)


@dataclasses.dataclass(frozen=True)
class Case:
    """make() gives a module, its loss and the batches of a step each; or a module and a function that trains it,
    by the `train` that it is called with."""

    what: str
    make: Callable
    refused: str = ""  # a part of the sentence: nothing is trained
    apart: str = ""  # likewise: micro-batches are not
    approximate: bool = False  # micro-batches are another training, and the plan says so
    optimizer: Callable = sgd
    line: bool = True  # the sentence has a line of make()

    @property
    def kind(self) -> str:
        return self.make.__module__.rpartition(".")[2]

    @property
    def name(self) -> str:
        return self.make.__name__.replace("_", " ").strip()

    def has_line(self, sentence: str) -> bool:
        """Whether a line of the case is named."""
        lines, first = inspect.getsourcelines(self.make)
        file = os.path.basename(inspect.getsourcefile(self.make))
        return any(f"{file}:{at}" in sentence for at in range(first + len(lines), first - 1, -1))


def case(what: str, **expected):
    """Of the function behind it."""

    def add(make):
        CASES.append(Case(what, make, **expected))
        return make

    return add


def batches(make: Callable, count: int = 5) -> list:
    """Of numbers of their own each."""
    return [make() for _ in range(count)]


def labels(classes: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, classes, shape or (ROWS,))


def some_ignored(targets: torch.Tensor, ignored: int = -100) -> torch.Tensor:
    """Other counts in every row, and in one none at all."""
    targets = targets.clone()
    flat = targets.view(len(targets), -1)
    for row in range(len(flat)):
        flat[row, : row * flat.shape[1] // (len(flat) - 1)] = ignored
    return targets[torch.randperm(len(targets))]


def of_vectors(features: int = 8, classes: int = 5) -> list:
    return batches(lambda: (torch.randn(ROWS, features), labels(classes)))


def of_images(classes: int = 5, channels: int = 3, size: int = 8) -> list:
    return batches(lambda: (torch.randn(ROWS, channels, size, size), labels(classes)))


def of_series(width: int = 8, length: int = 6, classes: int = 5) -> list:
    return batches(lambda: (torch.randn(ROWS, length, width), labels(classes)))


def of_tokens(vocabulary: int = 11, length: int = 6) -> list:
    return batches(lambda: (labels(vocabulary, ROWS, length), labels(vocabulary, ROWS, length)))


from . import functions, graphs, habits, losses, overlaps, pairs, patterns, sequences, vision  # noqa: E402, F401
