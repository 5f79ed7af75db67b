"""Packages that only fine-tuning needs. They are loaded when they are used, so that everything else goes without."""

from __future__ import annotations

import importlib
from typing import Any

from .._errors import UserError

INSTALL = "pip install thimble[finetune]"


def needed(module: str) -> Any:
    """The module; UserError where it is not installed, with the command that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise UserError(f"fine-tuning needs the Python package {package}; install it with `{INSTALL}`") from error
