"""Trains a `torch.nn.Module` inside a memory budget that you choose.

    import thimble.torch

    plan = thimble.torch.plan(model, loss, batch, optimizer=optimizer, memory="2GiB")
    run = thimble.torch.train(model, loss, loader, optimizer=optimizer, memory="2GiB")

The module is exported (`torch.export`), planned and trained by Thimble, and gets its parameters and
buffers back under their own names. `loss(output, target)` is part of what is exported; None: the module
gives its loss itself, as those of transformers do when a batch has labels. See docs/import.md.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import re
import tempfile
from collections import abc
from typing import Any, Callable, Iterable, Iterator

import torch

from ._data import batches_of
from ._errors import UserError
from ._process import Process, trim
from ._run import Run as _Run
from .exporter import CannotExport, capture
from .exporter.batches import Layout, fields_of
from .exporter.capture import capture_apart
from .exporter.check import Check
from .exporter.files import differing, read_safetensors, write_safetensors
from .exporter.inference import write_onnx
from .exporter.handover import Handover, handed_over
from .exporter.optimizers import (
    State,
    check_not_elsewhere,
    leave_elsewhere,
    put_into_groups,
    settings_of,
    state_of,
)
from .exporter.schedules import Schedule, schedule_of
from .exporter.write import weights_of, write_graph

__all__ = ["CannotExport", "Run", "export", "load", "plan", "settings_of", "train"]

_SOME = 2  # rows of a batch that a run keeps, to write its module as ONNX


def export(
    model: torch.nn.Module,
    loss: Callable | None,
    example: Any,
    path: str | os.PathLike[str],
    optimizer: torch.optim.Optimizer | None = None,
    *,
    check: bool = True,
) -> list[str]:
    """Writes NAME.json and NAME.safetensors, for `thimble plan NAME.json` and the like.

    The graph is that of the module's mode, so call model.train() before; evaluation is built from it.
    Returns the names of buffers that count forward passes, which Thimble leaves to its callers.

    check   the loss and every gradient of a few rows are computed by PyTorch, too, and have to be the same

    Raises CannotExport with all that has no counterpart here, each with the line it comes from.
    """
    schedule = Schedule(optimizer)
    return _export(model, loss, example, os.fspath(path), optimizer, schedule, check)[0].counters


def _export(model, loss, example, path, optimizer, schedule, check, threads=None, memory=None, now=None):
    """The graph, and whoever held it against PyTorch; None: nobody did.

    memory  the budget, where there is one
    now     a file for the weights as they are, where the one beside `path` is of a run that goes on: what it froze is
            in there
    """
    graph = (capture if memory is None else capture_apart)(model, loss, example)
    groups = []
    if optimizer is not None:
        groups = put_into_groups(graph, model, optimizer, schedule.shares)
    layout = Layout(model, loss, example)
    batch = layout.of(example)
    rows = int(next(iter(batch.values())).shape[0])
    weights = now or weights_of(path)
    write_safetensors(weights, {**graph.tensors, **graph.constants})
    frozen = {name: graph.tensors[name] for name, of in graph.parameters.items() if not of["trained"]}
    changed = [] if now is None else differing(weights_of(path), {**frozen, **graph.constants})
    if changed and frozen:
        raise UserError(
            f"'{changed[0]}' differs from '{weights_of(path)}', with whose frozen weights the run goes on; "
            "give the module these, or another out"
        )
    if changed:
        write_safetensors(weights_of(path), {**graph.tensors, **graph.constants})
    del frozen
    graph.tensors, graph.constants = {}, {name: _Shape(t) for name, t in graph.constants.items()}
    checking = None
    if check:
        checking = Check(model, loss, layout, batch, graph, weights, threads, _bytes(memory))
        checking.run()
    write_graph(
        graph,
        path,
        os.path.basename(weights_of(path)),
        name=type(model).__name__,
        batch=rows,
        groups=groups,
        checked=f"against torch {torch.__version__}" if check else "no (check=False)",
    )
    return graph, checking


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
    """Every byte of a training step of the module on batches like `example`; nothing runs, and nothing is held
    against PyTorch. `process` of the plan says what a run adds to the process that has the module: the arena's bytes,
    those that the module hands over meanwhile, and those beside it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.fspath(path or os.path.join(folder, "net.json"))
        schedule = Schedule(optimizer)
        planned, graph = _planned(model, loss, example, optimizer, schedule, memory, path, False, recipe)
        planned.process = handed_over(model, graph.parameters, planned.bytes)
        return planned


def _planned(
    model, loss, example, optimizer, schedule, memory, path, check, recipe, goes_on=None, now=None
):
    """The plan, and the graph that it is of; `goes_on`: the folder of the run that it is for, `now` as of _export."""
    import thimble

    of_torch = isinstance(optimizer, torch.optim.Optimizer)
    settings = {"optimizer": optimizer}
    if of_torch:
        settings = {**settings_of(optimizer), "lr": schedule.rate}
        if schedule.rate == 0:
            raise CannotExport("the optimizer's rate is 0; give one above that")
    graph, checking = _export(
        model,
        loss,
        example,
        path,
        optimizer if of_torch else None,
        schedule,
        check,
        recipe.get("threads"),
        memory,
        now,
    )
    if memory is not None:
        trim()
    settings = {"memory": memory, **settings, **recipe}
    planned = thimble.Plan(path, settings, with_data=False, goes_on=goes_on)
    if checking is not None and planned.tier != "approximate":
        if planned.summary["microbatch"] < planned.batch:
            checking.run_apart()
    return planned, graph


class _Shape:
    """The rest of a tensor that is in a file."""

    def __init__(self, tensor):
        self.dtype, self.shape = tensor.dtype, tensor.shape


_SIZE = re.compile(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(?:([kKMGT])(i?)B|([KMGT])|B|bytes)?\s*")


def _bytes(memory) -> int | None:
    """Of a budget; 0: the least that would do. None: nobody says a number, or it is none, which a plan says."""
    if memory == "least":
        return 0
    said = _SIZE.fullmatch(str(memory))
    if said is None:
        return None
    number, prefix, binary, letter = said.groups()
    return int(float(number) * (1024 if binary or letter else 1000) ** " KMGT".index((prefix or letter or " ").upper()))


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
    check: bool = True,
    fresh: bool | None = None,
    **recipe: Any,
):
    """Trains the module on the loader's batches and gives it what came of it; the run.

    scheduler   what the optimizer's rate is multiplied by at a step: a function of it, or a list; or one
                of torch.optim.lr_scheduler, moved on by the steps of the run
    test        batches to test on: the module's loss and accuracy in evaluation mode
    out         a folder of checkpoints; the network file is there too
    resume      True: from the latest in `out`; "auto": likewise, if there is one
    overwrite   True: start again where `out` has a checkpoint
    progress    called after every step; where it returns True, the run stops
    check       the loss and every gradient of a few rows are held against PyTorch's before anything is trained
    fresh       True: what the optimizer gathered before (momentum, moments) is left behind; False: what it gathers in
                this run goes into it, as it does anyway where it has some
    recipe      any setting of Thimble's: epochs=3, steps=1000, device="cuda", precision="bf16"

    Whatever ends the run early comes out as it is; the module has then what came of the steps before.
    """
    import thimble

    process = Process()
    loader = batches_of(loader, recipe.get("batch"))
    test = batches_of(test, recipe.get("batch"))
    begun = iter(loader)
    example = next(begun, None)
    if example is None:
        raise thimble.UserError("the batches ended early: the loader has none")
    if "epochs" not in recipe and "steps" not in recipe:
        recipe["epochs"] = 1
    layout = Layout(model, loss, example)
    of_torch = isinstance(optimizer, torch.optim.Optimizer)
    if of_torch and fresh is None and not resume:
        check_not_elsewhere(optimizer)
    schedule = schedule_of(scheduler, optimizer, _steps_of(recipe, loader))
    with tempfile.TemporaryDirectory() as folder:
        if out is not None:
            os.makedirs(out, exist_ok=True)
        path = os.path.join(folder if out is None else out, "net.json")
        held = out is not None and bool(glob.glob(os.path.join(glob.escape(os.fspath(out)), "step-*", "state.json")))
        if held and not resume and not overwrite:  # before the files there are written anew
            raise UserError(
                f"'{os.fspath(out)}' already holds a checkpoint; give resume=True to continue it, overwrite=True to start "
                "again, or another out"
            )
        now = os.path.join(folder, "now.safetensors") if resume and held and os.path.exists(weights_of(path)) else None
        planned, graph = _planned(
            model,
            loss,
            example,
            optimizer,
            schedule,
            memory,
            path,
            check,
            recipe,
            goes_on=out if resume else None,
            now=now,
        )
        state = state_of(optimizer, model, graph) if of_torch and not fresh else State()
        gathers = of_torch and not state.tensors  # what is not there yet
        counters = graph.counters
        handover = Handover(model, [*graph.parameters, *graph.buffers], now or weights_of(path))
        changes = {name for name, parameter in graph.parameters.items() if parameter["trained"]} | graph.buffers.keys()
        del graph
        first = itertools.chain([example], begun)  # what was looked at is trained on, too
        with contextlib.ExitStack() as early:  # a run that is not made, or is not begun
            early.callback(handover.take_back, None, ())
            run = Run(
                planned,
                _named(first, layout) if begun is loader else _Epochs(loader, layout, first),
                test=None if test is None else _tests(test, layout, planned.fields),
                out=out,
                resume=resume,
                overwrite=overwrite,
                rate=None if scheduler is None else schedule.rate_at,
                optimizer_steps=state.steps,
                give=handover.give,
            )
            before = run.steps
            if before > 0:
                state.tensors, state.counts = {}, []  # the checkpoint has them
            state.put_into(run)
            run.layout, run.model = layout, model
            run.example = {name: tensor[:_SOME].clone() for name, tensor in layout.of(example).items()}
            handover.settle(run)
            early.pop_all()
        try:
            run.train(progress)
        finally:
            done = run.steps - before
            process.look()
            try:
                run.rest()
            finally:
                handover.take_back(run if run.steps > 0 else None, changes)
            if run.steps > 0:
                for name in counters:
                    model.get_buffer(name).add_(done)
                state.take_from(run, done)
                if gathers and fresh is False:
                    state.give_to(optimizer, run, run.steps)
                elif gathers:
                    leave_elsewhere(optimizer, done)
                schedule.finish(done)
            run.result["checked"] = check
            run.result.update(process.figures())
        return run


class Run(_Run):
    """A run of a module, which takes batches as the loader of its training gave them."""

    layout: Layout
    model: torch.nn.Module
    example: dict[str, torch.Tensor]

    def evaluate(self, test: Iterable | None = None):
        """The module's loss and accuracy in evaluation, on whole batches of any loader; without one, on the run's own
        records to test on."""
        return super().evaluate(None if test is None else _named(batches_of(test, self.plan.batch), self.layout))

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """The trained module as an ONNX file for inference, by PyTorch's exporter. CannotExport where that cannot, or
        where onnxruntime, if it is installed, gives other numbers than the module."""
        labels = [name for name in self.example if name == "labels" or name.startswith("labels.")]
        inputs = {n: tensor for n, tensor in self.example.items() if n not in (*self.layout.targets, *labels)}
        write_onnx(self.model, self.layout, inputs, os.fspath(path))


def _steps_of(recipe, loader) -> int:
    """Of the run; 0: nobody knows."""
    if "steps" in recipe:
        return int(recipe["steps"])
    with contextlib.suppress(TypeError, ValueError):
        return int(len(loader) * float(recipe["epochs"]))
    return 0


def _tests(test, layout, fields) -> Iterable:
    """The batches to test on, of which the first is looked at before anything is trained."""
    import thimble
    from ._data import arrays_of, rows_of

    begun = iter(test)
    example = next(begun, None)
    if example is None:
        raise thimble.UserError("there is no batch to test on; leave `test` out, or give some")
    try:
        rows_of(arrays_of(layout.of(example), fields), fields)
    except thimble.UserError as error:
        raise thimble.UserError(f"of the batches to test on, {error}") from error
    first = itertools.chain([example], begun)
    return _named(first, layout) if begun is test else _Epochs(test, layout, first)


def _named(batches: Iterable, layout: Layout) -> Iterator[dict]:
    for batch in batches:
        yield layout.of(batch)


class _Epochs:
    """Batches by the names of the net's inputs; as many as the loader has, and as often. `first`: those
    of the first epoch, where it has begun."""

    def __init__(self, loader: Iterable, layout: Layout, first: Iterable | None = None):
        self.loader, self.layout, self._first = loader, layout, first
        for part in ("sampler", "dataset", "batch_size"):  # of a DataLoader
            if hasattr(loader, part):
                setattr(self, part, getattr(loader, part))

    def __iter__(self):
        first, self._first = self._first, None
        return _named(self.loader if first is None else first, self.layout)

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
