"""S1-d: growth of memory with the length of a chain, and the work of the recursion."""
import math

from book import NOT_RUN, exponent, feature_maps, table
from cells import plan
from plot import Axis, Plot

TITLE = "Growth: square root, logarithm, n log n"
LAYERS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
QUICK_LAYERS = (16, 64, 256)
STRATEGIES = {**{name: ("--planner", name) for name in
                 ("keep_all", "sqrt_segments", "chen_budget", "log_recursive")}, "optimal": ()}
FROM = 64  # shorter chains are mostly their ends


def name(layers, strategy):
    return f"{layers} layers, {strategy}"


def cells(quick=False):
    return [plan("S1-d", name(n, s), ("mlp", "--layers", str(n), "--hidden", "64",
                                      "--batch", "1024", "--image", "8,8,1", *how),
                 budget=(name(n, "log_recursive"),) if s == "optimal" else ())
            for n in (QUICK_LAYERS if quick else LAYERS) for s, how in STRATEGIES.items()]


def passes(figures):
    """Forward passes that are recomputed. A step is three of them in FLOPs: one forward, two back."""
    return 3 * figures["extra_flops_ratio"]


def page(book, quick=False):
    layers = QUICK_LAYERS if quick else LAYERS

    def points(strategy, of):
        found = [(n, book.figures("S1-d", name(n, strategy))) for n in layers]
        return [(n, of(f)) for n, f in found if "bytes" in f]

    def shown(n, strategy):
        return book.say("S1-d", name(n, strategy), lambda f: f"{feature_maps(f) / 1e6:.2f} MB" + (
            f", {passes(f):.2f} passes" if f["extra_flops_ratio"] else ""))

    def fitted(strategy):
        found = [(n, y) for n, y in points(strategy, feature_maps) if n >= FROM]
        if len(found) < 3:
            return NOT_RUN
        (first, low), (last, high) = found[0], found[-1]
        doubling = (high - low) / math.log2(last / first) / 1e6
        return f"n^{exponent(found):.2f}" + (f", {doubling:.2f} MB a doubling" if strategy in
                                             ("log_recursive", "optimal") else "")

    rows = [[n, *(shown(n, s) for s in STRATEGIES), f"{math.log2(n):.0f}"] for n in layers]
    rows.append([f"fitted from n = {FROM}", *(fitted(s) for s in STRATEGIES), ""])
    plot = Plot("A chain of n layers", Axis("layers", log=True, base=2))
    memory = plot.panel(Axis("feature maps, bytes", log=True))
    work = plot.panel(Axis("forward passes computed again"))
    for strategy in STRATEGIES:
        memory.add(strategy, points(strategy, feature_maps))
        work.add(strategy, points(strategy, passes))
    work.add("log2 n", [(n, math.log2(n)) for n in layers], marker="none", dashed=True,
             colour="#57606a")
    recursion = points("log_recursive", passes)
    within = all(y <= math.log2(n) for n, y in recursion)
    return ["A perceptron of n layers of 64 units, batch 1,024: feature maps, and how many "
            "forward passes are computed again. "
            "`thimble plan mlp --layers N --hidden 64 --batch 1024 --image 8,8,1 --device null "
            "--planner NAME`; `optimal` "
            "has what `log_recursive` takes for its budget.", "",
            *table(["layers n", *STRATEGIES, "log2 n"], rows), "", book.draw("S1-d", plot), "",
            "**The paper**: O(sqrt n) memory at one more forward pass; O(log n) memory at O(n log "
            "n) forward work. **Here** the "
            + (f"recursion computes {max(y for _, y in recursion):.2f} forward passes again at "
               "most, "
               + ("never more than log2 n of them" if within else "**more than log2 n**")
               if recursion else "recursion was not run")
            + ". What it keeps grows with log n: a power fitted to a logarithm is small, and "
              "smaller the longer the chain."]
