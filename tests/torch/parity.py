"""Trains a net with Thimble and with PyTorch from the same weights on the same batches, and compares.

usage: parity.py [--program build/release/thimble] [--steps 20] [--rate 1e-5] [--onnx] [--dynamo] [--more] [--double]
                 [--full [--size 128] [--length 32]] [NET ...]

For each net: export, plan, `thimble train` on arrays of random records with its batches written out,
PyTorch on those batches; then the trained weights go into the module, whose own evaluation must agree
with Thimble's. Prints the largest difference of losses; exits 1 where one is above 1e-4. --double: and by how much
PyTorch itself differs from PyTorch in fp64 on those batches, which is what a net's own instability makes of rounding.
"""

import argparse
import contextlib
import copy
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "torch")]
warnings.filterwarnings("ignore")

import numpy
import torch

import nets

MOST = (
    1e-4  # of a loss, relative to it where it is above one: rounding in another order over 20 steps
)


def thimble_torch(program=None):
    """thimble.torch, whether or not the library of the package is built. `program`: beside whose library, what is
    exported is held against PyTorch."""
    import importlib.util

    if program is not None:
        library = pathlib.Path(program).parent / "lib" / "libthimble.so.0"
        os.environ.setdefault("THIMBLE_LIBRARY", str(library))
    package = ROOT / "python" / "thimble"
    if "thimble" not in sys.modules:
        spec = importlib.util.spec_from_loader("thimble", loader=None)
        module = importlib.util.module_from_spec(spec)
        module.__path__ = [str(package)]
        sys.modules["thimble"] = module
    import thimble.torch

    return thimble.torch


def records(batch, rows):
    """Random records with the fields of a batch."""
    made = {}
    for name, tensor in batch.items():
        shape = (rows, *tensor.shape[1:])
        if tensor.is_floating_point():
            made[name] = torch.randn(shape)
        elif name == "attention_mask":  # of rows that were padded behind
            made[name] = (torch.arange(shape[1]) < torch.randint(2, shape[1] + 1, (rows, 1))).long()
        else:
            made[name] = torch.randint(int(tensor.min()), int(tensor.max()) + 1, shape)
    if "labels" in made and made["labels"].shape == made.get("input_ids", torch.empty(0)).shape:
        made["labels"] = made["input_ids"].clone()
    return made


def loss_of(module, loss, batch):
    if loss is None:
        return module(**batch).loss
    *inputs, target = batch.values()
    return loss(module(*inputs), target)


def run(program, *flags):
    done = subprocess.run([program, *map(str, flags)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(
            f"thimble {' '.join(map(str, flags))}: {done.returncode}: {done.stderr.strip()[-2000:]}"
        )
    return done.stdout


class Logits(torch.nn.Module):
    """A net of transformers' as one that gives its logits alone."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, input_ids):
        return self.net(input_ids=input_ids).logits


class Segmented(torch.nn.Module):
    """A net of torchvision's that segments, as one that gives its main output alone."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)["out"]


def of_places(output, target):
    """The cross-entropy of logits [N,C,...], or of [N,T,C]."""
    return torch.nn.functional.cross_entropy(
        output.flatten(0, 1) if output.ndim == 3 else output,
        target.flatten() if output.ndim == 3 else target,
    )


def export_onnx(module, loss, example, net, dynamo):
    """The graph as ONNX, to its logits; what it is fed with and compared to then."""
    if loss is None:
        ids = example["input_ids"]
        target = example["labels"] if example["labels"].ndim == 1 else ids
        module, example = Logits(module), (ids, target)
    if loss is nets.segmentation:
        module.aux_classifier = None
        module = Segmented(module)
    batch = {"x": example[0], "target": example[1]}
    with warnings.catch_warnings(), open(os.devnull, "w") as nothing, contextlib.redirect_stdout(
        nothing
    ):
        warnings.simplefilter("ignore")
        how = (
            dict(optimize=False, external_data=False)
            if dynamo
            else dict(
                training=torch.onnx.TrainingMode.TRAINING,
                do_constant_folding=False,
                opset_version=17,
                dynamic_axes={"x": {0: "rows"}},
            )
        )
        torch.onnx.export(
            module,
            (example[0],),
            net,
            dynamo=dynamo,
            input_names=["x"],
            output_names=["output"],
            **how,
        )
    return module, batch, of_places


def compare(name, program, steps, folder, rate=1e-5, extra=(), onnx=False, dynamo=False, double=False, **sizes):
    tools = thimble_torch(program)
    module, loss, example = nets.net(name, **sizes)
    batch, _ = tools.fields_of(module, loss, example)
    optimizer = torch.optim.SGD(module.parameters(), rate, momentum=0.9)
    net = os.path.join(folder, f"{name}.onnx" if onnx else f"{name}.json")
    if onnx:
        module, batch, loss = export_onnx(module, loss, example, net, dynamo)
        extra = (*extra, "--batch", nets.ROWS)
    else:
        tools.export(module, loss, example, net, optimizer)
    torch.manual_seed(2)
    for split, rows in (("train", 8 * nets.ROWS), ("test", 2 * nets.ROWS)):
        os.makedirs(os.path.join(folder, split), exist_ok=True)
        made = records(batch, rows)
        for key, tensor in made.items():
            numpy.save(os.path.join(folder, split, f"{key}.npy"), tensor.numpy())
    settings = [
        f for key, value in tools.settings_of(optimizer).items() for f in (f"--{key}", value)
    ]
    result = json.loads(
        run(
            program,
            "train",
            net,
            "--json",
            "--losses",
            "--data",
            "npy",
            "--data-dir",
            folder,
            "--steps",
            steps,
            "--threads",
            2,
            "--out",
            os.path.join(folder, "run"),
            "--export-batches",
            os.path.join(folder, "batches"),
            *settings,
            *extra,
        )
    )
    run(program, "export", os.path.join(folder, "run"), os.path.join(folder, "out.safetensors"))

    wide = copy.deepcopy(module).double() if double else None
    slow = wide and torch.optim.SGD(wide.parameters(), rate, momentum=0.9)
    worst = unsteady = 0.0
    for step, mine in enumerate(result["losses"]):
        files = sorted(
            glob.glob(os.path.join(folder, "batches", f"*{step:06d}*"))
            or glob.glob(os.path.join(folder, "batches", "*"))
        )
        tensors = tools.read_safetensors(files[0] if len(files) == 1 else files[step])
        fed = {
            key: tensors[key] if tensors[key].is_floating_point() else tensors[key].long()
            for key in batch
        }
        optimizer.zero_grad()
        theirs = loss_of(module, loss, fed)
        theirs.backward()
        optimizer.step()
        difference = abs(mine - theirs.item()) / max(1.0, abs(theirs.item()))
        if os.environ.get("VERBOSE"):
            print(f"  step {step}: {mine:.7f} {theirs.item():.7f}")
        worst = max(worst, difference)
        if wide is not None:
            slow.zero_grad()
            exact = loss_of(
                wide, loss, {k: t.double() if t.is_floating_point() else t for k, t in fed.items()}
            )
            exact.backward()
            slow.step()
            apart = abs(theirs.item() - exact.item()) / max(1.0, abs(exact.item()))
            unsteady = max(unsteady, apart)
    weights = tools.read_safetensors(os.path.join(folder, "out.safetensors"))
    own = module.state_dict()
    apart = max(
        ((weights[key] - own[key]).abs().max() / own[key].abs().max().clamp(min=1e-3)).item()
        for key in weights
    )
    missing = [
        key for key, tensor in own.items() if key not in weights and tensor.is_floating_point()
    ]

    tools.load_file(module, os.path.join(folder, "out.safetensors"))
    module.eval()
    tests = {
        key: torch.from_numpy(numpy.load(os.path.join(folder, "test", f"{key}.npy")))
        for key in batch
    }
    with torch.no_grad():
        total = (
            sum(
                loss_of(module, loss, {k: v[i : i + nets.ROWS] for k, v in tests.items()}).item()
                for i in (0, nets.ROWS)
            )
            / 2
        )
    tested = abs(result["test_loss"] - total) / max(1.0, abs(total))
    result["unsteady"] = unsteady
    return worst, apart, tested, missing, result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "thimble"))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--onnx", action="store_true", help="by way of ONNX files")
    parser.add_argument("--dynamo", action="store_true", help="those of PyTorch's newer exporter")
    parser.add_argument("--more", action="store_true", help="other small nets of both libraries")
    parser.add_argument("--full", action="store_true", help="as published, not tiny")
    parser.add_argument("--double", action="store_true", help="PyTorch in fp64 beside PyTorch, too")
    parser.add_argument("--size", type=int, help="pictures of this many pixels a side, not the net's")
    parser.add_argument("--length", type=int, help="rows of this many tokens, not the net's")
    parser.add_argument("--rate", type=float, default=1e-5)
    parser.add_argument("--keep", help="folder to keep the files in")
    parser.add_argument("nets", nargs="*")
    args = parser.parse_args()
    failed = []
    usual = nets.DYNAMO if args.dynamo else nets.ONNX if args.onnx else list(nets.NETS)
    if args.more:
        from more_nets import QUICK as usual
    for name in args.nets or usual:
        with tempfile.TemporaryDirectory() as temporary:
            folder = temporary
            if args.keep:
                folder = os.path.join(args.keep, name)
                subprocess.run(["rm", "-rf", folder])
                os.makedirs(folder)
            try:
                worst, apart, tested, missing, result = compare(
                    name,
                    args.program,
                    args.steps,
                    folder,
                    args.rate,
                    onnx=args.onnx or args.dynamo,
                    dynamo=args.dynamo,
                    double=args.double,
                    full=args.full,
                    size=args.size,
                    length=args.length,
                )
            except Exception as error:
                print(f"{name:16} FAILED {type(error).__name__}: {error}", flush=True)
                failed.append(name)
                continue
        good = worst <= MOST and tested <= MOST
        unsteady = f"  PyTorch from fp64 {result['unsteady']:.1e}" if args.double else ""
        print(
            f"{name:16} loss {worst:.1e}  weights {apart:.1e}  test {tested:.1e}  arena {result['arena_bytes']:>12}"
            f"{unsteady}  {'ok' if good else 'APART'}{'  not exported: ' + ' '.join(missing[:5]) if missing else ''}",
            flush=True,
        )
        if not good:
            failed.append(name)
    if failed:
        print("failed:", " ".join(failed))
        sys.exit(1)


if __name__ == "__main__":
    main()
