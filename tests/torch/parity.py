"""Trains a net with Thimble and with PyTorch from the same weights on the same batches, and compares.

usage: parity.py [--program build/release/thimble] [--steps 20] [--rate 1e-5] [--onnx] [--dynamo] [--more] [--double]
                 [--precision bf16] [--fuse off] [--full [--size 128] [--length 32]] [NET ...]

For each net: export, plan, `thimble train` on arrays of random records with its batches written out,
PyTorch on those batches. Then the trained weights go into the module, whose own evaluation must agree
with Thimble's. Prints the largest difference of losses; exits 1 where one is above 1e-4. --double: and by how much
PyTorch itself differs from PyTorch in fp64 on those batches, which is what a net's own instability makes of rounding.

And the gradient of the first batch, tensor by tensor: the one that is furthest from fp64's, in units of PyTorch's own
distance from it; exits 1 where that is above MOST_GRADIENT. --precision bf16 or fp16: that alone, beside autocast.
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
# Two sums in different orders are two samples of the same rounding; PyTorch's may be the lucky one.
MOST_GRADIENT = 4
# A rate at which a step is nothing but the gradient: what the weight itself is rounded by is lost in it.
HUGE_RATE = 2.0**30
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


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


def gradients_of(module, loss, fed, precision="fp32"):
    """The loss of a step, its gradients by name, and the running statistics after it."""
    module.zero_grad()
    usual = torch.get_default_dtype()
    torch.set_default_dtype(next(module.parameters()).dtype)  # of tensors that it makes of a dtype's range
    try:
        with torch.autocast("cpu", DTYPES[precision], enabled=precision != "fp32"):
            value = loss_of(module, loss, fed)
        value.backward()
    finally:
        torch.set_default_dtype(usual)
    made = {}
    for key, tensor in module.state_dict(keep_vars=True).items():
        is_statistic = not isinstance(tensor, torch.nn.Parameter)
        made[key] = tensor if is_statistic else torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
    return value.item(), {key: tensor.detach().double() for key, tensor in made.items()}


def distances(mine, theirs, exact, sizes, epsilon):
    """By tensor, how far it is from fp64's, in units of PyTorch's own distance.

    A distance says nothing below a rounding of the tensor, of the weight whose step it is read from, and of terms that
    cancel in it. In a running mean these are as large as the deviation."""
    largest = max(tensor.norm() for tensor in exact.values())
    times = {}
    for key, tensor in mine.items():
        floor = epsilon * (exact[key].norm() + epsilon * largest) + sizes[key] * 2.0**-23 / HUGE_RATE
        if key.endswith("running_mean"):
            floor += epsilon * exact[key.removesuffix("mean") + "var"].sqrt().norm()
        ours, own = (tensor - exact[key]).norm(), (theirs[key] - exact[key]).norm()
        far = (ours / max(own, floor)).item() if ours != 0 else 0.0
        times[key] = far if far == far else float("inf")
    return times


def first_gradients(tools, program, net, folder, module, loss, batch, precision, flags):
    """The gradient that is furthest from fp64's (how far, its name), and how far both losses are.

    Where a number next to 0 is on its other side, a relu's gradient is another: that is so in one batch and not in
    the next, and what is wrong is wrong in all. So a tensor is as far as in the best of up to three batches."""
    settings = tools.settings_of(torch.optim.SGD(module.parameters(), HUGE_RATE))
    settings = [f for key, value in settings.items() for f in (f"--{key}", value)]
    if precision != "fp32":
        settings += ["--precision", precision, "--master"]
    start = {key: tensor.double().clone() for key, tensor in module.state_dict().items()}
    trained = dict(module.named_parameters(remove_duplicate=False))
    best, apart = {}, []
    for seed in range(3):
        out = os.path.join(folder, f"one{seed}")
        result = json.loads(
            run(program, "train", net, "--json", "--losses", *flags, "--steps", 1, "--seed", seed, "--no-eval",
                "--out", out, "--export-batches", out + ".batches", *settings)
        )
        run(program, "export", out, out + ".safetensors")
        stepped = tools.read_safetensors(out + ".safetensors")
        fed = fed_of(tools, batch, sorted(glob.glob(os.path.join(out + ".batches", "*")))[0])
        try:
            value, theirs = gradients_of(copy.deepcopy(module), loss, fed, precision)
        except RuntimeError:  # autocast cannot run it: then a few roundings of that type are what may be
            value, theirs = gradients_of(copy.deepcopy(module), loss, fed)
        wide = {key: tensor.double() if tensor.is_floating_point() else tensor for key, tensor in fed.items()}
        exact_value, exact = gradients_of(copy.deepcopy(module).double(), loss, wide)
        mine = {
            key: (start[key] - tensor.double()) / HUGE_RATE if key in trained else tensor.double()
            for key, tensor in stepped.items()
        }
        sizes = {key: start[key].norm() for key in mine}
        times = distances(mine, theirs, exact, sizes, torch.finfo(DTYPES[precision]).eps)
        best = {key: min(far, best.get(key, far)) for key, far in times.items()}
        apart = apart or [abs(one - exact_value) / max(1.0, abs(exact_value)) for one in (result["losses"][0], value)]
        if max(best.values()) <= MOST_GRADIENT:
            break
    return max((far, key) for key, far in best.items()), apart


def fed_of(tools, batch, path):
    """The tensors of a batch that was written out, as PyTorch wants them."""
    tensors = tools.read_safetensors(path)
    return {key: tensors[key] if tensors[key].is_floating_point() else tensors[key].long() for key in batch}


def compare(name, program, steps, folder, rate=1e-5, extra=(), onnx=False, dynamo=False, double=False,
            gradients=None, **sizes):
    """`gradients`: a precision to compare them in, too; in another than fp32 they are all that is compared."""
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
    data = ("--data", "npy", "--data-dir", folder, "--threads", 2, *extra)
    first = gradients and first_gradients(tools, program, net, folder, module, loss, batch, gradients, data)
    if gradients not in (None, "fp32"):
        return None, None, None, (), {"first": first}
    result = json.loads(
        run(
            program,
            "train",
            net,
            "--json",
            "--losses",
            *data,
            "--steps",
            steps,
            "--out",
            os.path.join(folder, "run"),
            "--export-batches",
            os.path.join(folder, "batches"),
            *settings,
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
        fed = fed_of(tools, batch, files[0] if len(files) == 1 else files[step])
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
    result["unsteady"], result["first"] = unsteady, first
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
    parser.add_argument("--precision", choices=DTYPES, default="fp32", help="gradients alone, beside autocast")
    parser.add_argument("--size", type=int, help="pictures of this many pixels a side, not the net's")
    parser.add_argument("--length", type=int, help="rows of this many tokens, not the net's")
    parser.add_argument("--fuse", choices=("on", "off"), default="on", help="off: every node as the file has it")
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
                worst, _, tested, missing, result = compare(
                    name,
                    args.program,
                    args.steps,
                    folder,
                    args.rate,
                    extra=() if args.fuse == "on" else ("--fuse", "off"),
                    onnx=args.onnx or args.dynamo,
                    dynamo=args.dynamo,
                    double=args.double,
                    gradients=args.precision,
                    full=args.full,
                    size=args.size,
                    length=args.length,
                )
            except Exception as error:
                print(f"{name:16} FAILED {type(error).__name__}: {error}", flush=True)
                failed.append(name)
                continue
        (times, tensor), (own, theirs) = result["first"]
        good = times <= MOST_GRADIENT
        told = f"{name:20} gradient {times:.2f} {tensor}, loss from fp64 {own:.1e} of {theirs:.1e}"
        if args.precision == "fp32":
            good &= worst <= MOST and tested <= MOST
            told += f"  loss {worst:.1e}  test {tested:.1e}  arena {result['arena_bytes']:>12}"
        if args.double:
            told += f"  PyTorch from fp64 {result['unsteady']:.1e}"
        if missing:
            told += f"  not exported: {' '.join(missing[:5])}"
        print(f"{told}  {'ok' if good else 'APART'}", flush=True)
        if not good:
            failed.append(name)
    if failed:
        print("failed:", " ".join(failed))
        sys.exit(1)


if __name__ == "__main__":
    main()
