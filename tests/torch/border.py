"""Modules and losses of the kinds that people write (border/), each trained beside PyTorch: with everything kept, at
half the memory, and in micro-batches. Either every tensor's update is PyTorch's, or the case is refused with its line.

usage: THIMBLE_LIBRARY=build/release/lib/libthimble.so.0 border.py [--markdown FILE] [--unchecked] [--jobs 2] [NAME ...]
"""

import argparse
import concurrent.futures
import contextlib
import copy
import dataclasses
import math
import multiprocessing
import os
import re
import sys
import time
import traceback
import warnings
from unittest import mock

import make_nets  # first: it finds the package
import torch

import border
import thimble
from border import CASES, PARTS
from thimble.exporter import eager
from thimble.exporter.batches import Layout
from thimble.exporter.capture import WithLoss
from thimble.exporter.draws import still
from train import SMALL

# Of the largest number of a tensor's own update: rounding in another order over five steps.
CLOSE = 1e-4
# Of the largest update of all: what is left where a gradient cancels out.
REST = 1e-7
# Of a loss.
CLOSE_LOSS = 1e-5
# Where PyTorch in fp32 is further than that from PyTorch in fp64, so may another program be: one such distance is a
# draw of luck, which another may be several times.
LUCK = 8


class Silent(Exception):
    """Something else was trained, without a word."""


@dataclasses.dataclass
class Trained:
    """The outcome of a case."""

    before: dict
    after: dict
    losses: list
    bytes: list = dataclasses.field(default_factory=list)  # of the arenas
    tiers: list = dataclasses.field(default_factory=list)


# ---- One case, by PyTorch and by Thimble ---------------------------------------------------------


def scene(case, double=False):
    """The module, and a function that trains it with the `train` that it is given."""
    torch.manual_seed(3)
    model, loss, *rest = case.make()
    if double:
        model.double()
        if isinstance(loss, torch.nn.Module):
            loss.double()
    if not rest:
        return model, loss
    return model, lambda train: train(model, loss, rest[0], case.optimizer(model))


def values(model):
    return copy.deepcopy({n: t for n, t in model.state_dict().items() if isinstance(t, torch.Tensor)})


def by_pytorch(case, double=False) -> Trained:
    """Draws are held still, as they are on the other side."""
    losses = []

    def train(model, loss, batches, optimizer, scheduler=None, clip_norm=None, **_):
        for batch in batches:
            layout = Layout(model, loss, batch)
            given = layout.of(batch)
            if double:
                given = {n: t.double() if t.is_floating_point() else t for n, t in given.items()}
            optimizer.zero_grad()
            with eager.as_exported():
                value, _ = WithLoss(model, loss, layout)(*given.values())
                value.sum().backward()
            if clip_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            losses.append(value.item())

    usual = torch.get_default_dtype()
    try:
        model, steps = scene(case, double)
        before = values(model)
        torch.set_default_dtype(torch.float64 if double else usual)
        steps(train)
    finally:
        torch.set_default_dtype(usual)
    return Trained(before, values(model), losses)


def by_thimble(case, memory=None, **settings) -> Trained:
    """`memory`: budgets of the calls of train(), one after another."""
    model, steps = scene(case)
    made = Trained(values(model), {}, [])
    memory = iter(memory or [])

    def train(model, loss, batches, optimizer, **more):
        more = {**SMALL, **settings, **more}
        means = []

        def call(budget):
            return thimble.torch.train(
                model,
                loss,
                batches,
                optimizer=optimizer,
                memory=budget,
                progress=lambda progress: means.append(progress.train.loss) and None,
                **more,
            )

        was = state_of(model, optimizer)
        try:
            budget = next(memory, None)
            try:
                run = call(budget)
            except thimble.DoesNotFit as error:
                run = call(error.needed)
        except (thimble.torch.CannotExport, thimble.UserError) as error:
            if not alike(was, state_of(model, optimizer)):
                raise Silent(f"refused ({error}), and the module or its optimizer is not as it was") from error
            raise
        if not alike(was[1:4], state_of(model, optimizer)[1:4]):
            raise Silent("modes or gradients of the module, or what of it is trained, are not as they were")
        made.losses += [n * mean - (n - 1) * last for n, mean, last in zip(range(1, 99), means, [0.0, *means])]
        made.bytes.append(run.plan.bytes)
        made.tiers.append(run.plan.tier)

    with draws_held_still():
        steps(train)
    made.after = values(model)
    return made


@contextlib.contextmanager
def draws_held_still():
    """In the network files of runs; Thimble's draws are others than PyTorch's."""
    write = thimble.torch.write_graph

    def write_still(graph, *args, **more):
        graph = copy.copy(graph)
        graph.nodes = still(graph.nodes)
        return write(graph, *args, **more)

    with mock.patch.object(thimble.torch, "write_graph", write_still):
        yield


def state_of(model, optimizer):
    """All that a refusal has to leave alone."""
    return copy.deepcopy(
        (
            values(model),
            [part.training for part in model.modules()],
            [p.requires_grad for p in model.parameters()],
            [p.grad for p in model.parameters()],
            optimizer.state_dict(),
            torch.get_rng_state(),
        )
    )


def alike(one, other) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other


# ---- Held against each other ---------------------------------------------------------------------


class Judge:
    """Of a case: PyTorch's updates, and those of fp64 once they are needed."""

    def __init__(self, case):
        self.case, self.theirs = case, by_pytorch(case)
        if not all(map(math.isfinite, self.theirs.losses)):
            raise Silent("PyTorch itself has no finite loss")
        self._exact = None

    @property
    def largest(self) -> float:
        """Of all updates."""
        before, after = self.theirs.before, self.theirs.after
        sizes = [(after[n].double() - t.double()).abs().max().item() for n, t in before.items() if t.numel()]
        return max(sizes, default=0.0)

    @property
    def exact(self):
        if self._exact is None:
            self._exact = by_pytorch(self.case, double=True)
        return self._exact

    def distance(self, ours) -> float:
        """The largest of a tensor's update, in shares of it. Silent where one is another."""
        for step, (one, other) in enumerate(zip(ours.losses, self.theirs.losses), 1):
            if not abs(one - other) <= CLOSE_LOSS * max(1.0, abs(other)):
                raise Silent(f"the loss of step {step} is {one:.7g}, and PyTorch's is {other:.7g}")
        if len(ours.losses) != len(self.theirs.losses):
            raise Silent(f"{len(ours.losses)} steps, and PyTorch makes {len(self.theirs.losses)}")
        return max(self._of(name, ours) for name in self.theirs.after)

    def _of(self, name, ours) -> float:
        if not torch.equal(ours.before[name], self.theirs.before[name]):
            raise Silent(f"'{name}' does not begin the same: the case is no function of its seed")
        begin, mine, theirs = (s[name].double() for s in (ours.before, ours.after, self.theirs.after))
        if mine.numel() == 0:
            return 0.0
        apart, size = (mine - theirs).abs().max().item(), (theirs - begin).abs().max().item()
        if apart == 0:
            return 0.0
        share = apart / size if size > 0 else math.inf
        if share <= CLOSE:
            return share
        if apart <= REST * self.largest:
            return 0.0
        exact = self.exact.after[name].double()
        if (mine - exact).abs().max() <= LUCK * (theirs - exact).abs().max():
            return 0.0  # of rounding, which PyTorch has as well
        raise Silent(f"the update of '{name}' is {share:.1e} of it from PyTorch's, which is {size:.1e} at most")


def outcome(case, judge, expected, **settings):
    """The table's words on one way to train; Silent where it is not as the case says."""
    try:
        ours = by_thimble(case, **settings)
    except (thimble.torch.CannotExport, thimble.UserError) as error:
        sentence = " ".join(str(error).split())
        if not expected:
            raise Silent(f"refused: {sentence}") from error
        if expected not in sentence:
            raise Silent(f"refused, but not for '{expected}': {sentence}") from error
        if case.line and not case.has_line(sentence):
            raise Silent(f"refused without its line: {sentence}") from error
        return f"refused: {sentence}", None
    if expected:
        apart = judge.distance(ours) if judge else math.nan
        raise Silent(f"trained ({apart:.0e} from PyTorch), and was to be refused for '{expected}'")
    if case.approximate and "microbatch" in settings:
        if set(ours.tiers) != {"approximate"}:
            raise Silent(f"the plan is {ours.tiers}, and was to be approximate")
        return "approximate, as the plan says", ours
    if "approximate" in ours.tiers:
        raise Silent("the plan is approximate")
    return f"{judge.distance(ours):.0e}", ours


def hold(case, check) -> tuple[dict, list]:
    """By way: what came of it; and what is wrong."""
    said, wrong = {}, []

    def try_one(way, expected, **settings):
        try:
            said[way], made = outcome(case, judge, expected, check=check, **settings)
            return made
        except Exception as error:  # whatever it is, the others are tried
            said[way] = "FAILED"
            wrong.append(f"{way}: {error}" if isinstance(error, Silent) else f"{way}: {_told(error)}")
            return None

    judge = None
    if not case.refused:
        try:
            judge = Judge(case)
        except Exception as error:  # whatever it is, the other cases are tried
            return {}, [f"PyTorch: {_told(error)}"]
    kept = try_one("kept", case.refused)
    if case.refused:
        return said, wrong
    if kept is not None:
        try_one("half", "", memory=[size // 2 for size in kept.bytes])
    for rows in PARTS:
        try_one(f"{rows} rows", case.apart, microbatch=rows)
    return said, wrong


def _told(error) -> str:
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} ({at.filename.rsplit('/', 1)[-1]}:{at.lineno}): {error}"


# ---- All of them ---------------------------------------------------------------------------------

HEAD = """# At the border to PyTorch

{count} modules, losses and ways to train that people write (`tests/torch/border`), each with {rows} rows a batch and five steps of SGD with momentum,
where a case says nothing else: with everything kept, at half of that memory (or the least that will do), and in micro-batches of {parts} rows. A number is the
largest difference from PyTorch's own training of any tensor's *update*, in shares of that update ({close:.0e} at most; what is further is judged by
its distance from PyTorch in fp64, {luck} times PyTorch's own at most). Draws are held still on both sides. A refusal is a sentence with a line
of the case (but for one, about a label), and leaves the module and its optimizer as they were. Batch norms in micro-batches are another training, which
the plan calls `approximate`: there the plan is looked at, and no number.

`{command}` prints it.

| case | stands for | kept | half | in micro-batches |
|---|---|---|---|---|
"""


def run_one(index, check):
    """A case, in a process of its own."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    begun = time.monotonic()
    said, wrong = hold(CASES[index], check)
    return said, wrong, time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--markdown", help="the table, too, into this file")
    parser.add_argument("--unchecked", action="store_true", help="check=False: the rules of graphs alone")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("names", nargs="*", help="of cases, or of files in border/")
    args = parser.parse_args()
    known = {name for c in CASES for name in (c.name, c.make.__name__, c.kind)}
    if set(args.names) - known:
        parser.error(f"there is no case {sorted(set(args.names) - known)[0]!r}")
    chosen = [
        at for at, c in enumerate(CASES) if not args.names or {c.name, c.make.__name__, c.kind} & set(args.names)
    ]
    failed, table, begun = [], [], time.monotonic()
    processes = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(min(args.jobs, len(chosen)), processes) as pool:
        for at, made in zip(chosen, pool.map(run_one, chosen, [not args.unchecked] * len(chosen))):
            case, (said, wrong, seconds) = CASES[at], made
            ways = "  ".join(f"{way} {text[:100]}" for way, text in said.items())
            print(f"{case.name:34} {ways}  ({seconds:.1f} s)", flush=True)
            for line in wrong:
                print(f"    FAILED {line}", flush=True)
            failed += [case.name] if wrong else []
            table.append((case, said))
    refused = sum(bool(case.refused) for case, _ in table)
    apart = sum(bool(case.apart) for case, _ in table)
    print(
        f"{len(table)} cases in {time.monotonic() - begun:.0f} s: {len(failed)} failed; {refused} are refused, "
        f"{apart} in micro-batches alone"
    )
    if args.markdown:
        with open(args.markdown, "w", encoding="utf-8") as file:
            file.write(as_markdown(table))
    if failed:
        print("failed:", ", ".join(failed))
        sys.exit(1)


def as_markdown(table) -> str:
    text = HEAD.format(
        count=len(table),
        rows=border.ROWS,
        parts=" and ".join(map(str, PARTS)),
        close=CLOSE,
        luck=LUCK,
        command="make test-border MARKDOWN=docs/results/border.md",
    )
    for case, said in sorted(table, key=lambda row: (bool(row[0].refused), bool(row[0].apart))):
        kept, half, *parts = (as_cell(said.get(way, "")) for way in ("kept", "half", *(f"{n} rows" for n in PARTS)))
        apart = parts[0] if len(set(parts)) == 1 else " / ".join(parts)
        text += f"| {case.name} | {case.what} | {kept} | {half} | {apart} |\n"
    return text


def as_cell(text) -> str:
    return re.sub(r"/\S+/(net\.\w+)", r"\1", text).replace("|", "\\|").replace("](", "]\\(")


if __name__ == "__main__":
    main()
