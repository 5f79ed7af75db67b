"""S2-d: accuracy against microbatch, each norm."""
from book import megabytes, table
from cells import plan, training
from nets import image_net, techniques
from plot import Axis, Plot

TITLE = "Microbatches"
NORMS = ("batch", "group", "carried")
ORDER = (100, 10, 20, 50, 5, 2)  # of running: the small ones take longest


def name(net, microbatch, norm, what):
    return f"{net.title}, microbatch {microbatch}, {norm} norm, {what}"


def flags(net, microbatch, norm):
    return techniques(net, microbatch=microbatch if microbatch < net.microbatches[0] else None,
                      norm=norm if norm != "batch" else None)


def cells(quick=False):
    net = image_net(quick)
    found = []
    for what in ("planned", "trained"):
        for microbatch in net.microbatches if quick else ORDER:
            for norm in NORMS:
                title, words = name(net, microbatch, norm, what), flags(net, microbatch, norm)
                found.append(plan("S2-d", title, (*net.planned, *words)) if what == "planned"
                             else training("S2-d", title, net, words))
    return found


def page(book, quick=False):
    net = image_net(quick)
    rows = []
    for microbatch in net.microbatches:
        row = [microbatch, book.say("S2-d", name(net, microbatch, "batch", "planned"),
                                    lambda f: megabytes(f["arena_bytes"]))]
        for norm in NORMS:
            row.append(book.score("S2-d", name(net, microbatch, norm, "trained"), net))
        rows.append([*row, book.command("S2-d", name(net, microbatch, "batch", "trained"))])
    plot = Plot("Accuracy against microbatch, 30 epochs", Axis("rows of a microbatch", log=True))
    panel = plot.panel(Axis("test accuracy, %"))
    for norm in NORMS:
        points = [(m, book.scores("S2-d", name(net, m, norm, "trained"))) for m in net.microbatches]
        panel.add(f"{norm} norm", [(m, 100 * sum(v) / len(v)) for m, v in points if v])
    return [f"{net.title}, batch 100, fp32, everything kept of one microbatch; arena with `--norm "
            "batch`, planned on the null device; "
            "trained for 30 epochs as in S2-b. Sohoni et al.: microbatches of 10 lose nothing, "
            "much smaller ones do.", "",
            *table(["microbatch", "arena", *(f"{norm} norm" for norm in NORMS),
                    "command (batch norm)"], rows), "", book.draw("S2-d", plot)]
