"""S2-a: what a step's memory consists of: model, optimizer, activations."""
from book import NOT_RUN, megabytes, table
from cells import Cell
from nets import NULL, TRANSLATION, image_net

TITLE = "Model, optimizer, activations"


def nets(quick):
    return (image_net(quick), TRANSLATION)


def cells(quick=False):
    return [Cell("S2-a", net.title, "profile", (*net.planned, *NULL)) for net in nets(quick)]


def page(book, quick=False):
    rows = []
    for net in nets(quick):
        figures = book.figures("S2-a", net.title)
        if not figures:
            rows.append([net.title, *[NOT_RUN] * 4, NOT_RUN])
            continue
        base = figures["techniques"]["baseline"]
        total = base["total_bytes"]
        parts = (base[part] for part in ("model_bytes", "optimizer_bytes", "activation_bytes"))
        shares = [f"{megabytes(part)} ({100 * part / total:.1f} %)" for part in parts]
        rows.append([net.title, *shares, megabytes(total), book.command("S2-a", net.title)])
    return ["Sohoni et al. 2019: model = weights, optimizer = gradients and momentum, activations "
            "= what is kept for the backward "
            "pass; fp32, relu in place, counted on the graph ([how](../cli.md#thimble-profile)). "
            "The paper prints no megabytes; "
            "what it says is that activations dominate.", "",
            *table(["net", "model", "optimizer", "activations", "together", "command"], rows)]
