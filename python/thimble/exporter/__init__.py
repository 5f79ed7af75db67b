"""From a `torch.nn.Module` and a loss to a network file: NAME.json beside NAME.safetensors."""

from .capture import CannotExport, capture
from .write import write_graph

__all__ = ["CannotExport", "capture", "write_graph"]
