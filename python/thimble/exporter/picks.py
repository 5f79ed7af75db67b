"""The last place of each row that a mask names, as classifiers of transformers write it (the end of a sentence):

    states[mask, :].view(rows, -1, width)[:, -1, :]

A trace knows neither how many places there are nor that each row has as many, which they look at before."""

from __future__ import annotations

import contextlib
from unittest import mock

import torch


@contextlib.contextmanager
def last_of_rows():
    """While it is open, states of places by a mask of the same rows can be viewed so, and nothing else."""
    taken, alike = torch.Tensor.__getitem__, torch.unique_consecutive

    def take(self, index):
        one = index[0] if isinstance(index, tuple) and len(index) == 2 and index[1] == slice(None) else index
        mask = isinstance(one, torch.Tensor) and one.dtype == torch.bool and one.ndim == 2
        if mask and isinstance(self, torch.Tensor) and self.ndim == 3 and one.shape == self.shape[:2]:
            return _Places(self, one)
        return taken(self, index)

    def counts(x, *args, **more):
        if not isinstance(x, torch.Tensor) or x.ndim != 1 or x.is_floating_point() or args or more:
            return alike(x, *args, **more)
        return _Alike()  # of each row: PyTorch itself raises an error where they are not

    with mock.patch.object(torch.Tensor, "__getitem__", take), mock.patch.object(torch, "unique_consecutive", counts):
        yield


class _Alike:
    """Counts of which transformers asks whether there is one alone. Anything else that is asked fails the export."""

    def __len__(self):
        return 1

    def numel(self):
        return 1


class _Places:
    """States of the places that a mask names, of all rows."""

    def __init__(self, states, mask):
        self._states, self._mask = states, mask
        self.shape = (states.shape[0], states.shape[2])  # at least one of each row

    def view(self, rows, count, width):
        if rows != self._states.shape[0] or count != -1 or width != self._states.shape[2]:
            raise NotImplementedError("places by a mask, viewed otherwise than as [rows, -1, width]")
        return self

    def __getitem__(self, index):
        if index not in ((slice(None), -1), (slice(None), -1, slice(None))):
            raise NotImplementedError("of the places that a mask names, the last of each row can be taken")
        states, mask = self._states, self._mask
        front = torch.arange(1, mask.shape[1] + 1, device=mask.device)
        last = (mask.to(torch.long) * front).argmax(1)
        return states.gather(1, last[:, None, None].expand(-1, 1, states.shape[2]))[:, 0]
