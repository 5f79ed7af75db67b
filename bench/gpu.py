"""Thimble and PyTorch on one GPU, in one go: memory and time of a training step.

Every row is a piece of work, Thimble's flags for it and PyTorch's way of doing it. Memory is
Thimble's arena and the peak of PyTorch's allocator; "beside" is what else is in use on the card
while Thimble runs: CUDA's context, the libraries' code, other programs. Time is the median step,
"predicted" Thimble's own forecast of it in percent of what was measured. PyTorch runs twice: eager,
which depends on the host that launches its kernels, and replayed as a CUDA graph ("graph ms"),
which does not; both channels last. GPT-2 is beside torch.compile, autocast. "ratio" and "graph ratio" are
Thimble's time over each. More peers come behind the rows. Of the others torch.compile does WRN-28-2
only: ResNet-1001 does not compile in reasonable time.

usage: gpu.py --thimble PATH [--python PYTHON] [--rows 1,3] [--only TEXT] [--steps N]
              [--calibrate SECONDS] [--more-peers] [--timeout SECONDS] [--json FILE]
              [--markdown FILE]
"""
import argparse
import array
import datetime
import functools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

WRN = ["wrn-28-2", "--batch", "100", "--data", "generated"]
DEEP = ["resnet-1001", "--batch", "32"]
LSTM = ["lstm", "--layers", "4", "--hidden", "1024", "--batch", "64", "--length", "2048",
        "--classes", "5000"]
EVERY = [*LSTM, "--predicts", "targets"]
TOKENS = "TOKENS"  # a folder of tokens drawn at random, made for the run
GPT = ["gpt2-124m", "--data", "tokens", "--data-dir", TOKENS, "--batch", "8", "--precision", "bf16",
       "--optimizer", "adamw"]
AS_TYPED = ["--fit", "off"]  # the budget recomputes and chooses nothing else
SMALL = ["--precision", "fp16", "--microbatch", "10", "--density", "0.3"]

# work, Thimble's flags, PyTorch's variant, goal of the ratio of times, goal in bytes
ROWS = [
    ("WRN-28-2 b100 fp32, all kept", WRN, "wrn fp32", 0.45, 400 << 20),
    ("WRN-28-2 b100 fp16, all kept", [*WRN, "--precision", "fp16"], "wrn amp", 0.25, 215 << 20),
    ("WRN-28-2 b100 fp16, microbatch 10, density 0.3, recomputed",
     [*WRN, *SMALL, "--memory", "6.5MB", *AS_TYPED], "wrn amp checkpoint microbatch", 0.12, 6_500_000),
    ("ResNet-1001 b32 fp32", [*DEEP, "--allow", "exact", "--memory", "4.5GiB", *AS_TYPED],
     "resnet-1001 fp32", 0.70, 4.5 * 2**30),
    ("ResNet-1001 b32 fp16", [*DEEP, "--precision", "fp16", "--memory", "2.6GiB", *AS_TYPED],
     "resnet-1001 amp", 0.30, 2.6 * 2**30),
    ("LSTM 4x1024 b64 T2048 fp32", [*LSTM, "--memory", "1.6GiB", *AS_TYPED], "lstm fp32", 1.3, 1.6 * 2**30),
    ("LSTM, 5,000 classes at every step", [*EVERY, "--memory", "1.5GiB", *AS_TYPED], "lstm every fp32", 1.2,
     1.5 * 2**30),
    ("GPT-2 124M b8x1024 bf16, all kept", GPT, "gpt bf16 compile", 1.0, 0.6 * 9094 * 2**20),
    ("GPT-2 124M in 1.9 GiB", [*GPT, "--memory", "1.9GiB", *AS_TYPED], "gpt bf16 compile", 1.5, 1.9 * 2**30),
    ("GPT-2 124M, 8-bit state, in 1.0 GiB", [*GPT, "--state-bits", "8", "--memory", "1.0GiB", *AS_TYPED],
     "gpt bf16 compile", 1.7, 2**30),
    ("GPT-2 124M in 3.4 GiB, next to nothing recomputed", [*GPT, "--memory", "3.4GiB", *AS_TYPED],
     "gpt bf16 compile", 1.0, 0.6 * 5966 * 2**20),
]
MORE_PEERS = ["resnet-1001 fp32 checkpoint", "resnet-1001 amp checkpoint", "wrn amp compile",
              "wrn amp compile budget 0.5", "gpt bf16"]
COLUMNS = {"work": 60, "MiB": 10, "beside": 8, "peer MiB": 10, "ms": 9, "peer ms": 9, "ratio": 7,
           "goal": 6, "graph ms": 10, "graph ratio": 13, "predicted": 10, "": 24}
THIMBLE_TIMEOUT = 600


def run_json(command, timeout):
    """The object that the command prints, or None and why there is none."""
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, start_new_session=True)
        out, err = process.communicate(timeout=timeout)
        if process.returncode == 0:
            return json.loads(out[out.index("{"):]), ""
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with its compile workers, which hold the pipes
        process.wait()
        return None, "did not finish"
    except (OSError, ValueError) as error:
        out, err = "", f"{error}\n"
    sys.stderr.write(f"{' '.join(command)}\n{err[-800:]}{out[-400:]}\n")
    return None, "failed"


def calibrate(args, flags):
    plans = ("--allow",)  # calibrate does not know it
    free = [f for i, f in enumerate(flags) if f not in plans and flags[i - 1] not in plans]
    run_json([args.thimble, "calibrate", *free, "--device", "cuda", "--json", "--seconds",
              str(args.calibrate)], args.calibrate + THIMBLE_TIMEOUT)


def train(args, flags):
    with tempfile.TemporaryDirectory() as out:
        return run_json([args.thimble, "train", *flags, "--device", "cuda", "--steps",
                         str(args.steps), "--json", "--no-eval", "--out", out], THIMBLE_TIMEOUT)


@functools.cache
def ask_peer(python, timeout, name):
    peer = str(pathlib.Path(__file__).with_name("gpu_peer.py"))
    return run_json([python, peer, name], timeout)


def make_tokens(folder):
    draw = random.Random(1)
    for split, count in (("train", 400_000), ("val", 40_000)):
        tokens = array.array("H", (draw.randrange(50257) for _ in range(count)))
        pathlib.Path(folder, split + ".bin").write_bytes(tokens.tobytes())


def versions(args):
    def first_line(command):
        try:
            return subprocess.run(command, capture_output=True, text=True).stdout.split("\n")[0]
        except OSError:
            return ""

    card = first_line(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    name, _, driver = card.partition(", ")
    peer, _ = ask_peer(args.python, args.timeout, "--versions")
    torch = "PyTorch {torch} (CUDA {cuda}, cuDNN {cudnn})".format(**peer) if peer else "no PyTorch"
    return ", ".join([str(datetime.date.today()), name or "unknown card",
                      f"driver {driver or 'unknown'}", first_line([args.thimble, "--version"]),
                      torch])


def cells_of(work, ours, theirs, goal=None, most=None, note="", graph=None):
    """A row as text, by column; what nobody measured stays empty."""
    cells = dict.fromkeys(COLUMNS, "")
    cells["work"] = work
    if ours:
        overhead = ours.get("device_overhead_bytes")
        cells["MiB"] = f"{ours['measured_arena_bytes'] / 2**20:,.1f}"
        cells["beside"] = f"{overhead / 2**20:,.0f}" if overhead is not None else ""
        cells["ms"] = f"{ours['step_ms']:.2f}"
        cells["predicted"] = f"{100 * ours['predicted_step_ms'] / ours['step_ms']:.0f}%"
    if theirs:
        cells["peer MiB"] = f"{theirs['peak_bytes'] / 2**20:,.1f}"
        cells["peer ms"] = f"{theirs['step_ms']:.2f}"
    if ours and theirs:
        ratio = ours["step_ms"] / theirs["step_ms"]
        cells["ratio"], cells["goal"] = f"{ratio:.3f}", f"{goal:.2f}"
        if ratio > goal or ours["measured_arena_bytes"] > most:
            note = "missed"
    if graph:
        cells["graph ms"] = f"{graph['step_ms']:.2f}"
        cells["graph ratio"] = f"{ours['step_ms'] / graph['step_ms']:.3f}" if ours else ""
    cells[""] = note
    return cells


def show(cells):
    print("".join(f"{cells[name]:<{width}}" if name == "work" else
                  f"  {cells[name]}" if name == "" else f"{cells[name]:>{width}}"
                  for name, width in COLUMNS.items()).rstrip(), flush=True)


def markdown(header, table):
    lines = [header, "", "| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    lines += ["| " + " | ".join(cells.values()) + " |" for cells in table]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--thimble", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rows", default="", help="their numbers, from 1, joined by commas")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose work has it")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--calibrate", type=float, default=0, metavar="SECONDS",
                        help="measure the kernels of every row first, for so long")
    parser.add_argument("--more-peers", action="store_true")
    parser.add_argument("--timeout", type=float, default=180, metavar="SECONDS",
                        help="for each of PyTorch's variants")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--markdown", metavar="FILE")
    args = parser.parse_args()
    wanted = [int(n) for n in args.rows.split(",") if n] or range(1, len(ROWS) + 1)

    header = versions(args)
    print(header)
    show({name: name for name in COLUMNS})
    results, table = [], []

    def add(cells):
        show(cells)
        table.append(cells)

    tokens = tempfile.TemporaryDirectory()
    make_tokens(tokens.name)
    for number, (work, flags, peer, goal, most) in enumerate(ROWS, 1):
        if number not in wanted or args.only not in work:
            continue
        flags = [tokens.name if flag == TOKENS else flag for flag in flags]
        if args.calibrate:
            calibrate(args, flags)
        ours, why = train(args, flags)
        theirs, why_not = ask_peer(args.python, args.timeout, peer)
        # Checkpoints recompute under a generator's state that a recording cannot read back.
        graph, why_no_graph = (None, "") if "compile" in peer else ask_peer(
            args.python, args.timeout, peer.replace(" checkpoint", "") + " graph")
        who_failed = (("Thimble", why), ("PyTorch", why_not), ("its graph", why_no_graph))
        note = ", ".join(f"{who} {what}" for who, what in who_failed if what)
        add(cells_of(work, ours, theirs, goal, most, note, graph))
        results.append({"work": work, "flags": flags, "thimble": ours, "peer": theirs,
                        "graph": graph})
    for peer in MORE_PEERS if args.more_peers else []:
        theirs, why_not = ask_peer(args.python, args.timeout, peer)
        add(cells_of("PyTorch: " + peer, None, theirs, note=why_not))
        results.append({"work": peer, "peer": theirs})
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"versions": header, "rows": results}, file, indent=1)
    if args.markdown:
        with open(args.markdown, "w", encoding="utf-8") as file:
            file.write(markdown(header, table))


if __name__ == "__main__":
    main()
