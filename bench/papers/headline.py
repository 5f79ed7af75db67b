"""S2-g, the headline: dense fp32, everything combined within 6.5 MB, and a point within 4.5 MB.

usage: headline.py --thimble PROGRAM --data-dir CIFAR10 [--device cuda] [--minutes 9]
                   [--from FILE.tar] [--to FILE.tar] [--only combined] [--seeds 1,2] [--sweeps]
WRN-28-2 on CIFAR-10, 200 epochs (the smallest point: 100), one run after the other. With --minutes
it stops cleanly before they are over; started again it goes on to the same bits. --to packs all that takes (results,
checkpoints, kernel times) into one file, --from starts with such a file, on whatever machine. With
--sweeps S2-b to S2-f follow at their short schedule. Exit code 75: not finished, go on.
"""
import dataclasses
import statistics
import sys

from book import NOT_RUN, megabytes, table
from cells import Cell, plan, training
from nets import DIGITS, TRANSLATION, image_net

TITLE = "The headline"
RECIPE = "recipes/wrn-28-2-cifar10.toml"
SPARSE = "recipes/wrn-28-2-cifar10-sparse.toml"
COMBINED = ("--microbatch", "10", "--precision", "fp16", "--memory", "6.5MB")
# Folded gradients: heavy ball, and a loss scale that is a number. Density: the most that fits.
SMALL = ("--microbatch", "10", "--precision", "fp16", "--loss-scale", "1024", "--optimizer", "sgd",
         "--fold", "--memory", "4.5MB")
DENSITIES = ("0.25", "0.24", "0.23", "0.22", "0.21", "0.2", "0.17", "0.14", "0.1")
HALF_AS_LONG = ("--epochs", "100", "--milestones", "30,60,80")
GPU = ("cuda", "cifar10")
BASELINE = 399_018_984  # bytes on paper, as the literature counts: S2-a
LITERATURE = {"dense": "94.70 % (Mostafa and Wang 2019, mean of 5)",
              "combined": "60.7x at -0.4 % (Sohoni et al. 2019)",
              "dense, 100 epochs": "not stated", "small, 100 epochs": "not stated"}
ROWS = {"dense": "dense, fp32", "combined": "combined, within 6.5 MB",
        "dense, 100 epochs": "dense, fp32, 100 epochs",
        "small, 100 epochs": "combined, within 4.5 MB, 100 epochs"}
BESIDE = {"combined": "dense", "small, 100 epochs": "dense, 100 epochs"}  # as many epochs
STEP = {"dense, 100 epochs": "dense"}  # rows with the step of another row

# Slices in place of microbatches, whose gradients would all have to be there at once. No loss scale
# waits for all of them.
HALF = ("--precision", "bf16", "--rounding", "stochastic")
LEAN = ("--slices", "8", "--loss-rows", "32", "--memory", "least")
# Flags that change the numbers. Slices and recomputation come on top, and change rounding at most.
TRANSLATED = {
    "translation, dense": (),
    "translation, combined": (*HALF, "--state-bits", "8"),
    "translation, small": ("--optimizer", "adafactor", *HALF)}
# Where not by these flags: a recipe that says what belongs to Adam cannot be told of Adafactor.
TRAINED_BY = {"translation, small": "recipes/multi30k-de-en-small.toml"}


def cells(quick=False):
    if quick:
        return quick_cells()
    densities = tuple(("--density", d) for d in DENSITIES)
    step = ("wrn-28-2", "--batch", "100")
    return [
        *planned("dense", step), *planned("combined", (*step, *COMBINED, "--density", "0.3")),
        *planned("small, 100 epochs", (*step, *SMALL), ladder=densities),
        Cell("S2-g", "dense", "train", (RECIPE,), seeds=(1, 2, 3), needs=GPU),
        Cell("S2-g", "combined", "train", (SPARSE, *COMBINED), seeds=(1, 2), needs=GPU),
        Cell("S2-g", "small, 100 epochs", "train", (SPARSE, *SMALL), HALF_AS_LONG, seeds=(1,),
             needs=GPU, ladder=densities),
        Cell("S2-g", "dense, 100 epochs", "train", (RECIPE,), HALF_AS_LONG, seeds=(1,), needs=GPU),
        # Its time on a card alone, where the training itself shares one.
        Cell("S2-g", "small, 100 epochs, timed", "train", (SPARSE, *SMALL), ("--steps", "300"),
             seeds=(1,), needs=GPU, ladder=densities, timed=True),
        *(plan("S2-g", f"{name}, planned", (*planned_translator(flags), *flags, *lean(flags)))
          for name, flags in TRANSLATED.items()),
        *(trained_translator(name, name, seeds=(1, 2, 3)) for name in TRANSLATED),
        # Once as it is planned, too: as much memory as the plan says, and what it learns.
        *(trained_translator(f"{name}, in least memory", name, LEAN)
          for name, flags in TRANSLATED.items() if flags)]


def lean(flags):
    return LEAN if flags else ()


def planned_translator(flags):
    """The published net; its optimizer is Adam where the flags name none."""
    return TRANSLATION.planned[:1] if "--optimizer" in flags else TRANSLATION.planned


def trained_translator(cell, name, more=(), **seeds):
    if name in TRAINED_BY:
        net = dataclasses.replace(TRANSLATION, trained=(TRAINED_BY[name],))
        return training("S2-g", cell, net, more, **seeds)
    return training("S2-g", cell, TRANSLATION, (*TRANSLATED[name], *more), **seeds)


def planned(name, words, **more):
    """Without scratch, and with that of the CPU's kernels on two threads."""
    return [plan("S2-g", f"{name}, planned", words, **more),
            Cell("S2-g", f"{name}, planned for a CPU", "plan", (*words, "--threads", "2"), **more)]


def quick_cells():
    """The same paths in seconds: a small net on the built-in digits."""
    combined = (*DIGITS.trained, "--density", "0.3", "--microbatch", "10", "--precision", "fp16")
    folded = (*combined, "--loss-scale", "1024", "--optimizer", "sgd", "--fold")
    ladder = tuple(("--memory", m) for m in ("20kB", "600kB"))
    return [
        *planned("dense", DIGITS.trained), *planned("small, 100 epochs", folded, ladder=ladder),
        Cell("S2-g", "dense", "train", DIGITS.trained, ("--epochs", "4"), seeds=(1, 2)),
        Cell("S2-g", "combined", "train", (*combined, "--memory", "least"), ("--epochs", "4"),
             seeds=(1,)),
        Cell("S2-g", "small, 100 epochs", "train", folded, ("--epochs", "2"), seeds=(1,),
             ladder=ladder),
        Cell("S2-g", "dense, 100 epochs", "train", DIGITS.trained, ("--epochs", "2"), seeds=(1,))]


def page(book, quick=False):
    net = image_net(quick)
    rows = []
    for name, label in ROWS.items():
        step = STEP.get(name, name)

        def arena(cell):
            return book.say("S2-g", cell, lambda f: f"{f['arena_bytes']:,}")

        def on_card(f):
            return f"{f['measured_arena_bytes']:,}"

        rows.append([label, arena(f"{step}, planned"), arena(f"{step}, planned for a CPU"),
                     book.say("S2-g", name, on_card), ratio(book, name),
                     book.score("S2-g", name, net), lost(book, name),
                     timed(book, name),
                     against(book, name), book.command("S2-g", name) if book.figures("S2-g", name)
                     else book.command("S2-g", f"{step}, planned for a CPU")])
    lines = [
        "WRN-28-2 on CIFAR-10, batch 100, 200 epochs, Nesterov, rate 0.1 divided by 5 at epochs "
        "60, 120 and 160 (of 100 epochs: 30, 60 and 80; within 4.5 MB by heavy ball, whose "
        "gradients are folded into the momentum); accuracy after the last "
        "epoch, not the best one. Arenas in bytes; the ratio is of 399.0 MB, our count of the "
        "baseline (S2-a), over the largest arena in "
        "the row: the paper prints ratios alone. Within 4.5 MB, the density is the first that "
        f"fits of {', '.join(DENSITIES)}: {densities(book)}.", "",
        *table(["", "planned, no scratch", "planned, CPU, 2 threads", "measured on a GPU", "ratio",
                "test accuracy", "of dense",
                "step, tier", "literature", "command"], rows), ""]
    lines += shas(book)
    return lines + translated(book)


def densities(book):
    """Of the small point, on each device."""
    small = "small, 100 epochs"
    found = []
    for cell, where in ((f"{small}, planned", "without scratch"),
                        (f"{small}, planned for a CPU", "with that of a CPU"),
                        (small, "on the GPU")):
        words = book.command("S2-g", cell).strip("`").split()
        found.append(f"{words[words.index('--density') + 1]} {where}" if "--density" in words
                     else f"{NOT_RUN} {where}")
    return ", ".join(found)


def timed(book, name):
    """A step on a card alone, and its tier."""
    alone = [r["figures"] for cell in (f"{name}, timed", name) for r in book.seeds("S2-g", cell)
             if not r.get("shared") and "step_ms" in r["figures"]]
    if alone:
        return f"{alone[0]['step_ms']:.2f} ms, {alone[0]['tier']}"
    return book.say("S2-g", name, lambda f: f"not timed (the card was shared), {f['tier']}")


def lost(book, name):
    """Accuracy beside the dense net's after as many epochs."""
    if name not in BESIDE:
        return ""
    scores, dense = (book.scores("S2-g", cell) for cell in (name, BESIDE[name]))
    return (f"{100 * (statistics.mean(scores) - statistics.mean(dense)):+.2f} %"
            if scores and dense else NOT_RUN)


def translated(book):
    profile = book.figures("S2-a", TRANSLATION.title)
    baseline = profile["techniques"]["baseline"]["total_bytes"] if profile else 0
    rows = []
    for name in TRANSLATED:
        planned = book.figures("S2-g", f"{name}, planned")
        times = f"{baseline / planned['arena_bytes']:.1f}x" if planned and baseline else NOT_RUN
        paper = "" if name.endswith("dense") else "8.7x at -0.15 BLEU"
        if paper and planned and baseline / planned["arena_bytes"] < 8.7:
            fixed = planned["bytes"]["weights"] + planned["bytes"]["optimizer"]
            paper += (f"; not reached: weights and Adam's moments are {megabytes(fixed)}, the rest "
                      "is what a layer works on")
        rows.append([name.split(", ")[1],
                     book.say("S2-g", f"{name}, planned", lambda f: f"{f['arena_bytes']:,}"), times,
                     book.score("S2-g", name, TRANSLATION), of_dense(book, name), paper,
                     book.command("S2-g", f"{name}, planned"), book.command("S2-g", name)])
    return ["", "**DynamicConv, German to English**. Planned: `dynamicconv-iwslt`, 32 rows of 125 "
            "tokens, Adam, without scratch, against the baseline of S2-a. Trained: a smaller net on "
            "Multi30k for 3,500 steps, everything kept (slices and recomputation change rounding at "
            "most); BLEU of test_2016_flickr, lower case, mean of the last 10 checkpoints.", "",
            *table(["", "planned", "ratio", "BLEU", "of dense", "literature", "planned by",
                    "trained by"], rows)]


def of_dense(book, name):
    """BLEU over that of the dense net, of as many seeds as both have."""
    mine, dense = (book.scores("S2-g", cell, TRANSLATION.metric) for cell in (name, "translation, dense"))
    both = min(len(mine), len(dense))
    if name.endswith("dense") or both == 0:
        return "" if name.endswith("dense") else NOT_RUN
    return f"{statistics.mean(mine[:both]) - statistics.mean(dense[:both]):+.2f}"


def against(book, name):
    """The literature's figure, and where it is not reached by how much and why."""
    scores, dense = book.scores("S2-g", name), book.scores("S2-g", "dense")
    mean = 100 * statistics.mean(scores) if scores else None
    if name == "dense" and mean is not None and mean < 94.70:
        return LITERATURE[name] + (f"; not reached by {94.70 - mean:.2f}: {len(scores)} seeds "
                                   "here, the last epoch's accuracy")
    if name == "combined" and mean is not None and dense:
        loss = 100 * statistics.mean(dense) - mean
        if loss > 0.4:
            return LITERATURE[name] + (f"; not reached: -{loss:.2f} %; what each technique takes "
                                       "of "
                                       "it stands in S2-b to S2-d")
    return LITERATURE[name]


def ratio(book, name):
    figures = [book.figures("S2-g", cell) for cell in
               (name, f"{STEP.get(name, name)}, planned",
                f"{STEP.get(name, name)}, planned for a CPU")]
    arenas = [f["arena_bytes"] for f in figures if "arena_bytes" in f]
    return f"{BASELINE / max(arenas):.1f}x" if arenas else NOT_RUN


def shas(book):
    """The trained weights, to the bit."""
    rows = [[ROWS[name], r["seed"], f"{100 * r['figures']['test_accuracy']:.2f} %",
             f"{r['figures']['seconds'] / 60:.1f} min in {r['figures']['sittings']}"
             + (", beside others" if r.get("shared") else ""),
             f"`{r['figures']['weights_sha256']}`", r["date"], r["machine"]]
            for name in ROWS for r in book.seeds("S2-g", name) if "weights_sha256" in r["figures"]]
    if not rows:
        return ["Runs, with the sha256 of their weights: none yet."]
    return ["Every run; logs are in [results/papers/logs](../../results/papers/logs).", "",
            *table(["", "seed", "accuracy", "time and sittings", "sha256 of the weights", "date",
                    "machine"], rows)]


if __name__ == "__main__":
    import drive

    sys.exit(drive.main(["S2-g"], __doc__))
