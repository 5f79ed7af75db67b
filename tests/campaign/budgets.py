"""Budgets are obeyed, monotone and change no bit, under a hard limit on the process's memory.

usage: budgets.py THIMBLE [--count 28] [--budgets 10] [--seconds 900] [--seed 1]
For `--count` random recipes, `--budgets` budgets from the least that a planner needs to what keeping
everything takes. Each trains two steps under a limit of arena + 48 MiB on private writable memory
(RLIMIT_DATA: heap, stacks, anonymous mappings, and what libraries write to themselves). Checked:
the arena is within the budget and measured as planned, more memory is never predicted slower, and all
budgets of a recipe end in the same weights.
"""
import random
import resource
import sys
import time

from parts import arguments_of, finish
from program import MIB

AROUND = 48 * MIB  # what the process may have beside its arena


def random_recipe(rng):
    net, size, batch = rng.choice([
        ("mlp", ["--layers", str(rng.randint(1, 5)), "--hidden", str(rng.choice([8, 33, 100]))], 32),
        ("wrn-10-1", ["--norm", rng.choice(["batch", "group", "carried"])], 8),
        ("wrn-16-1", ["--dropout", rng.choice(["0", "0.2"])], 4),
        ("unet", ["--layers", str(rng.randint(1, 2)), "--hidden", str(rng.choice([3, 8]))], 8),
        ("lstm", ["--layers", str(rng.randint(1, 3)), "--hidden", "24",
                  "--length", str(rng.choice([5, 16])),
                  "--steps-at-once", str(rng.choice([1, 4]))], 8),
        ("resnet:[1,2,1,1]", ["--hidden", "16", "--image", "32,32,3", "--classes", "7"], 4)])
    words = [net, *size, "--batch", str(rng.randint(2, batch)), "--threads", "1",
             "--seed", str(rng.randint(1, 99))]
    words += rng.choice([["--optimizer", name] for name in
                         ("sgd", "nesterov", "adam", "adamw", "adafactor")])
    for more in (["--label-smoothing", "0.1"], ["--clip-norm", "1"], ["--weight-decay", "1e-3"],
                 ["--precision", "bf16"], ["--codec", "mask"]):
        if rng.random() < 0.25:
            words += more
    rows = int(words[words.index("--batch") + 1])
    # Of a last microbatch of one row, resnet's last stage would normalise one pixel: refused.
    single = net.startswith("resnet") and rows % 2 == 1
    if rng.random() < 0.2 and rows != 2 and not single:
        words += ["--microbatch", "2"]
    return words


def run(program, report, count=28, budgets=10, seconds=900, seed=1):
    until = time.monotonic() + seconds
    tried = 0
    for number in range(count):
        if time.monotonic() > until:
            report.skip(f"out of time after {number} of {count} recipes")
            break
        rng = random.Random(f"{seed} {number}")
        words = random_recipe(rng)
        command = program.command(words, "plan")
        ends = []
        for budget in (["--memory", "least", "--fit", "off"], ["--planner", "optimal"]):
            outcome = program.run(["plan", *words, *budget, "--json"], seconds=60)
            if not report.check(outcome.code == 0, f"{outcome.ending()}; {outcome.last_words()}",
                                command):
                break
            ends.append(outcome.json()["arena_bytes"])
        if len(ends) < 2:
            continue
        least, most = ends
        wanted = sorted({least + (most - least) * i // (budgets - 1) for i in range(budgets)})
        slower, shas = None, {}
        for budget in wanted:
            limited = [*words, "--memory", str(budget), "--fit", "off", "--steps", "2", "--no-eval",
                       "--save-every", "0", "--out", str(program.folder / "out"), "--overwrite"]
            command = program.command(limited, "train")
            outcome = program.run(["train", *limited, "--json"], seconds=60, memory=None,
                                  limits={resource.RLIMIT_DATA: budget + AROUND})
            if not report.check(outcome.code == 0, f"recipe {number}: {outcome.ending()}; "
                                f"{outcome.last_words()}", command):
                continue
            result = outcome.json()
            tried += 1
            report.check(result["arena_bytes"] <= budget,
                         f"recipe {number}: an arena of {result['arena_bytes']} bytes in {budget}",
                         command)
            report.check(result["measured_arena_bytes"] == result["arena_bytes"],
                         f"recipe {number}: measured {result['measured_arena_bytes']} of "
                         f"{result['arena_bytes']} bytes", command)
            predicted = result["predicted_step_ms"]
            # Times add up in another order for another schedule: equal to rounding.
            report.check(slower is None or predicted <= slower * (1 + 1e-9),
                         f"recipe {number}: {predicted} ms in {budget} bytes, {slower} in fewer",
                         command)
            slower = predicted
            shas.setdefault(result["weights_sha256"], budget)
        report.check(len(shas) <= 1, f"recipe {number}: {len(shas)} different results, first at "
                     f"{sorted(shas.values())} bytes", command)
    print(f"  {tried} budgets", flush=True)


if __name__ == "__main__":
    arguments = arguments_of(__doc__, count=28, budgets=10, seconds=900.0, seed=1)
    sys.exit(finish("budgets", run, arguments))
