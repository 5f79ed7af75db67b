"""Training step of WRN-28-2, batch 100, fp32, CPU: Thimble against PyTorch, in one run.

usage: wrn_step.py --thimble build/release/thimble [--threads 2] [--rounds 5] [--steps 5]
Rounds alternate between the two, so that a busy machine slows both. Prints every round, then the
ratio of the medians and of the fastest steps, and both peaks of memory.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile

PEER = """
import sys, time, json, resource
sys.path.insert(0, sys.argv[1])
import torch, torch.nn.functional as F
from wrn_peer import WideResNet
torch.set_num_threads(int(sys.argv[2])); torch.manual_seed(1)
net = WideResNet().to(memory_format=torch.channels_last)
opt = torch.optim.SGD(net.parameters(), 0.1, 0.9, weight_decay=5e-4, nesterov=True)
x = torch.randn(100, 3, 32, 32).contiguous(memory_format=torch.channels_last)
y = torch.randint(0, 10, (100,))
times = []
for i in range(2 + int(sys.argv[3])):
    t = time.perf_counter()
    opt.zero_grad(set_to_none=True)
    F.cross_entropy(net(x), y).backward()
    opt.step()
    times.append(time.perf_counter() - t)
rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"version": torch.__version__, "ms": [1e3 * t for t in times[2:]], "rss_mib": rss}))
"""


def run_peer(arguments):
    here = __file__.rsplit("/", 1)[0] or "."
    out = subprocess.run([sys.executable, "-c", PEER, here, str(arguments.threads),
                          str(arguments.steps)], check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def run_thimble(arguments):
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.thimble, "train", "wrn-28-2", "--data", "generated", "--batch", "100",
                   "--steps", str(2 + arguments.steps), "--threads", str(arguments.threads),
                   "--weight-decay", "5e-4", "--save-every", "0", "--no-eval",
                   "--times", "--out", folder, "--json"]
        out = subprocess.run(command, check=True, capture_output=True, text=True)
    result = json.loads(out.stdout)
    return {"ms": result["times_ms"][2:], "arena_mib": result["measured_arena_bytes"] / 2**20,
            "rss_mib": result["rss_peak_bytes"] / 2**20}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--thimble", default="build/release/thimble")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()
    ours, theirs = [], []
    for r in range(arguments.rounds):
        a, b = run_thimble(arguments), run_peer(arguments)
        ours += a["ms"]
        theirs += b["ms"]
        print(f"round {r + 1}: thimble {statistics.median(a['ms']):7.1f} ms   "
              f"PyTorch {b['version']} {statistics.median(b['ms']):7.1f} ms", flush=True)
    print(f"WRN-28-2, batch 100, fp32, {arguments.threads} threads, channels_last")
    print(f"  median  thimble {statistics.median(ours):7.1f} ms  PyTorch "
          f"{statistics.median(theirs):7.1f} ms  ratio "
          f"{statistics.median(ours) / statistics.median(theirs):.3f}")
    print(f"  fastest thimble {min(ours):7.1f} ms  PyTorch {min(theirs):7.1f} ms  ratio "
          f"{min(ours) / min(theirs):.3f}")
    print(f"  memory  thimble arena {a['arena_mib']:.1f} MiB, process {a['rss_mib']:.0f} MiB; "
          f"PyTorch process {b['rss_mib']:.0f} MiB")


if __name__ == "__main__":
    main()
