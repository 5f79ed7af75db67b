"""S2-b: accuracy and memory against sparsity, nonzeros that move against those that do not."""
import statistics

from book import NOT_RUN, megabytes, table
from cells import plan, training
from nets import TRANSLATION, image_net, techniques
from plot import Axis, Plot

TITLE = "Sparsity"
SPARSITIES = (0, 30, 50, 60, 70, 80, 90)
# Mostafa and Wang 2019, 200 epochs, mean of 5 seeds.
LITERATURE = {"dynamic": {0: 94.70, 50: 94.73, 60: 94.66, 70: 94.57, 80: 94.40, 90: 93.59},
              "static": {0: 94.70, 50: 94.28, 60: 94.26, 70: 93.87, 80: 93.48, 90: 92.04}}
# In the order of running: where the curves bend comes first.
ORDER = (0, 70, 90, 50, 80, 60, 30)


def name(net, sparsity, how, what):
    return f"{net.title}, " + (f"{how} {sparsity} %" if sparsity else "dense") + f", {what}"


def flags(net, sparsity, how):
    density = f"{1 - sparsity / 100:g}" if sparsity else None
    return techniques(net, density=density, static=how == "static")


def cells(quick=False):
    found = []
    for net in (image_net(quick), TRANSLATION):
        for what in ("planned", "trained"):
            for sparsity in ORDER:
                for how in ("dynamic", "static") if sparsity else ("dynamic",):
                    words = flags(net, sparsity, how)
                    title = name(net, sparsity, how, what)
                    found.append(plan("S2-b", title, (*net.planned, *words)) if what == "planned"
                                 else training("S2-b", title, net, words))
    return found


def literature(book, net, sparsity, how):
    if sparsity not in LITERATURE[how]:
        return "not stated"
    theirs = LITERATURE[how][sparsity]
    ours = book.scores("S2-b", name(net, sparsity, how, "trained"))
    missed = ours and 100 * sum(ours) / len(ours) < theirs
    return f"{theirs:.2f} %" + (", not reached: 30 epochs here, 200 there" if missed else "")


def page(book, quick=False):
    lines = ["Weights, gradients and state exist for nonzeros alone, beside one bit an element. "
             "Planned on the null device, fp32, "
             "everything kept. Trained for 30 epochs, rate 0.1 divided by 5 at epochs 9, 18 and "
             "24. The translator, a smaller net on Multi30k, was trained for 3,500 steps. The literature's "
             "figures are of 200 epochs (Mostafa and Wang 2019)."]
    for net in (image_net(quick), TRANSLATION):
        rows = []
        for sparsity in SPARSITIES:
            planned = name(net, sparsity, "dynamic", "planned")
            row = [f"{sparsity} %",
                   book.say("S2-b", planned, lambda f: megabytes(f["arena_bytes"])),
                   book.say("S2-b", planned, lambda f: megabytes(sum(
                       f["bytes"][role] for role in ("weights", "optimizer", "statistics"))))]
            for how in ("dynamic", "static"):
                row.append(book.score("S2-b", name(net, sparsity, how, "trained"), net))
                if net.metric == "test_accuracy":
                    row.append(literature(book, net, sparsity, how))
            row.append(book.command("S2-b", name(net, sparsity, "dynamic", "trained")))
            rows.append(row)
        paper = ["literature, 200 epochs"] if net.metric == "test_accuracy" else []
        lines += ["", f"**{net.title}**", "",
                  *table(["sparsity", "arena", "weights, momentum, masks", "dynamic", *paper,
                          "static", *paper, "command (dynamic)"], rows)]
    lines += ["", said(book, quick)]
    net = image_net(quick)
    plot = Plot("Accuracy against sparsity, WRN-28-2, CIFAR-10", Axis("zeros, %"))
    panel = plot.panel(Axis("test accuracy, %"))
    for how in ("dynamic", "static"):
        points = [(s, book.scores("S2-b", name(net, s, how, "trained"))) for s in SPARSITIES]
        panel.add(f"{how}, 30 epochs", [(s, 100 * sum(v) / len(v)) for s, v in points if v])
    for how in ("dynamic", "static"):
        panel.add(f"{how}, literature", list(LITERATURE[how].items()), hollow=True, dashed=True)
    return lines + ["", book.draw("S2-b", plot)]


def said(book, quick):
    """Two points as Sohoni et al. state them, and the records of them."""
    def lost(net, sparsity):
        dense, sparse = (book.scores("S2-b", name(net, s, "dynamic", "trained"), net.metric)
                         for s in (0, sparsity))
        scale, unit = (100, " %") if net.metric == "test_accuracy" else (1, " BLEU")
        if not dense or not sparse:
            return NOT_RUN
        return f"{scale * (statistics.mean(sparse) - statistics.mean(dense)):+.2f}{unit}"
    return ("**Sohoni et al.**, dynamic: -0.3 % at 70 % on WRN-28-2, -0.8 BLEU at 60 % on "
            f"DynamicConv. **Here**, by the tables: {lost(image_net(quick), 70)} and "
            f"{lost(TRANSLATION, 60)}.")
