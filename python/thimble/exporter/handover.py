"""A module's tensors in the arena of a run, for the time of the run: one copy of them, not two.

    the module's storage ──given piece by piece, and freed──▶ arena        the run begins
    a view of the arena is what the module has meanwhile                   the run
    storage of the module's own ◀──copied, the arena's scratch is gone──   the run is over
"""

from __future__ import annotations

import ctypes

import torch

from .._arrays import F32
from .._process import FilePages, trim
from .files import read_safetensors

_TRIM = 64 << 20  # bytes that are freed before they are given back


class Handover:
    """Of the parameters and buffers that a graph is of, whose numbers are also in the file `stored`, along with its
    constants. Whatever is written to a run's tensors, the file has them as they were."""

    def __init__(self, model, names, stored: str):
        named = dict(model.named_parameters(remove_duplicate=False))  # an export names any of them
        named.update(model.named_buffers(remove_duplicate=False))
        self._tensors = {name: named[name] for name in names if name in named}
        self._stored = read_safetensors(stored)
        self._files = FilePages()
        self._kept: dict[str, torch.Tensor] = {}  # what stays the module's: storage that others have a part in
        self._gone: set[str] = set()
        self._freed = 0
        self._at: tuple[str, torch.Tensor | None] = ("", None)

    def give(self, name: str, first: int, size: int, to: int) -> None:
        """Bytes of a tensor for a run, which asks for each once and in order."""
        if self._at[0] != name:
            self._leave()
            own = self._tensors.get(name)
            source = self._stored[name] if own is None else own.detach()
            self._at = (name, source.cpu().contiguous())
        source = self._at[1]
        ctypes.memmove(to, source.data_ptr() + first, size)
        last = first + size == source.numel() * source.element_size()
        del source  # which is the module's storage, where it lies as it is asked for
        if last:
            self._leave()

    def _leave(self) -> None:
        """The tensor that was asked for last is in the arena."""
        name, self._at = self._at[0], ("", None)
        own = self._tensors.get(name)
        if own is None:
            return
        size = own.numel() * own.element_size()
        self._files.let_go_of(own)
        if _is_alone(own) and not self._files.has(own.data_ptr()):
            self._gone.add(name)
            self._freed += size
        else:
            self._kept[name] = own.data
        if own.device.type == "cpu" and own.dtype == self._stored[name].dtype:
            own.data = self._stored[name]  # as it is in the file, and in no memory until it is looked at
        if self._freed >= _TRIM:
            self._freed = 0
            trim()

    def settle(self, run) -> None:
        """The module's tensors are where the run has them, as far as the host can see them."""
        for name, dtype, view in run.places():
            own = self._tensors.get(name)
            if own is None or dtype != F32 or own.device.type != "cpu" or tuple(view.shape) != tuple(own.shape):
                continue
            own.data = torch.from_numpy(view)
        trim()

    def take_back(self, run, trained) -> None:
        """Storage of the module's own. `trained`: names that have the run's numbers, and all others those that they
        had; without a run, all have. Where this is repeated, nothing is left to do."""
        self._leave()
        lying = {} if run is None else {name: view for name, dtype, view in run.places() if dtype == F32}
        for name in [*self._gone, *self._kept]:
            own = self._tensors[name]
            kept = self._kept.get(name)
            if run is not None and name in trained:
                numbers = torch.from_numpy(lying[name] if name in lying else run.weight(name))
            else:
                numbers = self._stored[name] if kept is None else None
            if kept is None:
                kept = torch.empty(own.shape, dtype=own.dtype)
            if numbers is not None:
                kept.copy_(numbers)
                self._files.let_go_of(numbers)
            own.data = kept
        self._gone.clear()
        self._kept.clear()
        self._tensors = {}
        self._stored = {}
        trim()


_BESIDE = 64 << 20  # of a process, next to the arena: what a plan and the work on it take, at most


def handed_over(model, names, arena: int) -> dict[str, int]:
    """The effect on the process of a run with so large an arena."""
    named, mapped = dict(model.named_parameters()), FilePages()
    own = [named[name] for name in names if name in named]
    sizes = [p.numel() * p.element_size() for p in own if _is_alone(p) and not mapped.has(p.data_ptr())]
    return {"arena_bytes": arena, "handed_over_bytes": sum(sizes), "beside_bytes_at_most": _BESIDE}


def _is_alone(tensor) -> bool:
    """Whether nobody else has a part in its storage, which ends with it."""
    count = getattr(torch._C, "_storage_Use_Count", None)
    if count is None or tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        return False
    storage = tensor.untyped_storage()
    return count(storage._cdata) == 2 and storage.nbytes() == tensor.numel() * tensor.element_size()


