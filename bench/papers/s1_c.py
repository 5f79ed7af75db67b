"""S1-c: LSTM memory and time against length."""
from book import NOT_RUN, exponent, feature_maps, gibibytes, percent, table
from cells import Cell, plan
from nets import EVERY_STEP, LSTM
from plot import Axis, Plot

TITLE = "LSTM against length"
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
QUICK_LENGTHS = (16, 64)
TIMED = {name: ("--planner", name) for name in ("keep_all", "sqrt_segments")}
STRATEGIES = {**TIMED, "chen_budget": ("--planner", "chen_budget"),
              "optimal": ("--memory", "least")}
LOSSES = {"loss at the last step": (), "loss at every step": EVERY_STEP}


def net(length, loss, quick):
    sizes = ("lstm", "--layers", "2", "--hidden", "16", "--batch", "4", "--classes", "10")
    return (*(sizes if quick else LSTM), "--length", str(length), *LOSSES[loss])


def name(length, strategy, loss, what):
    return f"T {length}, {strategy}, {loss}, {what}"


def cells(quick=False):
    lengths = QUICK_LENGTHS if quick else LENGTHS
    found = []
    for loss, flags in LOSSES.items():
        family = ("lstm", *flags)
        for length in lengths:
            words = net(length, loss, quick)
            for strategy, how in STRATEGIES.items():
                found.append(plan("S1-c", name(length, strategy, loss, "planned"), (*words, *how),
                                  family=family))
            budgets = [*((s, how, ()) for s, how in TIMED.items()),
                       ("optimal", (), (name(length, "sqrt_segments", loss, "trained"),))]
            for strategy, how, budget in budgets:
                found.append(Cell("S1-c", name(length, strategy, loss, "trained"), "train",
                                  (*words, *how), ("--steps", "3" if quick else "12"), (1,),
                                  () if quick else ("cuda",), budget=budget, family=family,
                                  timed=True))
    return found


def growth(book, lengths, strategy, loss, least):
    points = [(t, book.figures("S1-c", name(t, strategy, loss, "planned"))) for t in lengths]
    points = [(t, feature_maps(f)) for t, f in points if "bytes" in f and t >= least]
    return f"{exponent(points):.2f}" if len(points) > 2 else NOT_RUN


def page(book, quick=False):
    lengths = QUICK_LENGTHS if quick else LENGTHS

    def planned(length, strategy, loss):
        kept = book.figures("S1-c", name(length, "keep_all", loss, "planned"))

        def write(f):
            again = f" ({percent(f['extra_flops_ratio'])})" if f["extra_flops_ratio"] else ""
            useless = strategy != "keep_all" and feature_maps(f) >= feature_maps(kept)
            return gibibytes(feature_maps(f)) + again + (", saves nothing" if useless else "")
        return book.say("S1-c", name(length, strategy, loss, "planned"), write)

    def trained(length, strategy, loss):
        return book.say("S1-c", name(length, strategy, loss, "trained"), lambda f:
                        f"{f['step_ms']:.0f} ms in {gibibytes(f['measured_arena_bytes'])}")

    lines = ["Chen et al. 2016: 4 layers of 1,024 units, batch 64, 50 inputs, 5,000 classes, "
             "fp32. Feature maps, planned on "
             "the null device, extra FLOPs in brackets. Then time and whole arena of 12 steps on "
             "a GPU, where `optimal` has "
             "the arena of `sqrt_segments` for its budget. `thimble plan lstm --layers 4 --hidden "
             "1024 --batch 64 "
             "--classes 5000 --length T --planner NAME --device null` (`optimal`: `--memory "
             "least`)."]
    for loss in LOSSES:
        rows = [[t, *(planned(t, s, loss) for s in STRATEGIES),
                 *(trained(t, s, loss) for s in (*TIMED, "optimal"))] for t in lengths]
        rows.append(["exponent, from T = 256",
                     *(growth(book, lengths, s, loss, 0 if quick else 256) for s in STRATEGIES),
                     "", "", ""])
        lines += ["", f"**With the {loss}**:", "",
                  *table(["time steps", *STRATEGIES,
                          *(f"{s}, GPU" for s in (*TIMED, "optimal"))], rows)]
        plot = Plot(f"LSTM 4 x 1024, {loss}", Axis("time steps", log=True, base=2))
        panel = plot.panel(Axis("feature maps, bytes", log=True))
        for strategy in STRATEGIES:
            points = [(t, book.figures("S1-c", name(t, strategy, loss, "planned")))
                      for t in lengths]
            panel.add(strategy, [(t, feature_maps(f)) for t, f in points if "bytes" in f])
        lines += ["", book.draw("S1-c-" + loss.split()[-2], plot)]
    for loss in LOSSES:
        kept, small = (book.figures("S1-c", name(2048, s, loss, "planned"))
                       for s in ("keep_all", "chen_budget"))
        if kept and small:
            lines += ["", "**The paper**: more than 4 times below the plan that shares all memory it "
                      f"can. **Here**, {loss}, 2,048 time steps, by its algorithm: "
                      f"{feature_maps(kept) / feature_maps(small):.1f} times."]
    return lines
