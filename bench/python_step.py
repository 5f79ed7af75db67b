#!/usr/bin/env python3
"""The cost of driving a step from Python: the same steps from the command line and from Python, by turns.

usage: python_step.py --thimble PROGRAM --library LIBTHIMBLE [--model mlp] [--steps 400] [--rounds 5]

Prints the median step of each, in microseconds, and the difference: `Run.step()` on a data set,
`Run.step(batch)` with NumPy arrays of the same size, and `Run.train()` with a callback each step.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--thimble", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


def command_line(args, folder):
    words = [args.thimble, "train", args.model, "--data", "digits", "--batch", args.batch, "--steps",
             args.steps, "--threads", args.threads, "--device", args.device, "--out",
             os.path.join(folder, "cli"), "--overwrite", "--no-eval", "--json", "--times"]
    if args.device != "cpu":
        words = [word for i, word in enumerate(words)
                 if word != "--threads" and (i == 0 or words[i - 1] != "--threads")]
    said = subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE).stdout
    return [ms * 1000 for ms in json.loads(said)["times_ms"]]


def timed(step, count):
    times = []
    for i in range(count):
        begin = time.perf_counter()
        step(i)
        times.append((time.perf_counter() - begin) * 1e6)
    return times


def from_python(thimble, np, args):
    settings = dict(batch=args.batch, steps=args.steps, device=args.device)
    if args.device == "cpu":
        settings["threads"] = args.threads
    on_set = thimble.Run(thimble.plan(args.model, data="digits", **settings))
    plan = thimble.plan(args.model, **settings)
    arrays = [np.zeros(field.shape, field.dtype) for field in plan.fields]
    on_arrays = thimble.Run(plan)
    ticks = []
    shown = thimble.Run(plan, [tuple(arrays)])

    def tick(_):
        ticks.append(time.perf_counter())

    shown.train(tick)
    return {"Run.step()": timed(lambda _: on_set.step(), args.steps),
            "Run.step(batch)": timed(lambda _: on_arrays.step(arrays), args.steps),
            "Run.train(progress)": [(b - a) * 1e6 for a, b in zip(ticks, ticks[1:])]}


def main():
    args = parse()
    os.environ["THIMBLE_LIBRARY"] = os.path.abspath(args.library)
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
    import numpy as np

    import thimble

    times = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.rounds):
            times.setdefault("command line", []).extend(command_line(args, folder)[20:])
            for name, some in from_python(thimble, np, args).items():
                times.setdefault(name, []).extend(some[20:])
    medians = {name: statistics.median(some) for name, some in times.items()}
    base = medians["command line"]
    print(f"{args.model}, batch {args.batch}, {args.device}: median of "
          f"{len(times['command line'])} steps, in microseconds")
    for name, median in medians.items():
        print(f"  {name:22}{median:10.1f}{median - base:+10.1f}")


if __name__ == "__main__":
    main()
