"""Runs killed at random moments and resumed end in the bits of one that was left alone.

usage: kill_loop.py THIMBLE [--count 100] [--seconds 900] [--seed 1]

SIGKILL comes anywhere between the start and the end of a run that saves every few steps. `--count`
kills over runs of several kinds in turn. Compared: weights_sha256, optimizer.safetensors byte for
byte, and that nothing but the last checkpoint is left in the folder.
"""
import random
import subprocess
import sys
import time

from parts import arguments_of, finish

SAVES = ["--threads", "1", "--no-eval", "--save-every", "0.1"]
KINDS = [
    ["mlp", "--steps", "600", "--batch", "16", "--dropout", "0.3", "--optimizer", "adam"],
    ["lstm", "--steps", "250", "--batch", "16", "--hidden", "16", "--length", "8", "--layers", "1"],
    ["wrn-10-1", "--steps", "60", "--batch", "16", "--augment", "--dropout", "0.1",
     "--label-smoothing", "0.1"],
    ["mlp", "--steps", "600", "--batch", "16", "--density", "0.5", "--reallocate-every", "7"],
    ["mlp", "--steps", "600", "--batch", "16", "--precision", "fp16", "--loss-scale-interval", "20",
     "--state-bits", "8"],
]


def left_over(folder):
    """Entries of a run's folder beside its last checkpoint, and beside what is hidden there on purpose."""
    last = (folder / "latest").resolve().name
    return sorted(path.name for path in folder.iterdir()
                  if path.name.startswith(("step-", ".step-")) and path.name != last)


def run(program, report, count=100, seconds=900, seed=1):
    rng = random.Random(seed)
    until = time.monotonic() + seconds
    kills, number = 0, 0
    undisturbed = {}
    while kills < count and time.monotonic() < until:
        kind = number % len(KINDS)
        words = [*KINDS[kind], *SAVES]
        if kind not in undisturbed:
            whole = program.folder / f"whole-{kind}"
            began = time.monotonic()
            result = program.train([*words, "--out", str(whole)], seconds=120)
            undisturbed[kind] = (result["weights_sha256"], whole, time.monotonic() - began)
        sha, whole, length = undisturbed[kind]
        folder = program.folder / f"killed-{number}"
        words += ["--out", str(folder), "--json"]
        mine, resumed = 0, None
        while resumed is None:
            again = ["--resume"] if (folder / "latest").exists() else ["--overwrite"]
            process = program.start(["train", *words, *again], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE)
            # Each run is killed a few times, then left to end.
            patience = rng.uniform(0, 0.7 * length) if mine < 8 and kills < count else 120
            try:
                out, err = process.communicate(timeout=patience)
                resumed = (process.returncode, out, err)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                if patience == 120:
                    break
                mine, kills = mine + 1, kills + 1
        number += 1
        command = program.command(words, "train")
        what = f"after {mine} kills, seed {seed}, run {number}"
        if resumed is None or resumed[0] != 0:
            report.check(False, f"does not end well {what}: "
                         f"{resumed and (resumed[0], resumed[2][-200:])}", command)
            continue
        report.check(sha.encode() in resumed[1], f"other weights {what}", command)
        name = "latest/optimizer.safetensors"
        report.check((folder / name).read_bytes() == (whole / name).read_bytes(),
                     f"other optimizer state {what}", command)
        report.check(not left_over(folder), f"left behind {what}: {left_over(folder)}", command)
    print(f"  {kills} kills in {number} runs", flush=True)
    if kills < count:
        report.skip(f"out of time after {kills} of {count} kills")


if __name__ == "__main__":
    arguments = arguments_of(__doc__, count=100, seconds=900.0, seed=1)
    sys.exit(finish("kills", run, arguments))
