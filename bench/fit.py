"""One budget against everything that could be typed: 12 budgets from keeping everything to the least, at
every tier, for large nets. Each must be obeyed, monotone in time, found within ten seconds of one core, and as
fast as every named planner and every technique alone within the same budget.

usage: fit.py PROGRAM [--nets NAME,...] [--tiers NAME,...] [--budgets N] [--vit FILE]
              [--lines FILE.jsonl] [--out FILE.md] [--minutes M] [--rivals off]

Only plans, with modelled times: nothing runs. Seconds are of processor time, so that a busy machine
does not count. A question that was asked is a line of --lines and is not asked again, so tables fill over several
sittings; remove the file when the program plans otherwise. Exits 1 when a promise is broken.
"""
import argparse
import json
import pathlib
import resource
import subprocess
import sys
import time

NETS = {  # name: heading, words
    "wrn": ("WRN-28-2, batch 100", ["wrn-28-2", "--batch", "100"]),
    "wrn-group": ("WRN-28-2, batch 100, group norm, sgd",
                  ["wrn-28-2", "--batch", "100", "--norm", "group", "--optimizer", "sgd"]),
    "resnet": ("ResNet-101, batch 32 at 224", ["resnet-101", "--batch", "32"]),
    "lstm": ("LSTM, 1,000 time steps", ["lstm", "--length", "1000"]),
    "gpt2": ("GPT-2 124M, batch 8 x 1,024", ["gpt2-124m", "--batch", "8", "--optimizer", "adamw"]),
    "dynamicconv": ("DynamicConv, 4,000 tokens",
                    ["dynamicconv-iwslt", "--tokens", "4000", "--optimizer", "adam"]),
    "vit": ("An imported ViT", ["VIT", "--batch", "16"]),  # with --vit FILE
}
TIERS = ("exact", "equivalent", "approximate")
SLOWEST = 10.0  # seconds of one core
NEAR_TIE = 1.05  # that the more faithful may take
PLANNERS = ("none", "inplace", "sharing", "keep_all", "drop_cheap", "chen_budget", "sqrt_segments",
            "log_recursive", "mirror", "optimal")
BY_BUDGET = ("chen_budget", "sqrt_segments", "mirror", "optimal")  # choose among several plans
SINGLES = {
    "exact": [["--codec", "mask"]],
    "equivalent": [["--microbatch", "{2}"], ["--microbatch", "{4}"], ["--microbatch", "{10}"],
                   ["--microbatch", "1"], ["--microbatch-tokens", "{t2}"],
                   ["--microbatch-tokens", "{t4}"], ["--fold"]],
    "approximate": [["--precision", "bf16", "--rounding", "stochastic"],
                    ["--precision", "bf16", "--master"],
                    ["--precision", "fp16", "--rounding", "stochastic"], ["--state-bits", "8"],
                    ["--codec", "fp16"], ["--codec", "int8"], ["--codec", "int4"],
                    ["--codec", "int2"], ["--density", "0.5"], ["--density", "0.3"],
                    ["--density", "0.1"]],
}


class OutOfTime(Exception):
    pass


class Program:
    """Answers of `thimble plan`, each asked once: a line of the file is an answer."""

    def __init__(self, path, lines, minutes):
        self.path = path
        self.lines = lines and pathlib.Path(lines)
        self.until = time.monotonic() + 60 * minutes
        self.known = {}
        if self.lines and self.lines.exists():
            for line in self.lines.read_text().splitlines():
                answer = json.loads(line)
                self.known[answer["plan"]] = answer

    def ask(self, *words):
        key = " ".join(words)
        if key in self.known:
            return self.known[key]
        left = self.until - time.monotonic()
        if left <= 0:
            raise OutOfTime
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run([self.path, "plan", *words, "--threads", "1", "--costs", "modelled",
                                   "--json"], capture_output=True, text=True, timeout=left)
        except subprocess.TimeoutExpired:
            raise OutOfTime from None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
        answer = {"plan": key, "code": done.returncode, "seconds": round(seconds, 2)}
        if done.returncode == 0:
            said = json.loads(done.stdout)
            answer["arena"] = said["arena_bytes"]
            answer["ms"] = said["predicted_step_ms"]
            if "fit" in said:
                answer["chosen"] = [choice["flags"] for choice in said["fit"]["choices"]]
                answer["planned"] = said["fit"]["steps_planned"]
        elif done.returncode not in (2, 3):
            raise SystemExit(f"thimble plan {key}: exit code {done.returncode}\n{done.stderr}")
        self.known[key] = answer
        if self.lines:
            with self.lines.open("a") as file:
                file.write(json.dumps(answer) + "\n")
        return answer


def number_after(net, flag):
    return int(net[net.index(flag) + 1]) if flag in net else 0


def singles_of(tier, net):
    batch, tokens = number_after(net, "--batch"), number_after(net, "--tokens")
    amounts = {"2": batch // 2, "4": batch // 4, "10": batch // 10, "t2": tokens // 2, "t4": tokens // 4}
    for name in TIERS[:TIERS.index(tier) + 1]:
        for words in SINGLES[name]:
            filled = [word if word[0] != "{" else str(amounts[word[1:-1]]) for word in words]
            if "0" not in filled and not ("--microbatch" in filled and batch == 0):
                yield filled


def rivals(program, net, tier, budget, limit):
    """(ms, words) of what could be typed in place of the budget alone, where it might beat `limit`."""
    found = []
    for planner in PLANNERS:
        words = ["--planner", planner]
        within = ["--memory", str(budget)] if planner in BY_BUDGET else []
        found.append((program.ask(*net, *words, *within), words))
    for words in singles_of(tier, net):
        whole = program.ask(*net, *words, "--allow", tier)
        if whole["code"] != 0 or whole["ms"] >= limit:
            continue  # refused, or slower even with everything kept
        if whole["arena"] > budget:
            whole = program.ask(*net, *words, "--allow", tier, "--memory", str(budget), "--fit", "off")
        found.append((whole, words))
    return [(answer["ms"], " ".join(words)) for answer, words in found
            if answer["code"] == 0 and answer["arena"] <= budget]


def measure(program, net, tier, asked):
    """Rows of the table and broken promises, as far as there is time."""
    rows, faults = [], []
    try:
        kept = program.ask(*net)
        least = program.ask(*net, "--allow", tier, "--memory", "least")
        most, floor = kept["arena"], least["arena"]
        before = None
        for i in range(asked.budgets):
            budget = max(floor, round(most * (floor / most) ** (i / (asked.budgets - 1))))
            answer = program.ask(*net, "--allow", tier, "--memory", str(budget))
            where = f"{' '.join(net)} --allow {tier} --memory {budget}"
            if answer["code"] != 0:
                faults.append(f"{where}: no plan")
                continue
            if answer["arena"] > budget:
                faults.append(f"{where}: {answer['arena']} bytes")
            if before and answer["ms"] < before["ms"] * (1 - 1e-9):
                faults.append(f"{where}: {answer['ms']:.1f} ms, less than a larger budget's "
                              f"{before['ms']:.1f}")
            if answer["seconds"] > SLOWEST:
                faults.append(f"{where}: searched for {answer['seconds']:.1f} s")
            before = answer
            row = {"budget": budget, "ratio": answer["ms"] / kept["ms"], "best": None, **answer}
            rows.append(row)
            if asked.rivals == "off":
                continue
            row["best"] = min(rivals(program, net, tier, budget, answer["ms"]), key=lambda rival: rival[0],
                              default=(float("inf"), ""))
            if answer["ms"] > row["best"][0] * NEAR_TIE * (1 + 1e-9):
                faults.append(f"{where}: {answer['ms']:.1f} ms, and {row['best'][1]} takes "
                              f"{row['best'][0]:.1f}")
    except OutOfTime:
        pass
    return rows, faults


def table(rows):
    lines = ["| budget, MB | arena, MB | predicted ms | of keeping all | best typed by hand | chosen | search, s |",
             "|---|---|---|---|---|---|---|"]
    for row in rows:
        hand = "not asked"
        if row["best"]:
            hand = f"{row['best'][0]:,.1f} (`{row['best'][1]}`)" if row["best"][1] else "none fits"
        chosen = "; ".join(row.get("chosen", [])) or "nothing"
        lines.append(f"| {row['budget'] / 1e6:,.2f} | {row['arena'] / 1e6:,.2f} | {row['ms']:,.1f} | "
                     f"{row['ratio']:.3f} | {hand} | `{chosen}` | {row['seconds']:.1f} |")
    return lines


HEAD = """# One budget

`bench/fit.py` (`make bench-fit`): budgets from keeping everything down to the least, evenly spaced in their logarithm, at every tier; modelled times
of one CPU thread, so that the page can be made anywhere. The best typed by hand is the fastest within the budget of every planner and of every technique alone, each with `optimal` recomputation.
The planners are {planners}. The techniques are masks, microbatches of a half, a quarter, a tenth and one row, folding, 16 bits in three
ways, 8-bit state, four codecs and three densities. A choice may take up to 1.05 times as long where it is more faithful. Search is processor
time of the whole command. No time falls as budgets do.
"""


def write_page(path, parts):
    """Writes the parts above the mark. The text below it is written by people, and stays."""
    mark = "<!-- tables above: bench/fit.py -->"
    page = pathlib.Path(path)
    rest = page.read_text().split(mark, 1)[1] if page.exists() and mark in page.read_text() else "\n"
    page.write_text("\n".join(parts) + "\n" + mark + rest)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--tiers", default=",".join(TIERS))
    parser.add_argument("--budgets", type=int, default=12)
    parser.add_argument("--vit", help="a network from outside, to be imported")
    parser.add_argument("--lines")
    parser.add_argument("--out")
    parser.add_argument("--minutes", type=float, default=1e4)
    parser.add_argument("--rivals", choices=("on", "off"), default="on")
    asked = parser.parse_args()
    program = Program(asked.program, asked.lines, asked.minutes)
    parts = [HEAD.format(planners=", ".join(f"`{name}`" for name in PLANNERS))]
    faults = []
    for name in asked.nets.split(","):
        heading, net = NETS[name]
        if "VIT" in net and not asked.vit:
            continue
        net = [asked.vit if word == "VIT" else word for word in net]
        for tier in asked.tiers.split(","):
            rows, found = measure(program, net, tier, asked)
            faults += found
            counted = "" if len(rows) == asked.budgets else f": {len(rows)} of {asked.budgets} budgets"
            if rows:
                parts += [f"## {heading}, {tier}{counted}", "",
                          f"`thimble plan {' '.join(net)} --allow {tier} --memory BYTES --threads 1 "
                          "--costs modelled`", "", *table(rows), ""]
            print(f"{heading}, {tier}: {len(rows)} budgets, {len(found)} faults", file=sys.stderr,
                  flush=True)
            if asked.out:
                write_page(asked.out, parts)
    if not asked.out:
        print("\n".join(parts))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
