"""S2-e: where checkpoints are placed: activations against FLOPs, all policies."""
from book import feature_maps, megabytes, percent, table
from cells import plan
from nets import TRANSLATION, image_net
from plot import Axis, Plot

TITLE = "Checkpoint placement"
PLANNERS = ("none", "inplace", "keep_all", "drop_cheap", "sqrt_segments", "chen_budget", "mirror",
            "log_recursive", "log_recursive:3")
LEAST, MOST = "optimal, least", "keep_all"
BETWEEN = (1, 2, 3, 4, 5, 6, 7)  # eighths of the way from the least to everything kept


def name(net, what):
    return f"{net.title}, {what}"


def cells(quick=False):
    found = []
    for net in (image_net(quick), TRANSLATION):
        found += [plan("S2-e", name(net, planner), (*net.planned, "--planner", planner))
                  for planner in PLANNERS]
        found.append(plan("S2-e", name(net, LEAST), (*net.planned, "--memory", "least")))
        for eighths in BETWEEN:
            ends = (name(net, MOST),) * eighths + (name(net, LEAST),) * (8 - eighths)
            found.append(plan("S2-e", name(net, f"optimal {eighths}/8"), net.planned, budget=ends))
    return found


def page(book, quick=False):
    lines = ["Planned on the null device, fp32. `optimal` has budgets between its least and "
             "everything kept, in equal ratios. "
             "Activations are intermediate results and their gradients at the peak. Sohoni et "
             "al.: up to about 5.8 times less "
             "activation memory on WRN-28-2."]
    for net in (image_net(quick), TRANSLATION):
        kept = book.figures("S2-e", name(net, MOST))
        rows = []
        for what in (*PLANNERS, *(f"optimal {n}/8" for n in reversed(BETWEEN)), LEAST):
            cell = name(net, what)
            rows.append([what, book.say("S2-e", cell, lambda f: megabytes(feature_maps(f))),
                         book.say("S2-e", cell,
                                  lambda f: f"{feature_maps(kept) / feature_maps(f):.1f}x"),
                         book.say("S2-e", cell, lambda f: megabytes(f["arena_bytes"])),
                         book.say("S2-e", cell, lambda f: percent(f["extra_flops_ratio"])),
                         book.command("S2-e", cell)])
        lines += ["", f"**{net.title}**", "",
                  *table(["policy", "activations", "saves", "arena", "extra FLOPs", "command"],
                         rows)]
        if kept:
            lines += ["", book.draw("S2-e-" + net.planned[0], picture(book, net))]
    return lines


def picture(book, net):
    def point(what):
        f = book.figures("S2-e", name(net, what))
        return [(feature_maps(f), 100 * f["extra_flops_ratio"], what)] if "bytes" in f else []

    plot = Plot(f"Activations against FLOPs, {net.planned[0]}",
                Axis("activations, bytes", log=True))
    panel = plot.panel(Axis("extra FLOPs, %"))
    panel.add("optimal", sorted(p for what in (LEAST, *(f"optimal {n}/8" for n in BETWEEN))
                                for p in point(what)))
    for planner in PLANNERS:
        panel.add(planner, point(planner), line=False)
    return plot
