"""Training steps on a CPU beside PyTorch at its best, by turns: time and memory of every row, and ratios.

PyTorch is tuned: malloc keeps what it has and uses huge pages, AdamW is fused. On a processor that is not
Intel's, MKL, which multiplies fp32 there, leaves AVX-512 alone; it asks a function of its own whether the
processor is Intel's. A library of two lines that answers yes, loaded before it, lets it use all
instructions, and without that a comparison in fp32 flatters us twofold. The library is built here by the C
compiler, from the text in SHIM below, wherever the processor is not Intel's (--no-shim: never).

Rounds alternate between the contestants, so that a busy neighbour slows all of them. Memory is Thimble's
arena and the peak of PyTorch's resident set above what it was before the net was built. Rows that take a
network file export it first.

usage: cpu.py --thimble PATH [--rows wrn,gpt2,...] [--precisions fp32,bf16] [--threads N] [--rounds N]
              [--steps N] [--no-compile] [--no-shim] [--folder FOLDER]

--folder: where network files are kept from one run to the next.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

PEER = pathlib.Path(__file__).resolve().parent / "cpu_peer.py"
SHIM = """int mkl_serv_intel_cpu_true(void) { return 1; }
int mkl_serv_intel_cpu(void) { return 1; }
"""
TUNED = {
    "MALLOC_MMAP_MAX_": "0",  # large blocks come from the heap, too,
    "MALLOC_TRIM_THRESHOLD_": str(10**11),  # and are never given back
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "FUSED_ADAMW": "1",
}
ADAMW = ["--optimizer", "adamw", "--weight-decay", "0.01", "--lr", "1e-4"]
SGD = ["--optimizer", "sgd", "--momentum", "0.9", "--lr", "0.01"]
# Thimble's model (a file: exported), its batch and settings; PyTorch's net.
ROWS = {
    "wrn": ("wrn-28-2", 100, ["--data", "generated", "--weight-decay", "5e-4"], "wrn"),
    "resnet50": ("resnet50.json", 8, ["--data", "noise", *SGD], "resnet50"),
    "gpt2": ("gpt2.json", 2, ["--data", "noise", *ADAMW], "gpt2"),
    "gpt2-own": ("gpt2-124m", 2, ["--data", "noise", "--length", "256", *ADAMW], "gpt2"),
    "smollm2": ("smollm2.json", 1, ["--data", "noise", *ADAMW], "smollm2"),
    "lora": ("lora.json", 1, ["--data", "noise", *ADAMW], "lora"),
    "lstm": ("lstm", 16, ["--layers", "2", "--hidden", "512", "--length", "256", "--data", "generated",
                          *SGD], "lstm"),
    "vit": ("vit.json", 8, ["--data", "noise", *ADAMW], "vit"),
}
# The goal, as a share of PyTorch's best time, by row and precision.
GOALS = {
    ("wrn", "fp32"): 0.85, ("wrn", "bf16"): 0.90, ("resnet50", "fp32"): 0.88, ("resnet50", "bf16"): 0.90,
    ("gpt2", "fp32"): 0.85, ("gpt2-own", "fp32"): 0.85, ("gpt2", "bf16"): 0.85, ("gpt2-own", "bf16"): 0.85,
    ("smollm2", "fp32"): 0.85, ("smollm2", "bf16"): 0.75, ("lora", "fp32"): 0.85, ("lora", "bf16"): 0.75,
    ("lstm", "fp32"): 1.0, ("vit", "fp32"): 0.85, ("vit", "bf16"): 0.85,
}


def is_intel():
    text = pathlib.Path("/proc/cpuinfo")
    return not text.exists() or "GenuineIntel" in text.read_text()


def build_shim(folder):
    """The library, or None where there is no compiler."""
    source, library = pathlib.Path(folder, "shim.c"), pathlib.Path(folder, "libshim.so")
    source.write_text(SHIM)
    command = ["cc", "-shared", "-fPIC", "-o", str(library), str(source)]
    if shutil.which("cc") is None or subprocess.run(command).returncode != 0:
        print("no C compiler: PyTorch's fp32 may run at half its speed here", file=sys.stderr)
        return None
    return str(library)


def run(command, environment=None):
    """The last line of JSON that it printed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout[done.stdout.index("{"):])


class Thimble:
    def __init__(self, options, row, precision):
        model, batch, settings, _ = ROWS[row]
        if model.endswith(".json"):
            model = pathlib.Path(options.folder, model)
        self.name = "Thimble"
        self.command = [options.thimble, "train", model, "--batch", batch, *settings, "--threads",
                        options.threads, "--steps", options.steps + 2, "--times", "--json",
                        "--no-eval", "--save-every", "0", "--overwrite", "--out",
                        pathlib.Path(options.folder, "run")]
        if precision == "bf16":
            self.command += ["--precision", "bf16", "--master"]

    def measure(self):
        result = run(self.command)
        return result["times_ms"][2:], result["measured_arena_bytes"] / 2**20


class Torch:
    def __init__(self, options, row, precision, mode, shim):
        self.name = f"PyTorch {mode}"
        self.command = [sys.executable, PEER, "train", ROWS[row][3], mode, precision,
                        options.threads, options.steps]
        self.environment = dict(TUNED)
        self.environment["TORCHINDUCTOR_CACHE_DIR"] = str(pathlib.Path(options.folder, "inductor"))
        if shim:
            self.environment["LD_PRELOAD"] = shim

    def measure(self):
        result = run(self.command, self.environment)
        return result["times_ms"], result["mib"]


def compare(options, row, precision, shim):
    contestants = [Thimble(options, row, precision), Torch(options, row, precision, "eager", shim)]
    if options.compile:
        contestants.append(Torch(options, row, precision, "compile", shim))
    times = [[] for _ in contestants]
    memory = [0.0] * len(contestants)
    for _ in range(options.rounds):
        for i, contestant in enumerate(contestants):
            some, mib = contestant.measure()
            times[i] += some
            memory[i] = max(memory[i], mib)
    medians = [statistics.median(some) for some in times]
    best = min(range(1, len(contestants)), key=lambda i: medians[i])
    ratio = medians[0] / medians[best]
    goal = GOALS.get((row, precision))
    verdict = "" if goal is None else f"  goal {goal:.2f} {'met' if ratio <= goal else 'missed'}"
    print(f"{row:10} {precision}  " + "  ".join(
        f"{c.name} {ms:8.1f} ms {mib:7.0f} MiB" for c, ms, mib in zip(contestants, medians, memory)))
    print(f"{'':16} time {ratio:.2f}, memory {memory[0] / memory[best]:.2f} of {contestants[best].name}"
          f"{verdict}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thimble", required=True)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--no-shim", dest="shim", action="store_false")
    parser.add_argument("--folder")
    options = parser.parse_args()
    rows = options.rows.split(",")
    unknown = [row for row in rows if row not in ROWS]
    if unknown:
        raise SystemExit(f"no row {unknown[0]}; known: {', '.join(ROWS)}")
    with tempfile.TemporaryDirectory() as scratch:
        options.folder = options.folder or scratch
        pathlib.Path(options.folder).mkdir(parents=True, exist_ok=True)
        nets = {ROWS[row][0] for row in rows if ROWS[row][0].endswith(".json")}
        missing = [net[:-5] for net in sorted(nets) if not pathlib.Path(options.folder, net).exists()]
        if missing:
            subprocess.run([sys.executable, PEER, "export", ",".join(missing), options.folder],
                           check=True)
        shim = build_shim(scratch) if options.shim and not is_intel() else None
        for row in rows:
            for precision in options.precisions.split(","):
                compare(options, row, precision, shim)


if __name__ == "__main__":
    main()
