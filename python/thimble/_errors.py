"""Exceptions, with the sentences of the command line."""

from __future__ import annotations

from ._library import (BUG, CALLBACK, DEVICE, MEMORY, MISTAKE, NO_FIT, OK, STOPPED, c)


class Error(Exception):
    """Of every failure that Thimble itself reports."""


class UserError(Error, ValueError):
    """A mistake in the call, or a file that cannot be used. Says what to choose instead."""


class DoesNotFit(Error):
    """No plan fits the budget. `needed` is how many bytes would do."""

    def __init__(self, sentence: str, needed: int) -> None:
        super().__init__(sentence)
        self.needed = needed


class DeviceError(Error, RuntimeError):
    """A device that is missing, too small for what is asked, or was lost."""


class OutOfMemory(Error, MemoryError):
    """The host has not enough memory."""


class Stopped(Error):
    """The run was asked to stop. A checkpoint was saved, if it has a folder."""


class Bug(Error, RuntimeError):
    """A bug of Thimble's: please report it."""


_KINDS = {BUG: Bug, MISTAKE: UserError, DEVICE: DeviceError, MEMORY: OutOfMemory, STOPPED: Stopped,
          CALLBACK: Error}


def check(code: int) -> None:
    """Raises what a code that is not OK stands for."""
    if code == OK:
        return
    sentence = c.last_error().decode(errors="replace")
    if code == NO_FIT:
        raise DoesNotFit(sentence, c.last_needed())
    raise _KINDS.get(code, Error)(sentence)
