"""S2-f: all combinations: the frontier of memory, FLOPs and accuracy."""
import itertools

from book import NOT_RUN, megabytes, percent, table
from cells import plan, training
from nets import TRANSLATION, image_net, techniques
from plot import Axis, Plot

TITLE = "All combinations"
PRECISIONS = ("fp16", "fp32")
DENSITIES = ("0.3", "1", "0.5", "0.2", "0.1")
MICROBATCHES = (10, 100, 20, 5, 50)
# Accuracy is the same at all of these, to the bit: one training serves them.
RECOMPUTED = ("kept", "between", "least")
NEAR = (0.1, 0.4, 1.0)  # percent below dense


class Combination:
    def __init__(self, net, precision, density, microbatch, fold=False, experiment="S2-f"):
        self.net, self.precision, self.density = net, precision, density
        self.microbatch, self.fold, self.experiment = microbatch, fold, experiment
        self.name = ", ".join([precision, "dense" if density == "1" else f"density {density}",
                               f"microbatch {microbatch}",
                               *(["folded"] if fold else [])])

    def flags(self, trained=False):
        whole = self.microbatch == self.net.microbatches[0]
        scaled = self.fold and self.precision == "fp16"
        return techniques(self.net, density=self.density if self.density != "1" else None,
                          precision=None if self.precision == "fp32" else self.precision,
                          rounding="stochastic" if self.precision == "bf16" else None,
                          fold=self.fold, loss_scale="1024" if scaled else None,
                          microbatch=None if whole else self.microbatch, trained=trained)

    def planned(self, how):
        return f"{self.net.title}, {self.name}, {how}, planned"

    def trained(self):
        return f"{self.net.title}, {self.name}, trained"


def combinations(quick):
    net = image_net(quick)
    if quick:
        found = [Combination(net, *c)
                 for c in itertools.product(PRECISIONS, ("0.3", "1"), (10, 50))]
    else:
        found = [Combination(net, p, d, m)
                 for m in MICROBATCHES for d in DENSITIES for p in PRECISIONS]
        found += [Combination(net, "fp16", d, m, fold=True) for m in (10, 5) for d in DENSITIES]
    return found + [Combination(TRANSLATION, p, d, m) for m in TRANSLATION.microbatches
                    for d in ("1", "0.7", "0.4", "0.2") for p in PRECISIONS]


def cells(quick=False):
    return cells_of(combinations(quick))


def cells_of(all_combinations):
    found = []
    for c in all_combinations:
        words = (*c.net.planned, *c.flags())
        found += [plan(c.experiment, c.planned("kept"), (*words, "--planner", "keep_all")),
                  plan(c.experiment, c.planned("least"), (*words, "--memory", "least")),
                  plan(c.experiment, c.planned("between"), words,
                       budget=(c.planned("kept"), c.planned("least")))]
    return found + [training(c.experiment, c.trained(), c.net, c.flags(trained=True))
                    for c in all_combinations]


class Point:
    """A plan of a combination: bytes, FLOPs over those of the dense step, accuracy if there is "
      "one."""

    def __init__(self, book, combination, how, flops):
        experiment = combination.experiment
        figures = book.figures(experiment, combination.planned(how))
        scores = book.scores(experiment, combination.trained(), combination.net.metric)
        self.combination, self.how = combination, how
        self.bytes = figures["arena_bytes"]
        self.extra = figures["flops"] / flops - 1
        self.score = sum(scores) / len(scores) if scores else None
        self.name = f"{combination.name}, {how}"
        self.command = book.command(experiment, combination.planned(how)).strip("`")

    def within(self, points, by):
        """Whether none of `points` is as good everywhere and better somewhere."""
        mine = by(self)
        return not any(all(a <= b for a, b in zip(by(p), mine)) and by(p) != mine for p in points)


def points_of(book, mine):
    """Of the combinations of one net: all plans with figures, and the dense step among them."""
    dense = next(c for c in mine if c.name.startswith("fp32, dense")
                 and c.microbatch == c.net.microbatches[0])
    base = book.figures(dense.experiment, dense.planned("kept"))
    if "flops" not in base:
        return [], None
    points = [Point(book, c, how, base["flops"]) for c in mine for how in RECOMPUTED
              if "flops" in book.figures(c.experiment, c.planned(how))]
    return points, next(p for p in points if p.combination is dense and p.how == "kept")


def page(book, quick=False):
    lines = ["Precision x density (nonzeros that move) x microbatch x recomputation (everything "
             "kept; as little as possible; "
             "half-way between in ratio), and gradients folded into the momentum. Planned on the "
             "null device. Recomputation changes no bit, so "
             "one training of 30 epochs (as in S2-b) serves all plans of a combination. FLOPs are "
             "against the dense fp32 step."]
    for net in (image_net(quick), TRANSLATION):
        mine = [c for c in combinations(quick) if c.net is net]
        lines += ["", f"**{net.title}**", "", *frontier(book, mine, headline(book, net))]
    return lines


def frontier(book, mine, full=()):
    """Picture, table of the smallest and table of all, of the combinations of one net."""
    net = mine[0].net
    points, dense = points_of(book, mine)
    if not points:
        return [f"All {len(mine)} combinations: {NOT_RUN}."]
    return [book.draw(f"{mine[0].experiment}-{net.planned[0]}", picture(net, points, dense, full)),
            "", *nearest(net, points, dense), "", *listing(book, mine)]


def nearest(net, points, dense):
    """The smallest memory within so much of dense."""
    rows = []
    for near in NEAR if net.metric == "test_accuracy" else (0.15, 0.5):
        unit = "%" if net.metric == "test_accuracy" else "BLEU"
        scale = 100 if net.metric == "test_accuracy" else 1
        good = [p for p in points if p.score is not None and dense.score is not None
                and scale * (dense.score - p.score) <= near + 1e-9]
        best = min(good, key=lambda p: p.bytes, default=None) if dense.score is not None else None
        trained = sum(p.score is not None and p.how == "kept" for p in points)
        if not best or trained < 2:
            rows.append([f"{near:g} {unit}", *[NOT_RUN] * 4])
        else:
            rows.append([f"{near:g} {unit}", best.name, megabytes(best.bytes), percent(best.extra),
                         f"{scale * best.score:.2f}, dense {scale * dense.score:.2f}"])
    return table(["within, of dense", "smallest", "arena", "extra FLOPs", "score"], rows)


def listing(book, mine):
    """Every combination: what it takes at each degree of recomputation, and what it learns."""
    def shown(figures):
        again = figures["extra_flops_ratio"]
        return megabytes(figures["arena_bytes"]) + (f" ({percent(again)})" if again else "")

    rows = [[c.name, *(book.say(c.experiment, c.planned(how), shown) for how in RECOMPUTED),
             book.score(c.experiment, c.trained(), c.net),
             f"`thimble plan {' '.join((*c.net.planned, *c.flags()))}`"] for c in mine]
    return table(["combination", *RECOMPUTED, "score", "command (`--memory BYTES`, `least`)"], rows)


def headline(book, net):
    """Runs of longer schedules (S2-g): bytes, mean score, what it is."""
    if net.metric != "test_accuracy":
        return []
    found = []
    for cell in ("dense", "combined", "dense, 100 epochs", "small, 100 epochs"):
        scores, figures = book.scores("S2-g", cell), book.figures("S2-g", cell)
        if scores and "arena_bytes" in figures:
            command = book.command("S2-g", cell).strip("`")
            found.append((figures["arena_bytes"], 100 * sum(scores) / len(scores),
                          f"{cell}: {figures['arena_bytes']:,} bytes; {command}"))
    return found


def picture(net, points, dense, full):
    """Above, FLOPs; below, accuracy. Hollow: not trained yet. `full`: runs of longer schedules."""
    plot = Plot(f"All combinations, {net.title}", Axis("arena, bytes", log=True))
    flops = plot.panel(Axis("extra FLOPs, %"))
    colour = {"fp16": "#1f6feb", "bf16": "#1f6feb", "fp32": "#d1242f"}
    precisions = sorted({p.combination.precision for p in points})
    tip = "{0.name}: {0.bytes:,} bytes; {0.command}".format
    frontier = [p for p in points if p.within(points, lambda q: (q.bytes, q.extra))]
    for hollow in (False, True):
        for precision in precisions:
            flops.add(precision + (", not trained" if hollow else ", trained"),
                      [(p.bytes, 100 * p.extra, tip(p)) for p in points
                       if p.combination.precision == precision and (p.score is None) == hollow],
                      line=False, hollow=hollow, colour=colour[precision],
                      marker="square" if precision == "fp32" else "circle")
    flops.add("fewest bytes and FLOPs", [(p.bytes, 100 * p.extra) for p in
                                         sorted(frontier, key=lambda p: p.bytes)],
              marker="none", colour="#57606a")
    trained = [p for p in points if p.score is not None]
    scale = 100 if net.metric == "test_accuracy" else 1
    if trained or full:
        lowest = min([scale * p.score for p in trained] + [score for _, score, _ in full])
        scores = plot.panel(Axis("test accuracy, %" if scale == 100 else "BLEU",
                                 low=min(90, lowest - 0.5) if scale == 100 else None))
        if full:
            scores.add("100 or 200 epochs (S2-g)", full, line=False, marker="diamond", colour="#8250df")
        for how, shape in zip(RECOMPUTED, ("circle", "diamond", "triangle")) if trained else ():
            scores.add(how, [(p.bytes, scale * p.score, tip(p)) for p in trained if p.how == how],
                       line=False, marker=shape)
        best = [p for p in trained if p.within(trained, lambda q: (q.bytes, -q.score))]
        if best:
            scores.add("frontier", [(p.bytes, scale * p.score) for p in
                                    sorted(best, key=lambda p: p.bytes)],
                       marker="none", colour="#57606a")
        if dense.score is not None:
            for near in NEAR if scale == 100 else (0.15, 0.5):
                scores.level(scale * dense.score - near, f"dense - {near:g}")
    return plot
