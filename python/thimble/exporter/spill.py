"""Tensors of a backward pass in a file, so that PyTorch's own pass takes the memory of one op, not of all."""

from __future__ import annotations

import contextlib
import tempfile
from collections import abc

import torch

_SMALL = 1 << 14  # bytes of a tensor that may stay


class Spill:
    """A file of tensors."""

    def __init__(self):
        self._file = tempfile.TemporaryFile(prefix="thimble-")

    def __del__(self):
        self._file.close()

    def put(self, tensor):
        at = self._file.seek(0, 2)
        kept = tensor.detach().cpu().contiguous()
        self._file.write(memoryview(kept.reshape(-1).view(torch.uint8).numpy()))
        return _Place(at, tensor.dtype, tuple(tensor.shape), tensor.device)

    def get(self, place):
        made = torch.empty(place.shape, dtype=place.dtype)
        self._file.seek(place.at)
        self._file.readinto(memoryview(made.reshape(-1).view(torch.uint8).numpy()))
        return made.to(place.device)

    @contextlib.contextmanager
    def saving(self, kept):
        """Tensors that autograd saves meanwhile lie in the file, but for those of the storages that `kept` have."""
        storages = {tensor.untyped_storage().data_ptr() for tensor in kept}

        def pack(tensor):
            size = tensor.numel() * tensor.element_size()
            plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
            if size < _SMALL or not plain or tensor.is_complex():
                return tensor
            return tensor if tensor.untyped_storage().data_ptr() in storages else self.put(tensor)

        with torch.autograd.graph.saved_tensors_hooks(pack, self._unpack):
            yield

    def _unpack(self, packed):
        return self.get(packed) if isinstance(packed, _Place) else packed

    @contextlib.contextmanager
    def gradients(self, parameters):
        """Of the parameters, as they come: a mapping by name."""
        found = Gradients(self, parameters)
        hooks = [
            parameter.register_post_accumulate_grad_hook(found.taking(name))
            for name, parameter in parameters.items()
            if parameter.requires_grad
        ]
        try:
            yield found
        finally:
            for hook in hooks:
                hook.remove()


class _Place:
    def __init__(self, at, dtype, shape, device):
        self.at, self.dtype, self.shape, self.device = at, dtype, shape, device


class Gradients(abc.Mapping):
    """By the names of parameters, one in memory at a time; None: there is none."""

    def __init__(self, spill, names):
        self._spill = spill
        self._places = dict.fromkeys(names)

    def taking(self, name):
        def take(parameter):
            gradient, parameter.grad = parameter.grad, None
            gradient = gradient.to_dense() if gradient.is_sparse else gradient
            before = self[name]  # of a backward pass inside this one, as checkpoints with use_reentrant=True make
            self._places[name] = self._spill.put(gradient if before is None else gradient + before)

        return take

    def __getitem__(self, name):
        place = self._places[name]
        return None if place is None else self._spill.get(place)

    def __iter__(self):
        return iter(self._places)

    def __len__(self):
        return len(self._places)
