#!/usr/bin/env python3
"""The worth of each search and each threshold: nets planned with one of them off, beside all of them on.

usage: ablate.py build/release/bench/bench_limits [--limits NAME=VALUE ...] [--nets WORDS] [--budgets N] [--out FILE.md]

A row is a limit that was changed: by how much floors rise, by how much times within budgets rise on average and at
worst, and the seconds of search that it saves. A search goes where no floor rises by 0.5 %, the mean time by 0.1 % or
the worst by 0.5 %. Times are the null device's model, the same on every machine; seconds are of one core.
"""
import argparse
import subprocess

SWITCHES = ("policies", "always_kept", "chain", "between", "halvings", "evictions", "evictions_by_work",
            "evictions_by_bytes", "slack", "slack_left", "reduce_peak")
NETS = "wrn-28-2 100 wrn-28-10 32 resnet-50 8 unet 8 lstm:length=100 20 gpt:layers=6,width=128,heads=4,length=64 8 " \
       "mlp:layers=8,hidden=256 64"


def frontiers(program, nets, budgets, limits):
    words = [program, "--budgets", str(budgets), *(["--limits", limits] if limits else []), *nets.split()]
    rows = {}
    for line in subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines():
        name, batch, most, least, seconds, *times = line.split()
        rows[name, batch] = int(most), int(least), float(seconds), [None if t == "-" else float(t) for t in times]
    return rows


def compare(all_on, other):
    """Floor, mean and worst time, in percent above, within budgets that both have a plan for; seconds of search, of
    those with all on."""
    floors, times = [], []
    for net, (_, least, _, with_all) in all_on.items():
        floors.append(100 * (other[net][1] / least - 1))
        times += [100 * (b / a - 1) for a, b in zip(with_all, other[net][3]) if a and b]
    seconds = sum(row[2] for row in other.values()) / sum(row[2] for row in all_on.values())
    return max(floors), sum(times) / max(1, len(times)), max(times, default=0), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--limits", nargs="*", default=[f"{name}=off" for name in SWITCHES])
    parser.add_argument("--nets", default=NETS)
    parser.add_argument("--budgets", type=int, default=16)
    parser.add_argument("--out")
    flags = parser.parse_args()
    all_on = frontiers(flags.program, flags.nets, flags.budgets, "")
    lines = ["| changed | floor, at most | time, mean | time, worst | seconds of search |", "|:--|--:|--:|--:|--:|"]
    for limits in flags.limits:
        floor, mean, worst, seconds = compare(all_on, frontiers(flags.program, flags.nets, flags.budgets, limits))
        lines.append(f"| `{limits}` | {floor:+.2f} % | {mean:+.2f} % | {worst:+.2f} % | {seconds:.2f}x |")
        print(lines[-1], flush=True)
    if flags.out:
        with open(flags.out, "w") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
