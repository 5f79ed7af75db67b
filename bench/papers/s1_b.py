"""S1-b: time against depth, everything kept and computed again."""
from book import gibibytes, table
from cells import Cell
from plot import Axis, Plot
from s1_a import depths, name, net

TITLE = "Time against depth"
ORDER = (1001, 200, 50, 500, 101, 152, 350, 650, 800)  # what the other tables want comes first
STRATEGIES = {"keep_all": "everything kept", "drop_cheap": "cheap ops again",
              "chen_budget": "sublinear", "optimal at sublinear's bytes": "optimal, same bytes"}
STEPS = ("--steps", "12")


def cells(quick=False):
    found = []
    for depth in list(depths(quick))[:2] if quick else ORDER:
        for strategy in STRATEGIES:
            words, budget = (*net(depth, quick), "--planner", strategy), ()
            if strategy not in ("keep_all", "drop_cheap", "chen_budget"):
                words, budget = net(depth, quick), (name(depth, "chen_budget"),)
            found.append(Cell("S1-b", name(depth, strategy), "train", words,
                              ("--steps", "3") if quick else STEPS, (1,),
                              () if quick else ("cuda",), budget=budget, timed=True))
    return found


def page(book, quick=False):
    def shown(depth, strategy):
        kept = book.figures("S1-b", name(depth, "keep_all")).get("step_ms")

        def write(f):
            slower = f" ({100 * (f['step_ms'] / kept - 1):+.0f} %)" if kept else ""
            return (f"{f['step_ms']:.0f} ms" + (slower if strategy != "keep_all" else "")
                    + f" in {gibibytes(f['measured_arena_bytes'])}")
        return book.say("S1-b", name(depth, strategy), write)

    plot = Plot("Time of a ResNet step, batch 32", Axis("layers"))
    panel = plot.panel(Axis("ms a step"))
    for strategy, label in STRATEGIES.items():
        panel.add(label, [(d, book.figures("S1-b", name(d, strategy)).get("step_ms"))
                          for d in depths(quick)])
    rows = [[d, *(shown(d, s) for s in STRATEGIES)] for d in depths(quick)]
    lines = ["fp32, batch 32, 224x224, generated images, on a GPU: the median of 12 steps. "
             "`thimble train "
             "'resnet:[3,4,6,3]' --batch 32 --planner NAME --device cuda --steps 12`; optimal has "
             "the arena that "
             "sublinear takes for its budget.", "",
             *table(["layers", *STRATEGIES.values()], rows), ""]
    lines += [book.draw("S1-b", plot), ""]
    if quick:
        return lines
    return lines + ["**The paper**: one more forward pass, +30 % measured. **Here**, measured "
                    "once on an H200 before records "
                    "were kept (1,001 layers): 151 ms in 30.6 GiB, 157 in 16.7 (cheap ops again), "
                    "195 in 4.65 (sublinear, "
                    "+29 %), 188 in 4.21 GiB (optimal, +25 %)."]
