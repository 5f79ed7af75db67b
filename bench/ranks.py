#!/usr/bin/env python3
"""Ranks against threads: a step of WRN-28-2, batch 100, by one rank on every core, and by one process with
as many threads.

Rounds alternate between the two. A round's time is that of its fastest steps (a tenth of them), so that
what else runs on the machine counts little; the medians over rounds are compared. Fails where ranks take
more than LIMIT times the process's time.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

LIMIT = 1.10


def train(thimble, words, launcher=()):
    """The JSON of a run, and the mean of its fastest steps in ms."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*launcher, thimble, "train", *words, "--json", "--times", "--out", folder + "/run"],
                              capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join([*launcher, thimble, 'train', *words])}: {done.stderr}")
    result = json.loads(done.stdout)
    times = sorted(result["times_ms"])
    return result, statistics.mean(times[:max(1, len(times) // 10)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--thimble", default="build/release/thimble")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--ranks", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--shard", default="none", help="as many as there are, joined by commas")
    parser.add_argument("--mpirun", default="mpirun --allow-run-as-root")
    parser.add_argument("words", nargs="*", help="more flags of train, behind --")
    options = parser.parse_args()
    net = ["wrn-28-2", "--batch", "100", "--data", "generated", "--no-eval", "--costs", "modelled",
           "--steps", str(options.steps), *options.words]
    launcher = [*options.mpirun.split(), "-np", str(options.ranks)]
    ways = {f"1 rank, {options.ranks} threads": ([*net, "--threads", str(options.ranks)], ())}
    for shard in options.shard.split(","):
        ways[f"{options.ranks} ranks, 1 thread, {shard}"] = (
            [*net, "--threads", "1", "--shard", shard], launcher)
    times, shares = {way: [] for way in ways}, {way: [] for way in ways}
    for _ in range(options.rounds):
        for way, (words, start) in ways.items():
            result, fastest = train(options.thimble, words, start)
            times[way].append(fastest)
            shares[way].append(100 * result.get("communication_share", 0))
    peer = statistics.median(times[next(iter(ways))])
    print(f"ms a step, median of {options.rounds} rounds of {options.steps} steps (the fastest tenth of each)")
    failed = False
    for way in ways:
        middle = statistics.median(times[way])
        failed = failed or middle > LIMIT * peer
        print(f"{way:34}{middle:>10.1f}{middle / peer:>8.3f}"
              f"{statistics.median(shares[way]):>8.1f} % with other ranks"
              f"   ({', '.join(f'{t:.0f}' for t in times[way])})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
