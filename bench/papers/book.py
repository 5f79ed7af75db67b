"""The material of a page: records by cell, figures as text, tables, plots."""
import math
import os
import statistics

from cells import command

NOT_RUN = "not run"
FIXED = ("weights", "gradients", "optimizer", "data", "statistics", "workspace")


class Book:
    def __init__(self, records, pictures, cells):
        self.records = records
        self.commands = {(cell.experiment, cell.name): command_of(cell) for cell in cells
                         if not (cell.budget or cell.ladder or cell.family)}
        self.pictures = pictures  # folder of SVG files
        self.drawn = {}  # path -> SVG
        self.used = {}  # experiment -> records that its tables show

    def seeds(self, experiment, cell):
        """Records of a cell, one a seed."""
        found = self.records.of(experiment, cell)
        known = self.used.setdefault(experiment, [])
        known += [record for record in found if record not in known]
        return found

    def figures(self, experiment, cell):
        """Of the first seed; {} where it was not run."""
        found = self.seeds(experiment, cell)
        return found[0]["figures"] if found else {}

    def say(self, experiment, cell, write):
        """The text that `write` makes of a cell's figures, or why there are none."""
        figures = self.figures(experiment, cell)
        if not figures:
            return NOT_RUN
        if "failed" in figures:
            return "diverged" if "sittings" in figures else "refused"
        if "infeasible" in figures:
            return f"no plan below {megabytes(figures['min_bytes'])}"
        return write(figures)

    def scores(self, experiment, cell, metric="test_accuracy"):
        """A metric of every seed that has one."""
        return [r["figures"][metric] for r in self.seeds(experiment, cell)
                if metric in r["figures"]]

    def score(self, experiment, cell, net):
        """Mean over seeds of what the net is judged by, and each seed's."""
        found = self.seeds(experiment, cell)
        if not found:
            return NOT_RUN
        scale, unit = (100, " %") if net.metric == "test_accuracy" else (1, " BLEU")
        scores = [scale * score for score in self.scores(experiment, cell, net.metric)]
        if not scores:
            return "diverged"
        names = ", ".join(str(r["seed"]) for r in found)
        if len(scores) == 1:
            return f"{scores[0]:.2f}{unit} (seed {names})"
        each = ", ".join(f"{score:.2f}" for score in scores)
        return f"{statistics.mean(scores):.2f}{unit} ({each}; seeds {names})"

    def command(self, experiment, cell):
        """As it was run; before that, as it would be, where that is known."""
        found = self.seeds(experiment, cell)
        known = found[0]["command"] if found else self.commands.get((experiment, cell))
        return f"`{known}`" if known else NOT_RUN

    def draw(self, name, plot):
        """Takes a picture in; returns the line that shows it, or none where there is nothing to "
          "see."""
        if not any(series["points"] for panel in plot.panels for series in panel.series):
            return ""
        self.drawn[os.path.join(self.pictures, name + ".svg")] = plot.svg()
        return f"![{plot.title}]({os.path.basename(self.pictures)}/{name}.svg)"

    def provenance(self, experiment):
        """When, where and by which program the shown figures came about."""
        seen = {}
        for record in self.used.get(experiment, []):
            place = (record["date"], record["machine"], record["version"])
            seen[place] = seen.get(place, 0) + 1
        if not seen:
            return "Nothing run yet."
        return "\n".join(f"- {count} figure{'s' if count > 1 else ''} of {date}, {machine}, {version}"
                         for (date, machine, version), count in sorted(seen.items()))


def command_of(cell):
    where = ("--device", "cuda") if "cuda" in cell.needs else ()
    return command(cell.verb, (*cell.words, *where), cell.schedule)


def table(headers, rows):
    lines = ["| " + " | ".join(headers) + " |", "|" + "---|" * len(headers)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def feature_maps(figures):
    """Intermediate results and their gradients: the arena without weights, their gradients,
    optimizer state, statistics, data and scratch."""
    return figures["arena_bytes"] - sum(figures["bytes"][role] for role in FIXED)


def megabytes(count):
    return f"{count / 1e6:,.2f} MB" if count < 1e9 else f"{count / 1e6:,.0f} MB"


def gibibytes(count):
    return f"{count / 2**30:.2f} GiB" if count >= 2**28 else f"{count / 2**20:.1f} MiB"


def percent(ratio):
    return f"{100 * ratio:+.1f} %"


def exponent(points):
    """Of y = a * x^e through (x, y), by least squares on logarithms."""
    points = [(math.log(x), math.log(y)) for x, y in points]
    mean_x = statistics.mean(x for x, _ in points)
    mean_y = statistics.mean(y for _, y in points)
    return (sum((x - mean_x) * (y - mean_y) for x, y in points)
            / sum((x - mean_x) ** 2 for x, _ in points))
