"""Imported nets beside PyTorch on one GPU, in one go: memory and time of a training step at batch 64.

The nets (imported_nets.py) are exported by thimble.torch. Thimble trains them with everything kept, in a quarter
of the memory that PyTorch took, and in that quarter with the optimizer's state in 8 bits (weights stay in fp32).
PyTorch trains them eager and compiled, autocast to bf16, channels last. Thimble computes in bf16 with weights in fp32, as autocast
does. Memory is Thimble's arena and the peak of PyTorch's allocator.

usage: imported.py --thimble PATH [--nets resnet50,vit_b16] [--steps N] [--graphs FOLDER] [--only-export]
                   [--calibrate SECONDS] [--no-compile] [--profile]

--graphs FOLDER: network files are there already (NET.json, and NET.constants.safetensors where it has some); their
weights are written anew. --only-export writes such a folder. --profile prints the time of every kind of kernel, too.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BATCH = 64
# Goals, as shares of eager's time and memory: everything kept, and in a quarter of its memory.
KEPT_TIME, KEPT_MEMORY, QUARTER_TIME = 1.0, 1.0, 1.15
SMALL_STATE = ["--state-bits", 8]


def tools():
    """thimble.torch's exporter, whether or not the library of the package is there."""
    sys.path[:0] = [str(ROOT / "tests" / "torch"), str(ROOT / "python"), str(ROOT / "bench")]
    if "thimble" in sys.modules:
        return sys.modules["thimble.torch"]
    import importlib.util

    spec = importlib.util.spec_from_loader("thimble", loader=None)
    module = importlib.util.module_from_spec(spec)
    module.__path__ = [str(ROOT / "python" / "thimble")]
    sys.modules["thimble"] = module
    import thimble.torch
    return thimble.torch


def built(name):
    import imported_nets
    import torch

    torch.manual_seed(1)
    model = imported_nets.NETS[name]().train()
    return model, imported_nets.optimizer_of(name, model)


def export(name, folder, graphs):
    """The network file, and the flags of its optimizer."""
    thimble_torch = tools()
    import torch
    import torch.nn.functional as F

    model, optimizer = built(name)
    path = os.path.join(folder, name + ".json")
    if graphs:
        document = pathlib.Path(graphs, name + ".json").read_text()
        pathlib.Path(path).write_text(document)
        kept = pathlib.Path(graphs, name + ".constants.safetensors")
        constants = thimble_torch.read_safetensors(kept) if kept.exists() else {}
        state = {key: tensor for key, tensor in model.state_dict().items()
                 if tensor.is_floating_point()}
        from thimble.exporter.files import write_safetensors
        write_safetensors(os.path.join(folder, name + ".safetensors"), {**state, **constants})
    else:
        from imported_nets import SIZE
        example = torch.randn(BATCH, 3, SIZE, SIZE), torch.randint(0, 1000, (BATCH,))
        thimble_torch.export(model, F.cross_entropy, example, path, optimizer, check=False)
    settings = thimble_torch.settings_of(optimizer)
    return path, [str(f) for key, value in settings.items() for f in (f"--{key}", value)]


def only_export(name, folder):
    """Graphs without weights."""
    export(name, folder, None)
    thimble_torch = tools()
    from thimble.exporter.files import write_safetensors
    whole = os.path.join(folder, name + ".safetensors")
    names = {entry["name"] for entry in json.loads(pathlib.Path(folder, name + ".json").read_text())["constants"]}
    constants = {k: t for k, t in thimble_torch.read_safetensors(whole).items() if k in names}
    if constants:
        write_safetensors(os.path.join(folder, name + ".constants.safetensors"), constants)
    os.remove(whole)


def peer(name, compiled, steps):
    """PyTorch's step: milliseconds and the allocator's peak."""
    sys.path.insert(0, str(ROOT / "bench"))
    import torch
    import torch.nn.functional as F
    from imported_nets import SIZE, optimizer_of

    torch.backends.cudnn.benchmark = True
    model, _ = built(name)
    model = model.cuda().to(memory_format=torch.channels_last)
    optimizer = optimizer_of(name, model)
    x = torch.randn(BATCH, 3, SIZE, SIZE, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (BATCH,), device="cuda")
    forward = torch.compile(model) if compiled else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(steps):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    print(json.dumps({"step_ms": statistics.median(times),
                      "peak_bytes": torch.cuda.max_memory_allocated(),
                      "torch": torch.__version__}))


def asked(command, timeout=300):
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, "did not finish"
    if done.returncode != 0:
        return None, (done.stderr.strip() or done.stdout.strip())[-600:]
    return json.loads(done.stdout[done.stdout.index("{"):]), ""


def ours(args, net, settings, *more):
    with tempfile.TemporaryDirectory() as out:
        return asked([args.thimble, "train", net, "--batch", BATCH, "--data", "noise", "--precision",
                      "bf16", "--master", "--device", "cuda", "--steps", args.steps, "--json",
                      "--no-eval", "--out", out, *settings, *more])


def profiled(args, net, settings, *more):
    """Prints the program's own table of times by kind of kernel."""
    command = [args.thimble, "profile", net, "--batch", BATCH, "--precision", "bf16", "--master", "--device",
               "cuda", "--steps", 6, *of_step(settings), *more]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    print((done.stdout + done.stderr).strip(), flush=True)


def calibrated(args, net, settings, *steps):
    """Measures the kernels of steps that differ by these flags."""
    for flags in steps:
        _, why = asked([args.thimble, "calibrate", net, "--batch", BATCH, "--precision", "bf16", "--master",
                        "--device", "cuda", "--json", "--seconds", args.calibrate, *of_step(settings), *flags])
        if why:
            print("calibrate:", why, flush=True)


def of_step(settings):
    """The settings that a step's kernels depend on: `calibrate` takes no others."""
    kept = ("--optimizer", "--momentum", "--weight-decay")
    return [s for i, s in enumerate(settings) if s in kept or settings[i - 1] in kept]


def row(work, result, why, eager, compiled, time_goal, memory_goal):
    if result is None:
        print(f"{work:37} failed: {why}", flush=True)
        return
    arena, ms = result["measured_arena_bytes"], result["step_ms"]
    cells = f"{work:37} {arena / 2**20:9.1f} MiB {ms:8.2f} ms"
    if eager:
        time, memory = ms / eager["step_ms"], arena / eager["peak_bytes"]
        good = time <= time_goal and memory <= memory_goal
        cells += f"  {time:.3f}x eager's time (goal {time_goal})  {memory:.3f}x its memory"
        cells += f" (goal {memory_goal})  {'met' if good else 'MISSED'}"
    if compiled:
        cells += f"  {ms / compiled['step_ms']:.3f}x compiled's time"
    predicted = result.get("predicted_step_ms")
    print(cells + (f"  predicted {predicted:.1f} ms" if predicted else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--thimble", default=str(ROOT / "build" / "release" / "thimble"))
    parser.add_argument("--nets", default="resnet50,convnext_t,vit_b16")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--graphs")
    parser.add_argument("--only-export", metavar="FOLDER")
    parser.add_argument("--calibrate", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--compiled", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT / "bench"))
    if args.peer:
        return peer(args.peer, args.compiled, args.steps)
    for name in args.nets.split(","):
        if args.only_export:
            os.makedirs(args.only_export, exist_ok=True)
            only_export(name, args.only_export)
            continue
        with tempfile.TemporaryDirectory() as folder:
            net, settings = export(name, folder, args.graphs)
            again = [sys.executable, __file__, "--steps", args.steps, "--peer", name]
            eager, why = asked(again)
            compiled, why_not = (None, "") if args.no_compile else asked([*again, "--compiled"])
            for which, result, reason in (("eager", eager, why), ("torch.compile", compiled, why_not)):
                if result:
                    print(f"{name + ' PyTorch ' + result['torch'] + ' ' + which:37} "
                          f"{result['peak_bytes'] / 2**20:9.1f} MiB {result['step_ms']:8.2f} ms", flush=True)
                elif reason:
                    print(f"{name} {which} failed: {reason}", flush=True)
            works = [("all kept", [], KEPT_TIME, KEPT_MEMORY)]
            if eager:
                quarter = ["--memory", eager["peak_bytes"] // 4]
                works += [("in a quarter", quarter, QUARTER_TIME, 0.25),
                          ("in a quarter, 8-bit state", quarter + SMALL_STATE, QUARTER_TIME, 0.25)]
            if args.calibrate:
                calibrated(args, net, settings, *([], SMALL_STATE) if eager else [[]])
            for work, flags, time_goal, memory_goal in works:
                row(f"{name}, {work}", *ours(args, net, settings, *flags), eager, compiled, time_goal, memory_goal)
                if args.profile:
                    profiled(args, net, settings, *flags)


if __name__ == "__main__":
    main()
