"""The cost of less memory: WRN-28-2, batch 100, on the CPU, predicted against measured.

usage: remat.py --thimble build/release/thimble [--model wrn-28-2] [--batch 100] [--rounds 5]
                [--steps 3] [--seconds 60] [--json FILE]

Calibrates first, then trains with everything kept and at 1/2, 1/4 and 1/6 of that arena. A budget
below the smallest plan is replaced by it. Rounds alternate between all of
them, so that a busy machine slows all. Extra time is a step's over that of the step that keeps
everything. Fastest steps are compared, as calibrate takes the fastest run of a kernel; medians stand
beside them, and a median far above says that the machine was busy. Exits 1 when a predicted step
time, or its ratio to keeping everything, is more than 15 % from the measured one.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

FRACTIONS = [("1/2", 2), ("1/4", 4), ("1/6", 6)]
TOLERANCE = 0.15
WARM_UP = 2  # steps of every run that do not count


class Thimble:
    def __init__(self, arguments, folder):
        self.program = arguments.thimble
        self.step = [arguments.model, "--batch", str(arguments.batch), "--threads",
                     str(arguments.threads), "--weight-decay", "5e-4", "--data", "generated"]
        self.folder = folder
        self.costs = os.path.join(folder, "costs.json")

    def __call__(self, command, *more, may_fail=False):
        words = [self.program, command, *self.step, "--costs", self.costs, *more, "--json"]
        done = subprocess.run(words, capture_output=True, text=True)
        infeasible = may_fail and done.returncode == 3
        if done.returncode != 0 and not infeasible:
            sys.exit(f"{' '.join(words)}\n{done.stderr}")
        return json.loads(done.stdout)

    def plan(self, budget):
        """The plan within `budget` bytes; if there is none, within the least that has one."""
        plan = self("plan", "--memory", str(budget), "--fit", "off", may_fail=True)
        if "infeasible" not in plan:
            return plan
        return self("plan", "--memory", str(plan["min_bytes"]), "--fit", "off")

    def train(self, case, steps):
        """Times of the steps that count, in ms."""
        memory = ["--memory", str(case["budget"]), "--fit", "off"] if case["budget"] else []
        result = self("train", *memory, "--steps", str(WARM_UP + steps), "--save-every", "0",
                      "--no-eval", "--times", "--overwrite", "--out",
                      os.path.join(self.folder, "run"))
        assert result["measured_arena_bytes"] == case["plan"]["arena_bytes"]
        return result["times_ms"][WARM_UP:]


def plan_cases(thimble):
    everything = thimble("plan")
    cases = [{"name": "keep_all", "budget": None, "plan": everything}]
    for name, divisor in FRACTIONS:
        asked = everything["arena_bytes"] // divisor
        plan = thimble.plan(asked)
        if plan["arena_bytes"] > asked:
            print(f"{name} of keep_all is {asked} bytes; the least that has a plan is "
                  f"{plan['arena_bytes']}")
            name = "least"
        if all(plan["arena_bytes"] != case["plan"]["arena_bytes"] for case in cases):
            cases.append({"name": name, "budget": max(asked, plan["arena_bytes"]), "plan": plan})
    return cases


def judge(cases):
    """Adds measured figures and whether each prediction was close; returns whether all were."""
    base = cases[0]
    for case in cases:
        case["predicted_ms"] = case["plan"]["predicted_step_ms"]
        case["measured_ms"] = min(case["times_ms"])
        case["median_ms"] = statistics.median(case["times_ms"])
        case["error"] = case["predicted_ms"] / case["measured_ms"] - 1
        case["predicted_extra"] = case["predicted_ms"] / base["predicted_ms"] - 1
        case["measured_extra"] = case["measured_ms"] / base["measured_ms"] - 1
        case["ratio_error"] = (1 + case["predicted_extra"]) / (1 + case["measured_extra"]) - 1
        case["close"] = max(abs(case["error"]), abs(case["ratio_error"])) <= TOLERANCE
    return all(case["close"] for case in cases)


def print_table(cases):
    print(f"{'arena':<10}{'MiB':>9}{'predicted ms':>14}{'fastest ms':>12}{'median ms':>11}"
          f"{'error':>8}{'predicted extra':>17}{'measured extra':>16}{'error':>8}")
    for case in cases:
        print(f"{case['name']:<10}{case['plan']['arena_bytes'] / 2**20:>9.1f}"
              f"{case['predicted_ms']:>14.1f}{case['measured_ms']:>12.1f}"
              f"{case['median_ms']:>11.1f}{case['error']:>+8.1%}{case['predicted_extra']:>+17.1%}"
              f"{case['measured_extra']:>+16.1%}{case['ratio_error']:>+8.1%}"
              f"{'' if case['close'] else '   beyond 15 %'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thimble", default="build/release/thimble")
    parser.add_argument("--model", default="wrn-28-2")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--threads", type=int, default=0, help="0: one per core")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3, help="that count, of a run")
    parser.add_argument("--seconds", type=float, default=60, help="for calibrating")
    parser.add_argument("--json", help="also write all figures to this file")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        thimble = Thimble(arguments, folder)
        measured = thimble("calibrate", "--seconds", str(arguments.seconds))
        print(f"{measured['machine']}: {measured['measured_kernels']} of {measured['kernels']} "
              f"kernels measured in {measured['seconds']:.0f} s", flush=True)
        cases = plan_cases(thimble)
        for r in range(arguments.rounds):
            for case in cases:
                times = thimble.train(case, arguments.steps)
                case.setdefault("times_ms", []).extend(times)
                case["round_ms"] = statistics.median(times)
            print(f"round {r + 1}: " + "   ".join(f"{case['name']} {case['round_ms']:.1f} ms"
                                                  for case in cases), flush=True)
    close = judge(cases)
    print(f"{arguments.model}, batch {arguments.batch}, fp32; {cases[0]['plan']['costs']}")
    print_table(cases)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(cases, file, indent=1)
    return 0 if close else 1


if __name__ == "__main__":
    sys.exit(main())
