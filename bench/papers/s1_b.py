"""S1-b: time against depth, everything kept and recomputed."""
from book import gibibytes, table
from cells import Cell
from plot import Axis, Plot
from s1_a import depths, name, net

TITLE = "Time against depth"
ORDER = (1001, 200, 50, 500, 101, 152, 350, 650, 800)  # what the other tables want comes first
OPTIMAL = "optimal at sublinear's bytes"
STRATEGIES = {"keep_all": "everything kept", "drop_cheap": "cheap ops again",
              "chen_budget": "sublinear", OPTIMAL: "optimal, same bytes"}
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
    return lines + [said(book)]


def said(book):
    """The paper's statement, and the records of the deepest net."""
    depth = max(depths(False))
    steps = {s: book.figures("S1-b", name(depth, s)) for s in STRATEGIES}
    paper = "**The paper**: one more forward pass, +30 % measured."
    if not all("step_ms" in figures for figures in steps.values()):
        return paper
    kept = steps["keep_all"]["step_ms"]

    def of(strategy):
        f = steps[strategy]
        return (f"{f['step_ms']:.0f} ms in {gibibytes(f['measured_arena_bytes'])} "
                f"({100 * (f['step_ms'] / kept - 1):+.0f} %)")
    return (f"{paper} **Here**, {depth:,} layers: its algorithm takes {of('chen_budget')}, against "
            f"{kept:.0f} ms in {gibibytes(steps['keep_all']['measured_arena_bytes'])} with "
            f"everything kept. `optimal` in no more memory takes "
            f"{of(OPTIMAL)}, cheap ops again {of('drop_cheap')}.")
