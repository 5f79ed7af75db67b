#!/usr/bin/env python3
"""The cost of a busy neighbour: a training step on all cores, alone and beside a process that never
rests.

Rounds alternate between four ways, and the median over rounds counts:

  alone             as the program comes: OpenMP's threads spin, and sleep early while others are seen
  alone, spinning   with OpenMP's own waiting (GOMP_SPINCOUNT=300000, what it does if nothing is set)
  busy              beside one process that spins
  busy, one thread  the same, with --threads 1: what giving a core away would cost

With one neighbour on n cores, n + 1 threads want to run. A fair system gives the slowest thread of a
team half a core, so sharing by itself costs twice the idle time. Fails where a neighbour costs more
than LIMIT times the idle time, or where the program alone is slower than spinning by more than LOSS.
--also 1000,10000 adds rows with those counts of turns (GOMP_SPINCOUNT) in place of the program's own way;
they are not judged.
With --neighbours cores there is one on every core; that is printed and not judged, unless asked for.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

LIMIT, LOSS = 3.0, 0.02
NETS = {
    "mlp": (["mlp"], 3000),
    "wrn-10-1, batch 16": (["wrn-10-1", "--batch", "16"], 1500),
    "wrn-16-2, batch 100": (["wrn-16-2", "--batch", "100"], 60),
}


def step_ms(thimble, words, steps, threads, environment):
    with tempfile.TemporaryDirectory() as folder:
        variables = {k: v for k, v in os.environ.items()
                     if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
        done = subprocess.run(
            [thimble, "train", *words, "--steps", str(steps), "--threads", str(threads), "--json",
             "--out", folder + "/run"],
            env={**variables, "THIMBLE_CACHE": folder, **environment}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout)["step_ms"]


class Neighbours:
    """Processes that want a core each."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.running = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                        for _ in range(self.count)]

    def __exit__(self, *_):
        for process in self.running:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--thimble", default="build/release/thimble")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--neighbours", type=int, default=1)
    parser.add_argument("--also", default="", help="counts of turns, joined by commas")
    parser.add_argument("--nets", default=",".join(NETS).replace(", batch", " batch"),
                        help="by the first word, joined by commas")
    options = parser.parse_args()
    wanted = [name.split()[0] for name in options.nets.split(",")]
    spinning = {"GOMP_SPINCOUNT": "300000"}
    failed = False
    print(f"{options.threads} threads, {options.neighbours} busy, median of {options.rounds} rounds; ms a step")
    print(f"{'net':34}{'alone':>10}{'spinning':>10}{'busy':>10}{'busy, 1':>10}"
          f"{'busy/alone':>12}{'loss':>8}")
    ways = {"": {}} | {f", {count} turns": {"GOMP_SPINCOUNT": count}
                       for count in options.also.split(",") if count}
    for name, (words, steps) in NETS.items():
        if words[0] not in wanted:
            continue
        run = lambda threads, env: step_ms(options.thimble, words, steps, threads, env)
        rows = {way: {"alone": [], "busy": []} for way in ways}
        spun, one = [], []
        for _ in range(options.rounds):
            spun.append(run(options.threads, spinning))
            for way, env in ways.items():
                rows[way]["alone"].append(run(options.threads, env))
            with Neighbours(options.neighbours):
                for way, env in ways.items():
                    rows[way]["busy"].append(run(options.threads, env))
                one.append(run(1, {}))
        spun, one = statistics.median(spun), statistics.median(one)
        for way in ways:
            alone, busy = (statistics.median(rows[way][state]) for state in ("alone", "busy"))
            ratio, loss = busy / alone, alone / spun - 1
            bad = not way and (ratio > LIMIT or loss > LOSS)
            failed = failed or bad
            print(f"{name + way:34}{alone:10.2f}{spun:10.2f}{busy:10.2f}{one:10.2f}"
                  f"{ratio:12.2f}{loss:8.1%}{'  FAILED' if bad else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
