"""The savings and costs of every technique, alone and combined: WRN-28-2, batch 100, on the CPU.

usage: techniques.py --thimble build/release/thimble [--quick] [--data-dir CIFAR10_FOLDER]
                     [--rounds 3] [--steps 20] [--threads 0] [--only "NAME;..."] [--json FILE]
Trains the same net from the same seed with each technique. Rounds alternate between all of them, so
that a busy machine slows all. A row's time is its fastest step's, set against that of fp32 with
everything kept in the same run. The loss is the mean over the last quarter of the steps, on data that
every row sees in the same order: CIFAR-10 where its folder is given, else the generated set. --quick
trains a small net on the built-in digits, in a minute or two. Exits 1 when a run measures another
arena than was planned, or when a loss is not finite.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

WARM_UP = 2  # steps of every run whose times do not count

BASELINE = "fp32, everything kept"
# Heavy ball in all rows, since folding wants it.
TECHNIQUES = [
    (BASELINE, []),
    ("fp16", ["--precision", "fp16"]),
    ("bf16", ["--precision", "bf16"]),
    ("bf16, kahan rounding", ["--precision", "bf16", "--rounding", "kahan"]),
    ("microbatch", ["--microbatch", "{microbatch}"]),
    ("density 0.3, dynamic", ["--density", "0.3"]),
    ("folded gradients", ["--fold"]),
    ("8-bit state", ["--state-bits", "8"]),
    ("codec fp16", ["--codec", "fp16"]),
    ("codec int8", ["--codec", "int8"]),
    ("codec int4", ["--codec", "int4"]),
    ("recomputation, half", ["--memory", "{half}", "--fit", "off"]),
    ("recomputation, floor", ["--memory", "least", "--fit", "off"]),
    ("combined", ["--precision", "bf16", "--microbatch", "{microbatch}", "--density", "0.3",
                  "--fold"]),
    ("combined, floor", ["--precision", "bf16", "--microbatch", "{microbatch}", "--density", "0.3",
                         "--fold", "--memory", "least", "--fit", "off"]),
]


class Bench:
    def __init__(self, arguments, folder):
        self.program = arguments.thimble
        self.steps = arguments.steps
        self.out = os.path.join(folder, "run")
        model, batch, data = "wrn-28-2", 100, ["--data", "generated"]
        if arguments.quick:
            model, batch, data = "wrn-10-1", 60, ["--data", "digits"]
        elif arguments.data_dir:
            data = ["--data", "cifar10", "--data-dir", arguments.data_dir, "--augment"]
        self.title = f"{model}, batch {batch}, {data[1]}"
        self.microbatch = batch // 10
        self.base = [model, "--batch", str(batch), "--optimizer", "sgd", "--weight-decay", "5e-4",
                     "--threads", str(arguments.threads), "--costs", "modelled"]
        self.data = data
        # `--augment` is of train alone.
        self.plan_data = data[:2] if "--data-dir" not in data else data[:4]

    def __call__(self, command, *more, may_fail=False):
        words = [self.program, command, *self.base, *more, "--json"]
        done = subprocess.run(words, capture_output=True, text=True)
        infeasible = may_fail and done.returncode == 3
        if done.returncode != 0 and not infeasible:
            sys.exit(f"{' '.join(words)}\n{done.stderr}")
        return json.loads(done.stdout)

    def plan(self, flags):
        return self("plan", *self.plan_data, *flags, may_fail=True)

    def train(self, case):
        moves = ["--reallocate-every", "5"] if "--density" in case["flags"] else []
        result = self("train", *self.data, *case["flags"], *moves, "--steps", str(self.steps),
                      "--lr", "0.05", "--schedule", "constant", "--save-every", "0", "--no-eval",
                      "--times", "--losses", "--overwrite", "--out", self.out)
        case["faults"] += result["measured_arena_bytes"] != case["plan"]["arena_bytes"]
        case["faults"] += not all(math.isfinite(loss) for loss in result["losses"])
        case["loss"] = statistics.mean(result["losses"][-max(1, self.steps // 4):])
        case.setdefault("times_ms", []).extend(result["times_ms"][WARM_UP:])


def make_cases(bench, only):
    whole = bench.plan([])
    values = {"microbatch": bench.microbatch, "half": whole["arena_bytes"] // 2}
    cases = []
    for name, flags in TECHNIQUES:
        if only and name != BASELINE and name not in only:
            continue
        flags = [word.format(**values) for word in flags]
        if name == "microbatch":
            name += f" {bench.microbatch}"
        plan = bench.plan(flags)
        if "infeasible" in plan:
            print(f"{name}: left out, the least that has a plan is {plan['min_bytes']} bytes")
            continue
        cases.append({"name": name, "flags": flags, "plan": plan, "faults": 0})
    return cases


def judge(cases):
    base = cases[0]
    for case in cases:
        plan = case["plan"]
        case["arena_bytes"] = plan["arena_bytes"]
        case["ratio"] = base["plan"]["arena_bytes"] / plan["arena_bytes"]
        case["extra_flops"] = plan["flops"] / base["plan"]["flops"] - 1
        case["fastest_ms"] = min(case["times_ms"])
        case["median_ms"] = statistics.median(case["times_ms"])
        case["time_ratio"] = case["fastest_ms"] / min(base["times_ms"])
        case["median_time_ratio"] = case["median_ms"] / statistics.median(base["times_ms"])
        case["tier"] = plan["tier"]


def print_table(cases):
    print(f"{'technique':<24}{'arena bytes':>14}{'saves':>8}{'extra FLOPs':>13}{'fastest ms':>12}"
          f"{'time':>8}{'median':>8}{'loss':>9}  tier")
    for case in cases:
        print(f"{case['name']:<24}{case['arena_bytes']:>14}{case['ratio']:>7.2f}x"
              f"{case['extra_flops']:>+13.1%}{case['fastest_ms']:>12.1f}{case['time_ratio']:>7.2f}x"
              f"{case['median_time_ratio']:>7.2f}x{case['loss']:>9.4f}  {case['tier']}"
              f"{'   arena or loss is wrong' if case['faults'] else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thimble", default="build/release/thimble")
    parser.add_argument("--quick", action="store_true", help="a small net on the built-in digits")
    parser.add_argument("--data-dir", help="folder of CIFAR-10 in its binary form")
    parser.add_argument("--rounds", type=int, help="3; --quick: 2")
    parser.add_argument("--steps", type=int, help="of a run: 20; --quick: 120")
    parser.add_argument("--threads", type=int, default=0, help="0: one per core")
    parser.add_argument("--only", help="these rows, besides the first; joined by ;")
    parser.add_argument("--json", help="also write all figures to this file")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (2 if arguments.quick else 3)
    arguments.steps = arguments.steps or (120 if arguments.quick else 20)
    if arguments.steps <= WARM_UP:
        parser.error(f"--steps must be above the {WARM_UP} that do not count")
    only = arguments.only.split(";") if arguments.only else []
    unknown = set(only) - {name for name, _ in TECHNIQUES}
    if unknown:
        parser.error(f"--only knows no {sorted(unknown)}; rows are: "
                     + "; ".join(name for name, _ in TECHNIQUES))

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, folder)
        cases = make_cases(bench, only)
        for r in range(arguments.rounds):
            for case in cases:
                bench.train(case)
            print(f"round {r + 1} of {arguments.rounds} done; "
                  f"{BASELINE}: {min(cases[0]['times_ms']):.1f} ms", flush=True)
    judge(cases)
    print(f"{bench.title}; {arguments.rounds} rounds of {arguments.steps} steps")
    print_table(cases)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(cases, file, indent=1)
    return 1 if any(case["faults"] for case in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
