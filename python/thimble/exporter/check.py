"""Compares an exported net with PyTorch on a few rows of a batch, before anything is trained: the loss, every
gradient and the running statistics, and their sums over micro-batches (gradient accumulation).
"""

from __future__ import annotations

import contextlib
import copy
import math
import os
import warnings

import torch

from .._process import FilePages, trim
from . import eager
from .capture import WithLoss, where_the_module_is
from .draws import still
from .files import differing, read_safetensors
from .handover import Handover
from .packing import check_documents
from .passes import Attributes, check_passes
from .spill import Spill
from .untouched import untouched
from .values import CannotExport
from .write import write_graph

ROWS = 4
# Of the largest number of a tensor, and of the largest gradient of all: rounding in another order, and sums of
# which nothing is left but that (the gradient of a bias in front of a norm).
CLOSE, REST = 1e-4, 1e-7
# A net's own instability makes more of rounding: then PyTorch in fp32 is as far from PyTorch in fp64, and one such
# distance is a draw of luck, which another may be several times.
LUCK = 16
_PIECE = 1 << 18  # numbers that are compared at once


class Check:
    """Of a captured graph, whose weights are in a file already. `room`: bytes that it should do with; None: any
    number."""

    def __init__(self, model, loss, layout, batch, graph, weights, threads=None, room=None):
        self.room = None if room is None else room * 3 // 4  # the rest is for tensors that are compared
        self.model, self.loss, self.graph, self.weights = model, loss, graph, weights
        self.wrapped = WithLoss(model, loss, layout)
        self.threads = threads
        named = dict(model.named_parameters())
        self.parameters = {name: named[name] for name in graph.parameters}
        self.trained = [name for name, p in graph.parameters.items() if p["trained"]]
        self.whole = batch
        self.rows: _Rows | None = None

    def run(self) -> None:
        """CannotExport unless a step of the rows together is what PyTorch computes."""
        _no_hooks_behind_sums(self.parameters)
        with untouched(self.model, self.loss):
            if self.loss is None:
                check_documents(self.model, self.whole)
            attributes = Attributes(self.model)
            count = min(ROWS, len(next(iter(self.whole.values()))))
            while self.room is not None and count > 2 and _working(self.graph, count) > self.room:
                count -= 1  # not to one, of which batch norm has no variance
            self.rows = _Rows(self, torch.arange(count))
            self.rows.see_no_memory(attributes)
            self._refuse(False)

    def let_go(self) -> None:
        """Memory of a pass goes back: weights that are seen through files, and tensors that it freed."""
        if self.room is None:
            return
        mapped = FilePages()
        for parameter in self.parameters.values():
            mapped.let_go_of(parameter)
        trim()

    def run_apart(self) -> None:
        """The same of a step of single rows, added up. REQUIRES: run()."""
        with untouched(self.model, self.loss):
            self._refuse(True)

    def _refuse(self, apart):
        """A true fault shows with other rows, too. Where a number happens to lie on a kink (of relu, say), one program
        sees this side of it and one the other."""
        faults = self.rows.faults(apart)
        if not faults:
            return
        taken = self.rows.taken
        others = taken[:-1] if len(taken) > 2 else torch.cat([taken, taken[-1:]])
        again = {fault[:2] for fault in _Rows(self, others).faults(apart)}
        faults = [fault for fault in faults if fault[:2] in again]
        if faults:
            raise CannotExport(self._sentence(faults, apart))

    def _sentence(self, faults, apart) -> str:
        how = " in microbatches of one row" if apart else ""
        order = self._order()
        what, name, distance, size = max(faults, key=lambda fault: (fault[0] == "loss", order.get(fault[1], -1)))
        line = self._line_of(name) if what != "loss" else self._line_of(self.graph.loss)
        called = {"loss": "the loss", "gradient": f"the gradient of '{name}'"}.get(
            what, f"the running statistic '{name}'"
        )
        others = len(faults) - 1
        return (
            f"what was exported is not what PyTorch computes: {called}{line}{how} is {distance:.1e} from PyTorch's, "
            f"which is {size:.1e} at most"
            + (f", and so {'are' if others > 1 else 'is'} {others} other{'s' * (others > 1)}" if others else "")
            + f"; likely since {self._cause(what, apart)} (check=False trains all the same)"
        )

    def _cause(self, what, apart) -> str:
        made = self.rows.eager
        if apart:
            return (
                "the loss mixes rows, or divides by what every microbatch counts for itself: leave microbatches out "
                f"(microbatch={len(next(iter(self.whole.values())))})"
            )
        if made.functions and what == "gradient":
            return (
                f"{', '.join(made.functions)} has a backward of its own, which an export does not see: write "
                "its forward with functions whose gradients are those"
            )
        if made.hooks and what == "gradient":
            return (
                f"{', '.join(dict.fromkeys(made.hooks))} changes gradients, which an export does not see: "
                "take it away"
            )
        if what == "gradient":
            return "its gradient is changed on the way (a hook, .data, or a backward of its own): take that away"
        return (
            "the forward pass depends on something that an export fixes (a number that Python reads or counts, "
            "the time, a file), or on random numbers: make it part of the batch, or a buffer"
        )

    def _order(self) -> dict:
        """By name: the last node that reads a parameter, so that what is wrong is likely right behind."""
        order = {}
        for at, node in enumerate(self.graph.nodes):
            for item in node.inputs:
                if isinstance(item, str):
                    order[item] = at
        return order

    def _line_of(self, name) -> str:
        for node in self.graph.nodes:
            if (name in node.inputs or name in node.outputs) and node.where:
                return f" ({node.where})"
        return ""


class _Rows:
    """Some rows of the batch, in PyTorch and here."""

    def __init__(self, check, taken):
        self.check, self.taken = check, taken
        whole = torch.equal(taken, torch.arange(len(next(iter(check.whole.values())))))
        self.batch = {name: tensor if whole else tensor[taken] for name, tensor in check.whole.items()}
        self.eager = self._eager()
        self.exact = None  # the same in fp64, once it was wanted
        if not math.isfinite(self.eager.loss):  # not one label that counts in the first rows, say
            self.batch = check.whole
            self.eager = self._eager()
        broken = [name for name, g in self.eager.gradients.items() if g is not None and not g.isfinite().all()]
        if broken or not math.isfinite(self.eager.loss):
            what = f"the gradient of '{broken[0]}'" if broken else "the loss"
            raise CannotExport(
                f"{what} is not finite in PyTorch itself, in the first batch (whose loss is {self.eager.loss:.3g}); see "
                "that its numbers are finite, and that it has labels that count"
            )

    def see_no_memory(self, attributes):
        check_passes(self.check.wrapped, self._read(self.batch)[0], self.eager.loss, attributes)
        self.check.let_go()

    def faults(self, apart) -> list:
        """(what, name, how far ours is from PyTorch's, the largest number of PyTorch's)"""
        count = len(next(iter(self.batch.values())))
        sizes = [_size(gradient) for gradient in self.eager.gradients.values()]
        faults = []
        with contextlib.closing(_Ours(self.check, self.batch, count if apart else 1)) as step:
            for what, name, ours in step.numbers():
                if what == "statistics" and apart:
                    continue  # every microbatch moves them
                theirs = _of(self.eager, what, name)
                distance, size = _apart(ours, theirs), _size(theirs)
                most = CLOSE * size + REST * (max(sizes, default=0.0) if what == "gradient" else 1.0)
                if distance > most and not self._is_rounding(what, name, ours, theirs, most):
                    faults.append((what, name, distance, size))
        return faults

    def _is_rounding(self, what, name, ours, theirs, most) -> bool:
        """Whether ours is about as far from what fp64 gives as PyTorch's is."""
        if self.exact is None:
            self.exact = self._in_double()
        exact = _of(self.exact, what, name)
        if exact is None or theirs is None or not exact.isfinite().all():
            return False
        return _apart(ours, exact) <= max(most, LUCK * _apart(theirs, exact))

    def _eager(self) -> eager.Pass:
        check = self.check
        try:
            spill = None if check.room is None else Spill()
            made = eager.run(check.wrapped, *self._read(self.batch), spill)
            check.let_go()
        except CannotExport:
            _Ours(check, self.batch, 1).close()  # labels that are out of range are said better here
            raise
        self._see_parameters_as_written()
        return made

    def _read(self, batch):
        check = self.check
        buffers = {name: check.model.get_buffer(name) for name in check.graph.buffers}
        return where_the_module_is(check.model, batch), check.parameters, buffers

    def _see_parameters_as_written(self):
        """A forward pass that changes weights by itself is none that could be exported."""
        changed = differing(self.check.weights, self.check.parameters)
        if changed:
            written = read_safetensors(self.check.weights)
            for name in changed:
                self.check.parameters[name].data.copy_(written[name])
            raise CannotExport(
                f"the forward pass changes the parameter '{changed[0]}' itself; do that between steps, or compute "
                "with a changed copy of it"
            )

    def _in_double(self) -> eager.Pass:
        check = self.check
        batch = {n: tensor.double() if tensor.is_floating_point() else tensor for n, tensor in self.batch.items()}
        with eager.in_double(check.wrapped), untouched(check.model, check.loss):
            try:
                return eager.run(check.wrapped, *self._read(batch))
            except CannotExport:  # something is fp32 whatever else is: nothing is known then
                return eager.Pass(math.nan, dict.fromkeys(check.parameters), dict.fromkeys(check.graph.buffers), [], [])


class _Ours:
    """A step of the exported net, its draws held still, whose only trace is its gradients: the momentum that a first step of
    SGD at a rate of 0 leaves."""

    def __init__(self, check, batch, microbatches):
        self.check, self.batch = check, batch
        rows = len(next(iter(batch.values())))
        self.file = check.weights.removesuffix(".safetensors") + ".check.json"
        graph = copy.copy(check.graph)
        graph.nodes = still(graph.nodes)
        graph.parameters = {name: {**p, "group": 0} for name, p in graph.parameters.items()}
        try:
            write_graph(graph, self.file, os.path.basename(check.weights), batch=rows)
            self._step(rows, microbatches)
        finally:
            if os.path.exists(self.file):
                os.remove(self.file)

    def _step(self, rows, microbatches):
        from .._plan import Plan
        from .._run import Run

        settings = {
            "optimizer": "sgd",
            "momentum": 0.9,
            "lr": 0,
            "weight-decay": 0,
            "schedule": "constant",
            "steps": 1,
            "batch": rows,
            "microbatch": rows // microbatches if microbatches > 1 else None,
            "threads": self.check.threads,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # notes on settings are of no use to whoever did not choose them
            plan = self._planned(Plan, settings)
        room, self.handover = self.check.room, None
        if room is not None and plan.bytes > room:
            self.handover = Handover(self.check.model, self.check.parameters, self.check.weights)
        try:
            self._trained(Run, plan)
        except BaseException:
            self.close()
            raise

    def _planned(self, plan, settings):
        """In the room there is, where that can be: recomputed values have the same bits."""
        from .._errors import DoesNotFit

        made = plan(self.file, {**settings, "planner": "keep_all"}, with_data=False)
        if self.check.room is None or made.bytes <= self.check.room:
            return made
        for memory, planner in ((self.check.room or "least", "sqrt_segments"), ("least", None)):
            within = {"memory": memory, "planner": planner, "allow": "equivalent" if settings["microbatch"] else "exact"}
            try:
                return plan(self.file, {**settings, **within}, with_data=False)
            except DoesNotFit:
                continue
        return made

    def close(self):
        run, self.run = getattr(self, "run", None), None
        if run is not None:
            run.close()
        if self.handover is not None:
            self.handover.take_back(None, ())  # a step at a rate of 0 leaves weights alone
            self.handover = None
        if self.check.room is not None:
            trim()

    def _trained(self, make, plan):
        from .._errors import UserError

        self.run = make(plan, give=None if self.handover is None else self.handover.give)
        batch = {name: tensor.detach().cpu() for name, tensor in self.batch.items()}
        try:
            self.loss = self.run.step(batch).loss
        except UserError as error:
            if "is not finite" not in str(error):
                raise
            raise CannotExport(
                f"what was exported is not what PyTorch computes, whose loss is finite: {error}"
            ) from error

    def numbers(self):
        """("loss" | "gradient" | "statistics", name, numbers), one after another."""
        yield "loss", "", torch.tensor(self.loss, dtype=torch.float64)
        left = set(self.check.trained)
        for name, gradient in self.run.state("momentum"):
            if name in left:
                left.remove(name)
                yield "gradient", name, torch.from_numpy(gradient)
        for name in sorted(left):
            yield "gradient", name, None
        for name in self.check.graph.buffers:
            yield "statistics", name, torch.from_numpy(self.run.weight(name))


def _no_hooks_behind_sums(parameters):
    for name, parameter in parameters.items():
        if getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise CannotExport(
                f"'{name}' has a hook that is called when its gradient is there (register_post_accumulate_grad_hook), "
                "and no gradient ever is in a run; take it away (clip-norm is a setting of the run)"
            )


def _of(made, what, name):
    if what == "loss":
        return torch.tensor(made.loss, dtype=torch.float64)
    return (made.gradients if what == "gradient" else made.buffers)[name]


def _working(graph, rows) -> int:
    """About the bytes that PyTorch has in use at once, where what it keeps for later is in a file: a few tensors as
    large as the largest, and the scores of an attention."""

    def elements(shape):
        extents = [extent if isinstance(extent, int) else _of_rows(extent, rows) for extent in shape]
        return math.prod(extents)

    largest = 0
    for node in graph.nodes:
        for shape in node.shapes:
            scores = 1
            if node.op == "attention" and len(shape) == 4 and isinstance(shape[2], int):
                scores = max(1, shape[2] // shape[3])
            largest = max(largest, elements(shape) * scores)
    return 5 * 4 * largest


def _of_rows(extent, rows) -> int:
    times = extent.partition("*")[2]
    return rows * int(times or 1)


def _size(tensor) -> float:
    return 0.0 if tensor is None or tensor.numel() == 0 else max(-tensor.min().item(), tensor.max().item())


def _apart(ours, theirs) -> float:
    """The largest difference; what is not there is zero."""
    if ours is None or theirs is None:
        return max(_size(ours), _size(theirs))
    if ours.numel() == 0:
        return 0.0
    pieces = zip(ours.reshape(-1).split(_PIECE), theirs.detach().cpu().reshape(-1).split(_PIECE))
    differences = [(one.double() - other.double()).abs().max().item() for one, other in pieces]
    return math.inf if any(map(math.isnan, differences)) else max(differences)
