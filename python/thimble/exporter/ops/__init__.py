"""Ops of PyTorch as ops of a network file. Each handler gets the reader and the node's arguments by
name, and gives a value, or a list of them. Many become few: docs/import.md lists them.
"""

# They fill the table.
from . import elements, images, layers, lookups, losses, shapes, sums, volumes  # noqa: F401
from .elements import finite
from .shapes import with_part
from .registry import DRAWS, HANDLERS, Arguments, changes_statistics, is_view

__all__ = ["DRAWS", "HANDLERS", "Arguments", "changes_statistics", "finite", "is_view", "with_part"]
