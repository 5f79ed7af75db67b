"""A look at a module that leaves no trace on it."""

from __future__ import annotations

import contextlib
import random
import sys

import torch
from torch import nn

_TABLES = ("_parameters", "_buffers", "_modules")


@contextlib.contextmanager
def untouched(*roots):
    """Whatever is done to the modules inside, they are afterwards as they were: modes, attributes, buffers,
    gradients, and what of them is trained; so are the random numbers to come. The values of parameters are not
    looked at."""
    parts = {id(m): m for root in roots if isinstance(root, nn.Module) for m in root.modules()}
    attributes = [(part, dict(part.__dict__)) for part in parts.values()]
    inside = [
        (value, value.copy())
        for _, kept in attributes
        for name, value in kept.items()
        if name in _TABLES or type(value) in (dict, list, set)
    ]
    parameters = {id(p): p for part in parts.values() for p in part.parameters(recurse=False)}
    gradients = [(p, p.grad, p.requires_grad) for p in parameters.values()]
    buffers = {id(b): b for part in parts.values() for b in part.buffers(recurse=False)}
    values = [(buffer, buffer.detach().clone()) for buffer in buffers.values()]
    draws = _draws()
    try:
        yield
    finally:
        for part, kept in attributes:
            for name in part.__dict__.keys() - kept.keys():
                del part.__dict__[name]
            part.__dict__.update(kept)
        for container, kept in inside:
            _put_back(container, kept)
        for parameter, gradient, trained in gradients:
            if parameter.requires_grad != trained:
                parameter.requires_grad_(trained)
            if parameter.grad is not gradient:
                parameter.grad = gradient
        with torch.no_grad():
            for buffer, value in values:
                if not torch.equal(buffer, value):
                    buffer.copy_(value)
        _draw_again(draws)


def _put_back(container, kept):
    if isinstance(container, list):
        container[:] = kept
    else:
        container.clear()
        container.update(kept)


def _draws():
    """The state of every generator that a module may draw from."""
    numpy = sys.modules.get("numpy")
    on_cards = torch.cuda.is_available() and torch.cuda.is_initialized()
    return (
        torch.get_rng_state(),
        torch.cuda.get_rng_state_all() if on_cards else [],
        random.getstate(),
        numpy.random.get_state() if numpy is not None else None,
    )


def _draw_again(draws):
    of_host, of_cards, of_python, of_numpy = draws
    torch.set_rng_state(of_host)
    if of_cards:
        torch.cuda.set_rng_state_all(of_cards)
    random.setstate(of_python)
    if of_numpy is not None:
        sys.modules["numpy"].random.set_state(of_numpy)
