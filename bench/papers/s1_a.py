"""S1-a: feature-map memory against depth, one curve per strategy."""
from book import feature_maps, gibibytes, percent, table
from cells import plan
from plot import Axis, Plot

TITLE = "Feature maps against depth"
# Bottlenecks of the four stages by layers; the paper lengthens stages and does not say which.
DEPTHS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3),
          350: (3, 24, 84, 5), 500: (3, 36, 120, 7), 650: (3, 40, 164, 9), 800: (3, 44, 209, 10),
          1001: (3, 48, 270, 12)}
QUICK_DEPTHS = {14: (1, 1, 1, 1), 26: (2, 2, 2, 2), 50: (3, 4, 6, 3)}
STRATEGIES = {"none": "no optimisation", "inplace": "in place", "sharing": "in place, shared",
              "drop_cheap": "cheap ops again", "chen_budget": "sublinear",
              "optimal at sublinear's bytes": "optimal, same bytes", "optimal": "optimal, least"}


def depths(quick):
    return QUICK_DEPTHS if quick else DEPTHS


def net(depth, quick):
    stages = ",".join(str(n) for n in depths(quick)[depth])
    size = ("--batch", "4", "--image", "32,32,3") if quick else ("--batch", "32")
    return (f"resnet:[{stages}]", *size)


def name(depth, strategy):
    return f"{depth} layers, {strategy}"


def cells(quick=False):
    found = []
    for depth in depths(quick):
        for strategy in STRATEGIES:
            words, budget = (*net(depth, quick), "--planner", strategy), ()
            if strategy == "optimal":
                words = (*net(depth, quick), "--memory", "least")
            elif strategy not in ("none", "inplace", "sharing", "drop_cheap", "chen_budget"):
                words, budget = net(depth, quick), (name(depth, "chen_budget"),)
            found.append(plan("S1-a", name(depth, strategy), words, budget=budget))
    return found


def page(book, quick=False):
    def maps(depth, strategy):
        return book.say("S1-a", name(depth, strategy), lambda f: gibibytes(feature_maps(f)) + (
            f" ({percent(f['extra_flops_ratio'])})" if f["extra_flops_ratio"] else ""))

    def measured(depth, strategy):
        return book.say("S1-b", name(depth, strategy),
                        lambda f: gibibytes(f["measured_arena_bytes"]))

    plot = Plot("Feature maps of a ResNet step, batch 32, 224x224", Axis("layers"))
    panel = plot.panel(Axis("feature maps, bytes", log=True))
    for strategy, label in STRATEGIES.items():
        points = [(depth, book.figures("S1-a", name(depth, strategy))) for depth in depths(quick)]
        panel.add(label, [(depth, feature_maps(f)) for depth, f in points if "bytes" in f])
    lines = [
        "Chen et al. 2016, batch 32, 3x224x224: intermediate results and their gradients, planned "
        "on the null "
        "device; in brackets what is computed again, in FLOPs of the step. Commands: "
        "`thimble plan 'resnet:[3,4,6,3]' --batch 32 --device null --planner NAME`, `--memory "
        "BYTES` and "
        "`--memory least`; each stands in full in [S1-a.jsonl](../../results/papers/S1-a.jsonl).", "",
        *table(["layers", *STRATEGIES.values()],
               [[depth, *(maps(depth, s) for s in STRATEGIES)] for depth in depths(quick)]), "",
        book.draw("S1-a", plot), ""]
    deepest = max(depths(quick))
    whole, small = (book.figures("S1-a", name(deepest, s)) for s in ("none", "chen_budget"))
    if not quick and whole and small:
        shared = feature_maps(book.figures("S1-a", name(deepest, "sharing")))
        lines += [
            "**The paper**: 1,000 layers 48 GB to 7 GB, and 2 to 3 times less by computing in "
            "place and sharing. "
            f"**Here** (our composition of 1,001 layers; theirs is not published): "
            f"{feature_maps(whole) / 1e9:.1f} GB to {feature_maps(small) / 1e9:.2f} GB by the "
            "same algorithm, and "
            f"{feature_maps(whole) / shared:.2f} times less in place and shared"
            + (", below the paper's range: our fused ops leave fewer values that share could save."
               if feature_maps(whole) / shared < 2 else ".")]
    depths_measured = [d for d in (50, 200, 1001) if d in depths(quick)]
    return lines + ["", "Measured arena of whole steps on a GPU (weights and optimizer state "
                        "included):", "",
                    *table(["layers", "everything kept", "cheap ops again", "sublinear",
                            "optimal, same bytes"],
                           [[d, *(measured(d, s) for s in ("keep_all", "drop_cheap", "chen_budget",
                                                           "optimal at sublinear's bytes"))]
                            for d in depths_measured])]
