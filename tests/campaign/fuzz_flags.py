"""Command lines put together at random, with values at the ends of what they may be.

usage: fuzz_flags.py THIMBLE [--count 1000] [--seconds 600] [--seed 1]
"""
import random
import sys
import time

import samples
from mutate import EXTREMES
from parts import arguments_of, finish
from program import MIB

NUMBERS = ["", "010", "0x10", "1e3", "1e-320", "nan", "inf", "-inf", " 1", "1 ", "+1", "1,2", "ten",
           "0.1", "0.5", "3", "4", "8", *EXTREMES]
FLAGS = {
    **dict.fromkeys(
        ["--batch", "--microbatch", "--classes", "--layers", "--hidden", "--length", "--dropout",
         "--label-smoothing", "--momentum", "--weight-decay", "--clip-norm", "--density",
         "--prune-target", "--prune-threshold", "--seed", "--steps-at-once", "--state-bits",
         "--loss-scale", "--loss-scale-start", "--loss-scale-floor", "--streams", "--threads"],
        NUMBERS),
    "--memory": [*NUMBERS, "least", "64KiB", "1MiB", "1e3MB", "9EiB", "MiB"],
    "--image": ["8,8,1", "8,8", "", "0,8,1", "8,8,-1", "2147483647,1,1", "65536,65536,3", "1,1,1",
                "8,8,1,1", "a,b,c"],
    "--planner": ["keep_all", "optimal", "mirror", "log_recursive:3", "log_recursive:0",
                  "log_recursive:99999999999", "chen_budget", "none", "", "magic"],
    "--optimizer": ["sgd", "nesterov", "adam", "adamw", "adafactor", "", "SGD"],
    "--norm": ["batch", "group", "carried", ""],
    "--codec": ["none", "mask", "fp16", "int8", "int2", "auto", "auto:int8", "auto:", ""],
    "--precision": ["fp16", "bf16", "fp32", ""],
    "--rounding": ["nearest", "stochastic", "kahan"],
    "--sparsity": ["dynamic", "static", "magnitude"],
    "--keep": ["*", "", "[", "***a", "{", "*#*"], "--recompute": ["*", "", "[a-", "*#*"],
    "--sparse": ["*", "", "*.weight"], "--codec-only": ["*", "", "x"],
    "--allow": ["exact", "equivalent", "approximate", ""],
    "--data": ["digits", "generated", "mnist", "idx", "", "/dev/zero"],
    "--data-dir": ["", "/", "/dev/null", "x" * 5000, b"\xff"],
    "--costs": ["modelled", "auto", "", "/dev/null", "/"],
    "--device": ["cpu", "null", ""],
    "--fold": None, "--master": None, "--clip-two-pass": None, "--json": None,
}


def command_line(rng):
    """Known nets, few flags, at most two of them strange: what is refused at once finds little."""
    command = rng.choice(["plan", "plan", "plan", "train", "profile"])
    net = rng.choice(samples.NETS)
    words = [command, *(net if rng.random() < 0.95 else [rng.choice(["", "wrn-4-1", "resnet:[]",
                                                                     "wrn-10-99999999999"])])]
    for flag in rng.sample(list(FLAGS), rng.choice([1, 1, 2, 2, 3, 5])):
        if flag in words:  # said twice is refused
            at = words.index(flag)
            del words[at:at + 2]
        words += [flag] if FLAGS[flag] is None else [flag, rng.choice(FLAGS[flag])]
    if command == "train":
        words += ["--steps", "1", "--no-eval", "--save-every", "0", "--out", "out", "--overwrite"]
    if command == "profile":
        words += ["--steps", "0"]
    return words


def run(program, report, count=1000, seconds=600, seed=1):
    until = time.monotonic() + seconds
    for i in range(count):
        if time.monotonic() > until:
            report.skip(f"out of time after {i} of {count}")
            return
        words = command_line(random.Random(f"{seed} {i}"))
        outcome = program.run(words, seconds=30, memory=2048 * MIB)
        fault = outcome.fault()
        report.check(not fault, f"{i}: {fault}; {outcome.last_words()}",
                     f"(ulimit -v 2097152; {program.command(words)[:400]})")


if __name__ == "__main__":
    arguments = arguments_of(__doc__, count=1000, seconds=600.0, seed=1)
    sys.exit(finish("flags", run, arguments))
