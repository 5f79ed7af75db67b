"""One budget against everything that could be typed: 12 budgets from keeping everything to the least, at
every tier, for large nets. Each must be obeyed, monotone in time, found within ten seconds of one
core, and as fast as every named planner and every technique alone.

usage: fit.py PROGRAM [--nets NAME,...] [--tiers NAME,...] [--budgets N] [--out FILE.md]

Only plans, with modelled times: nothing runs. Seconds are of processor time, so that a busy machine
does not count. Exits 1 when a promise is broken.
"""
import argparse
import json
import pathlib
import resource
import subprocess
import sys

NETS = {
    "WRN-28-2, batch 100": ["wrn-28-2", "--batch", "100"],
    "WRN-28-2, group norm, sgd, batch 100": ["wrn-28-2", "--batch", "100", "--norm", "group",
                                             "--optimizer", "sgd"],
    "ResNet-101, batch 32": ["resnet-101", "--batch", "32"],
    "LSTM, 1,000 time steps": ["lstm", "--length", "1000"],
    "GPT-2 124M, batch 8 x 1,024": ["gpt2-124m", "--batch", "8", "--optimizer", "adamw"],
    "DynamicConv, 4,000 tokens": ["dynamicconv-iwslt", "--tokens", "4000", "--optimizer", "adam"],
}
TIERS = ("exact", "equivalent", "approximate")
SLOWEST = 10.0  # seconds of one core
NEAR_TIE = 1.05  # that the more faithful may take
SINGLES = {
    "exact": [[], ["--codec", "mask"]],
    "equivalent": [["--microbatch", "{half}"], ["--microbatch", "{tenth}"], ["--fold"]],
    "approximate": [["--precision", "bf16", "--rounding", "stochastic"],
                    ["--precision", "bf16", "--master"], ["--state-bits", "8"],
                    ["--codec", "int8"], ["--codec", "int4"], ["--density", "0.3"]],
}


class Program:
    def __init__(self, path):
        self.path = path

    def ask(self, *words):
        """The answer and the processor time; None where there is none."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([self.path, "plan", *words, "--threads", "1", "--costs", "modelled",
                               "--json"], capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
        if done.returncode not in (0, 3) or not done.stdout:
            return None, seconds
        return json.loads(done.stdout), seconds


def singles_of(tier, net):
    rows = {"half": 0, "tenth": 0}
    for i, word in enumerate(net):
        if word == "--batch":
            rows = {"half": max(1, int(net[i + 1]) // 2), "tenth": max(1, int(net[i + 1]) // 10)}
    for name in TIERS[:TIERS.index(tier) + 1]:
        for words in SINGLES[name]:
            filled = [w.format(**rows) for w in words]
            if "0" not in filled:
                yield filled


def rivals(program, net, tier):
    """(arena, ms, name) of everything that could be typed in place of a budget alone."""
    found = []
    for words in singles_of(tier, net):
        answer, _ = program.ask(*net, *words, "--allow", tier, "--sweep")
        for point in (answer or {}).get("points", []):
            name = " ".join(words) or point["planner"]
            found.append((point["arena_bytes"], point["predicted_step_ms"], name))
    return found


def measure(program, net, tier, budgets):
    faults, rows = [], []
    kept, _ = program.ask(*net)
    least, _ = program.ask(*net, "--allow", tier, "--memory", "least")
    most, floor = kept["arena_bytes"], least["arena_bytes"]
    others = rivals(program, net, tier)
    slower = 0.0
    for i in range(budgets):
        budget = max(floor, round(most * (floor / most) ** (i / (budgets - 1))))
        answer, seconds = program.ask(*net, "--allow", tier, "--memory", str(budget))
        where = f"{' '.join(net)} --allow {tier} --memory {budget}"
        if answer is None or "infeasible" in answer:
            faults.append(f"{where}: no plan")
            continue
        ms, arena = answer["predicted_step_ms"], answer["arena_bytes"]
        within = [(t, name) for a, t, name in others if a <= budget]
        best = min(within, default=(float("inf"), "nothing"))
        if arena > budget:
            faults.append(f"{where}: {arena} bytes")
        if ms < slower * (1 - 1e-9):
            faults.append(f"{where}: {ms} ms, less than the {slower} ms of a larger budget")
        if ms > best[0] * NEAR_TIE * (1 + 1e-9):
            faults.append(f"{where}: {ms:.1f} ms, and {best[1]} takes {best[0]:.1f}")
        if seconds > SLOWEST:
            faults.append(f"{where}: searched for {seconds:.1f} s")
        slower = ms
        chosen = "; ".join(c["flags"] for c in answer.get("fit", {}).get("choices", []))
        rows.append((budget, arena, ms, ms / kept["predicted_step_ms"], best, chosen, seconds))
    return rows, faults


def table(rows):
    lines = ["| budget, MB | arena, MB | predicted ms | of keeping all | best typed by hand | chosen | search, s |",
             "|---|---|---|---|---|---|---|"]
    for budget, arena, ms, ratio, best, chosen, seconds in rows:
        hand = f"{best[0]:.1f} ({best[1]})" if best[0] < 1e30 else "none fits"
        lines.append(f"| {budget / 1e6:,.2f} | {arena / 1e6:,.2f} | {ms:,.1f} | {ratio:.3f} | {hand} | "
                     f"`{chosen or 'nothing'}` | {seconds:.1f} |")
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--nets", default=",".join(str(i) for i in range(len(NETS))))
    parser.add_argument("--tiers", default=",".join(TIERS))
    parser.add_argument("--budgets", type=int, default=12)
    parser.add_argument("--out")
    asked = parser.parse_args()
    program = Program(asked.program)
    names = list(NETS)
    lines = ["# One budget", "",
             "`bench/fit.py`: 12 budgets from keeping everything down to the least, at every tier; modelled "
             "times of one CPU thread, so that the page can be made anywhere. The best typed by hand is the "
             "fastest within the budget of every planner and of every technique alone. Search is processor "
             "time of the whole command.", ""]
    faults = []
    for number in asked.nets.split(","):
        name = names[int(number)]
        for tier in asked.tiers.split(","):
            rows, found = measure(program, NETS[name], tier, asked.budgets)
            faults += found
            lines += [f"## {name}, {tier}", "", f"`thimble plan {' '.join(NETS[name])} --allow {tier} "
                      "--memory BYTES --threads 1 --costs modelled`", "", *table(rows), ""]
            print(f"{name}, {tier}: {len(rows)} budgets, {len(found)} faults", file=sys.stderr,
                  flush=True)
            if asked.out:
                pathlib.Path(asked.out).write_text("\n".join(lines))
    if not asked.out:
        print("\n".join(lines))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
