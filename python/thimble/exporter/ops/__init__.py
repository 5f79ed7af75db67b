"""Ops of PyTorch as ops of a network file. Each handler gets the reader and the node's arguments by
name, and gives a value, or a list of them. Many become few: docs/import.md lists them.
"""

# They fill the table.
from . import elements, images, layers, lookups, losses, noise  # noqa: F401
from . import places, shapes, steps, sums, volumes  # noqa: F401
from . import frequencies  # noqa: F401, behind all whose parts it takes
from .elements import finite
from .shapes import with_part
from .registry import HANDLERS, Arguments, changes_statistics, draws, is_view

__all__ = ["HANDLERS", "Arguments", "changes_statistics", "draws", "finite", "is_view", "with_part"]
