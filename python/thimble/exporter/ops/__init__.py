"""Ops of PyTorch as ops of a network file. Each handler gets the reader and the node's arguments by
name, and gives a value, or a list of them. Many become few: docs/import.md lists them.
"""

from . import elements, images, layers, losses, shapes, sums, volumes  # noqa: F401: they fill the table
from .shapes import with_part
from .registry import DRAWS, HANDLERS, Arguments, changes_statistics, is_view

__all__ = ["DRAWS", "HANDLERS", "Arguments", "changes_statistics", "is_view", "with_part"]
