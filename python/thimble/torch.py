"""Trains a `torch.nn.Module` inside a memory budget that you choose.

    import thimble.torch

    plan = thimble.torch.plan(model, loss, batch, optimizer=optimizer, memory="2GiB")
    run = thimble.torch.train(model, loss, loader, optimizer=optimizer, memory="2GiB")

The module is exported (`torch.export`), planned and trained by Thimble, and gets its parameters and
buffers back under their own names. `loss(output, target)` is part of what is exported; None: the module
gives its loss itself, as those of transformers do when a batch has labels. See docs/import.md.
"""

from __future__ import annotations

import itertools
import json
import os
import struct
import tempfile
import warnings
from collections import abc
from typing import Any, Callable, Iterable, Iterator

import torch

from .exporter import CannotExport, capture, write
from .exporter.capture import fields_of

__all__ = ["CannotExport", "export", "load", "plan", "settings_of", "train"]


def export(
    model: torch.nn.Module,
    loss: Callable | None,
    example: Any,
    path: str | os.PathLike[str],
    optimizer: torch.optim.Optimizer | None = None,
) -> list[str]:
    """Writes NAME.json and NAME.safetensors, for `thimble plan NAME.json` and the like.

    The graph is that of the module's mode, so call model.train() before; evaluation is built from it.
    Returns the names of buffers that count forward passes, which Thimble leaves to its callers.

    Raises CannotExport with all that has no counterpart here, each with the line it comes from.
    """
    graph = capture(model, loss, example)
    groups = _put_into_groups(graph, model, optimizer) if optimizer is not None else []
    batch, _ = fields_of(model, loss, example)
    rows = int(next(iter(batch.values())).shape[0])
    write(graph, os.fspath(path), name=type(model).__name__, batch=rows, groups=groups)
    return graph.counters


def _put_into_groups(graph, model, optimizer) -> list[dict]:
    """What the optimizer does otherwise with some parameters: rates times the first group's, decays."""
    names = {}
    for name, parameter in model.named_parameters():
        names[id(parameter)] = name
    base = optimizer.param_groups[0]["lr"]
    if base <= 0:
        raise CannotExport(
            f"the first group of parameters has a rate of {base}; rates of the others are relative to it"
        )
    groups = []
    listed = set()
    for at, group in enumerate(optimizer.param_groups):
        groups.append({"rate": group["lr"] / base, "decay": group.get("weight_decay", 0.0)})
        for parameter in group["params"]:
            name = names.get(id(parameter))
            listed.add(name)
            if name in graph.parameters:
                graph.parameters[name]["group"] = at
    for name, parameter in graph.parameters.items():
        parameter["trained"] = parameter["trained"] and name in listed
    plain = len(groups) == 1
    return [] if plain else groups


_SAME = ("betas", "eps", "momentum", "nesterov", "amsgrad", "maximize", "dampening", "centered")


def settings_of(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """An optimizer of PyTorch's as settings of a recipe: {"optimizer": "adamw", "lr": ...}."""
    kind = type(optimizer).__name__
    group = optimizer.param_groups[0]
    for other in optimizer.param_groups[1:]:
        differ = [key for key in _SAME if other.get(key) != group.get(key)]
        if differ:
            raise CannotExport(
                f"groups of parameters differ in {', '.join(differ)}; rates and decays may"
            )
    for key in ("amsgrad", "maximize", "dampening", "differentiable", "centered"):
        if group.get(key):
            raise CannotExport(f"{kind} with {key}={group[key]} is not there; leave it out")
    settings: dict[str, Any] = {
        "lr": group["lr"],
        "weight-decay": group.get("weight_decay", 0.0),
        "schedule": "constant",
    }
    if kind == "SGD":
        settings.update(
            optimizer="nesterov" if group["nesterov"] else "sgd", momentum=group["momentum"]
        )
    elif kind in ("Adam", "AdamW"):
        decoupled = kind == "AdamW" or group.get("decoupled_weight_decay")
        settings.update(
            optimizer="adamw" if decoupled else "adam",
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            epsilon=group["eps"],
        )
    else:
        raise CannotExport(
            f'there is no {kind} here; choose SGD, Adam or AdamW, or settings of Thimble\'s own (optimizer="lion")'
        )
    return settings


def plan(
    model: torch.nn.Module,
    loss: Callable | None,
    example: Any,
    *,
    optimizer: torch.optim.Optimizer | str | None = None,
    memory: str | int | None = None,
    path: str | os.PathLike[str] | None = None,
    **recipe: Any,
):
    """Every byte of a training step of the module on batches like `example`; nothing runs."""
    with tempfile.TemporaryDirectory() as folder:
        return _planned(
            model,
            loss,
            example,
            optimizer,
            memory,
            path or os.path.join(folder, "net.json"),
            recipe,
        )[0]


def _planned(model, loss, example, optimizer, memory, path, recipe, goes_on=None):
    """The plan, and the names of buffers that count; `goes_on`: the folder of the run that it is for."""
    import thimble

    of_torch = isinstance(optimizer, torch.optim.Optimizer)
    counters = export(model, loss, example, path, optimizer if of_torch else None)
    settings = settings_of(optimizer) if of_torch else {"optimizer": optimizer}
    if settings.get("lr") == 0:
        raise CannotExport("the optimizer's rate is 0")
    if of_torch and optimizer.state:
        warnings.warn("thimble: what the optimizer gathered before is left behind: it begins anew", stacklevel=3)
    settings = {"memory": memory, **settings, **recipe}
    return thimble.Plan(path, settings, with_data=False, goes_on=goes_on), counters


def train(
    model: torch.nn.Module,
    loss: Callable | None,
    loader: Iterable,
    *,
    optimizer: torch.optim.Optimizer | str | None = None,
    memory: str | int | None = None,
    scheduler: Callable[[int], float] | list[float] | Any | None = None,
    test: Iterable | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool | str = False,
    overwrite: bool = False,
    progress: Callable | None = None,
    **recipe: Any,
):
    """Trains the module on the loader's batches and gives it what came of it; the run.

    scheduler   what the optimizer's rate is multiplied by at a step: a function of it, or a list; or one
                of torch.optim.lr_scheduler, moved on after every step
    test        batches to test on: the module's loss and accuracy in evaluation mode
    out         a folder of checkpoints; the network file is there too
    resume      True: from the latest in `out`; "auto": likewise, if there is one
    overwrite   True: start again where `out` has a checkpoint
    progress    called after every step; where it returns True, the run stops
    recipe      any setting of Thimble's: epochs=3, steps=1000, device="cuda", precision="bf16"

    Whatever ends the run early comes out as it is; the module has then what came of the steps before.
    """
    import thimble

    begun = iter(loader)
    example = next(begun, None)
    if example is None:
        raise thimble.UserError("the batches ended early: the loader has none")
    if "epochs" not in recipe and "steps" not in recipe:
        recipe["epochs"] = 1
    with tempfile.TemporaryDirectory() as folder:
        if out is not None:
            os.makedirs(out, exist_ok=True)
        path = os.path.join(folder if out is None else out, "net.json")
        planned, counters = _planned(
            model,
            loss,
            example,
            optimizer,
            memory,
            path,
            recipe,
            goes_on=out if resume else None,
        )
        names = list(fields_of(model, loss, example)[0])
        first = itertools.chain([example], begun)  # what was looked at is trained on, too
        run = thimble.Run(
            planned,
            _named(first, names) if begun is loader else _Epochs(loader, names, first),
            test=None if test is None else _Epochs(test, names),
            out=out,
            resume=resume,
            overwrite=overwrite,
            rate=_rate_of(scheduler, optimizer),
        )
        before = run.steps
        try:
            run.train(progress)
        finally:
            load(model, run, counters, run.steps - before)
        return run


def _rate_of(scheduler, optimizer) -> Callable[[int, float], float] | None:
    """A schedule as a run asks for it: (step, the recipe's rate) -> the rate of the step."""
    if scheduler is None:
        return None
    if hasattr(scheduler, "get_last_lr"):
        if getattr(scheduler, "optimizer", None) is not optimizer:
            raise CannotExport("the scheduler is of another optimizer than the one that is given")
        share = [group["lr"] / optimizer.param_groups[0]["lr"] for group in optimizer.param_groups]

        def scheduled(step: int, _: float) -> float:
            with warnings.catch_warnings():  # PyTorch's optimizer makes no steps of its own here
                warnings.simplefilter("ignore")
                while scheduler.last_epoch < step:
                    scheduler.step()
            rates = scheduler.get_last_lr()
            if any(abs(r - s * rates[0]) > 1e-6 * abs(r) for r, s in zip(rates, share)):
                raise CannotExport(
                    "the scheduler changes the rates of groups of parameters by different factors; "
                    "one factor for all can be"
                )
            return rates[0]

        return scheduled
    if callable(scheduler):
        return lambda step, rate: rate * scheduler(step)
    factors = list(scheduler)
    if not factors:
        raise CannotExport("the schedule is an empty list")
    return lambda step, rate: rate * factors[min(step, len(factors) - 1)]


def _named(batches: Iterable, names: list[str]) -> Iterator[dict]:
    for batch in batches:
        if isinstance(batch, abc.Mapping):
            yield dict(batch)
        else:
            yield dict(zip(names, batch if isinstance(batch, (tuple, list)) else [batch]))


class _Epochs:
    """Batches by the names of the net's inputs; as many as the loader has, and as often. `first`: those
    of the first epoch, where it has begun."""

    def __init__(self, loader: Iterable, names: list[str], first: Iterable | None = None):
        self.loader, self.names, self._first = loader, names, first
        for part in ("sampler", "dataset", "batch_size"):  # of a DataLoader
            if hasattr(loader, part):
                setattr(self, part, getattr(loader, part))

    def __iter__(self):
        first, self._first = self._first, None
        return _named(self.loader if first is None else first, self.names)

    def __len__(self):
        return len(self.loader)


def load(model: torch.nn.Module, run, counters: Iterable[str] = (), steps: int = 0) -> None:
    """Gives the module the run's parameters and buffers; `counters` go on by `steps`."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.safetensors")
        run.export(path)
        load_file(model, path)
    for name in counters:
        model.get_buffer(name).add_(steps)


def load_file(model: torch.nn.Module, path: str | os.PathLike[str]) -> None:
    """Gives the module what a file of `thimble export` holds."""
    tensors, state = read_safetensors(path), model.state_dict()
    missing = [name for name in tensors if name not in state]
    if missing:
        raise CannotExport(
            f"'{path}' has {', '.join(missing[:5])}, which the module has not: it is of another one"
        )
    state.update(tensors)  # a state_dict of the module's own, which says of which version it is
    model.load_state_dict(state)


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, torch.Tensor]:
    kinds = {
        "F32": torch.float32,
        "F16": torch.float16,
        "BF16": torch.bfloat16,
        "I32": torch.int32,
        "U8": torch.uint8,
        "I64": torch.int64,
    }
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if begin == end:
            tensors[name] = torch.empty(entry["shape"], dtype=kinds[entry["dtype"]])
        else:
            tensors[name] = torch.frombuffer(
                data,
                dtype=kinds[entry["dtype"]],
                offset=begin,
                count=(end - begin) // kinds[entry["dtype"]].itemsize,
            ).reshape(entry["shape"])
    return tensors
