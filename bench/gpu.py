"""Thimble and PyTorch on one GPU, in one go: memory and time of a training step.

Every row is a piece of work, Thimble's flags for it and PyTorch's way of doing it. Memory is
Thimble's arena (all it ever allocates on the card beside CUDA's own context) and the peak of
PyTorch's allocator; time is the median step. Results of the day go to docs/results/gpu.md.

usage: gpu.py --thimble PATH [--python PYTHON] [--only TEXT] [--steps N] [--calibrate SECONDS]
              [--more-peers] [--json FILE]
"""
import argparse
import json
import subprocess
import sys

WRN = ["wrn-28-2", "--batch", "100", "--data", "generated"]
DEEP = ["resnet-1001", "--batch", "32"]
LSTM = ["lstm", "--layers", "4", "--hidden", "1024", "--batch", "64", "--length", "2048", "--classes", "5000"]
SMALL = ["--precision", "fp16", "--microbatch", "10", "--density", "0.3"]

# work, Thimble's flags, PyTorch's variant, goal of the ratio of times, goal in bytes
ROWS = [
    ("WRN-28-2 b100 fp32, all kept", WRN, "wrn fp32", 0.45, 400 << 20),
    ("WRN-28-2 b100 fp16, all kept", [*WRN, "--precision", "fp16"], "wrn amp", 0.25, 215 << 20),
    ("WRN-28-2 b100 fp16, microbatch 10, density 0.3, recomputed",
     [*WRN, *SMALL, "--memory", "6.5MB"], "wrn amp checkpoint microbatch", 0.12, 6_500_000),
    ("ResNet-1001 b32 fp32", [*DEEP, "--allow", "exact", "--memory", "4.5GiB"],
     "resnet-1001 fp32", 0.70, 4.5 * 2**30),
    ("ResNet-1001 b32 fp16", [*DEEP, "--precision", "fp16", "--memory", "2.6GiB"],
     "resnet-1001 amp", 0.30, 2.6 * 2**30),
    ("LSTM 4x1024 b64 T2048 fp32", [*LSTM, "--memory", "1.6GiB"], "lstm fp32", 1.3, 1.6 * 2**30),
]
MORE_PEERS = ["resnet-1001 fp32 checkpoint", "resnet-1001 amp checkpoint", "wrn amp compile"]


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.stderr.write(f"{' '.join(command)}\n{done.stderr[-800:]}{done.stdout[-400:]}\n")
        return None
    return json.loads(done.stdout.strip().splitlines()[-1] if done.stdout.count("\n") < 3
                      else done.stdout)


def thimble(path, flags, steps):
    return run_json([path, "train", *flags, "--device", "cuda", "--steps", str(steps), "--json",
                     "--no-eval"])


def mib(count):
    return f"{count / 2**20:,.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--thimble", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--calibrate", type=float, default=0, metavar="SECONDS",
                        help="measure the kernels of every row first, for so long")
    parser.add_argument("--more-peers", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()

    results, card = [], ""
    print(f"{'work':<60}{'MiB':>10}{'peer MiB':>10}{'ms':>9}{'peer ms':>9}{'ratio':>7}{'goal':>6}"
          f"{'predicted':>11}")
    for work, flags, peer, goal, most in ROWS:
        if args.only not in work:
            continue
        if args.calibrate:
            plans = ("--memory", "--allow")  # kernels do not depend on what plans are told
            free = [f for i, f in enumerate(flags) if f not in plans and flags[i - 1] not in plans]
            run_json([args.thimble, "calibrate", *free, "--device", "cuda", "--json",
                      "--seconds", str(args.calibrate)])
        ours = thimble(args.thimble, flags, args.steps)
        theirs = run_json([args.python, __file__.replace("gpu.py", "gpu_peer.py"), peer])
        if not ours or not theirs:
            print(f"{work:<60} failed")
            continue
        card = f"{theirs['card']}, PyTorch {theirs['torch']}"
        ratio = ours["step_ms"] / theirs["step_ms"]
        arena = ours["measured_arena_bytes"]
        print(f"{work:<60}{mib(arena):>10}{mib(theirs['peak_bytes']):>10}{ours['step_ms']:>9.2f}"
              f"{theirs['step_ms']:>9.2f}{ratio:>7.3f}{goal:>6.2f}{ours['predicted_step_ms']:>11.2f}"
              f"{'' if ratio <= goal and arena <= most else '  missed'}", flush=True)
        results.append({"work": work, "flags": flags, "thimble": ours, "peer": theirs})
    if args.more_peers:
        for peer in MORE_PEERS:
            theirs = run_json([args.python, __file__.replace("gpu.py", "gpu_peer.py"), peer])
            if theirs:
                print(f"{'PyTorch: ' + peer:<60}{'':>10}{mib(theirs['peak_bytes']):>10}{'':>9}"
                      f"{theirs['step_ms']:>9.2f}", flush=True)
    print(card)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
