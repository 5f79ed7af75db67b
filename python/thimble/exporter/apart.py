"""Work in a process of its own, which takes what it leaves behind with it: modules that an export loads, its graphs."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import warnings
from typing import Any, Callable

import torch

from .values import CannotExport

# Tokenizers of Hugging Face write to the error output when they see a fork, but where this is set.
_QUIET = "TOKENIZERS_PARALLELISM"


def apart(make: Callable[[], Any]) -> Any:
    """The result of `make`, which pickle has to take. It is made here where it cannot be made there.
    REQUIRES: it leaves nothing behind that anybody waits for."""
    if not hasattr(os, "fork") or (torch.cuda.is_available() and torch.cuda.is_initialized()):
        return make()
    try:
        kind, made = _made_there(make)
    except (OSError, EOFError, pickle.UnpicklingError):  # no process to be had, or it came to an end
        return make()
    if kind == "refused":
        raise CannotExport(made)
    return made


def _made_there(make):
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with _quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on threads: this process has one there, and PyTorch one for its work
        child = os.fork()
    if child == 0:
        os.close(reading)
        _work(make, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            return pickle.load(pipe)
    except BaseException:  # Ctrl-C, too
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        raise
    finally:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def _work(make, writing):
    """In the other process, which ends here."""
    code = 1
    try:
        torch.set_num_threads(1)  # the others did not come along
        try:
            said = ("made", make())
        except CannotExport as error:
            said = ("refused", str(error))
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(said, pipe, protocol=pickle.HIGHEST_PROTOCOL)
        sys.stdout.flush()
        sys.stderr.flush()
        code = 0
    finally:
        os._exit(code)


@contextlib.contextmanager
def _quiet():
    said = os.environ.get(_QUIET)
    os.environ.setdefault(_QUIET, "false")
    try:
        yield
    finally:
        if said is None:
            del os.environ[_QUIET]
