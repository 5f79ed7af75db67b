"""Losses of training, step by step, against twins in PyTorch that compute in double.

usage: twins.py THIMBLE [--count 100] [--seconds 900] [--steps 6] [--only NAME]      needs PyTorch
A case is a command line; its twin starts from the weights that the program exported and is fed its
batches. `--count`: how many of the cases. tools/parity.py does the same for wrn with nesterov, for longer.
"""
import json
import pathlib
import struct
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import twin_nets
import twin_training
from parts import arguments_of, finish

# The program computes in single precision: a loss is off by some 1e-7 to begin with, and training
# multiplies that by at most ten or so over these few steps. Convolutions and norms sum over more
# terms. A wrong factor anywhere in an update is off by 1e-3 and more from the second step on.
SINGLE = 1e-5
# A number in 16 bits is off by 2^-11 (fp16) or 2^-8 (bf16); weights, activations and gradients all
# are, and the loss is a mean over rows: a few of those steps.
FP16, BF16 = 5e-3, 4e-2

CONV = ["--batch", "8"]
# Its last stage has one pixel an image, so that batch norm sees eight numbers: at a rate of 0.01
# PyTorch in single and in double part by 1e-3 within six steps, too.
RESNET = ["resnet:[1,1,1,1]", "--hidden", "16", "--image", "32,32,3", "--classes", "7", *CONV,
          "--lr", "0.002"]
UNET = ["unet", "--layers", "2", "--hidden", "4", *CONV]
LSTM = ["lstm", "--hidden", "12", "--length", "7", "--batch", "8"]
MLP = ["mlp", "--hidden", "24", "--batch", "16"]
CASES = {
    "resnet": [*RESNET],
    "resnet deeper": ["resnet:[2,1,2,1]", *RESNET[1:-1], "0.001", "--optimizer", "sgd"],
    "resnet group norm": [*RESNET, "--norm", "group"],
    "unet": [*UNET, "--lr", "0.01"],
    "unet group norm": [*UNET, "--norm", "group", "--lr", "0.01"],
    "lstm": [*LSTM],
    "lstm in runs": [*LSTM, "--steps-at-once", "3", "--layers", "3", "--optimizer", "adam"],
    "wrn group norm": ["wrn-10-1", *CONV, "--norm", "group", "--lr", "0.01"],
    "wrn microbatches": ["wrn-10-1", *CONV, "--microbatch", "3", "--lr", "0.01"],
    "wrn group, microbatches": ["wrn-10-1", *CONV, "--norm", "group", "--microbatch", "3",
                                "--lr", "0.01"],
    "mlp microbatches": [*MLP, "--microbatch", "5"],
    "sgd": [*MLP, "--optimizer", "sgd", "--weight-decay", "0.01"],
    "sgd, no momentum": [*MLP, "--optimizer", "sgd", "--momentum", "0"],
    "sgd folded": [*MLP, "--optimizer", "sgd", "--fold", "--microbatch", "4"],
    "nesterov": [*MLP, "--momentum", "0.7", "--weight-decay", "0.01"],
    "adam": [*MLP, "--optimizer", "adam", "--weight-decay", "0.01", "--lr", "0.01"],
    "adamw": [*MLP, "--optimizer", "adamw", "--lr", "0.01"],
    "adamw, decay": [*MLP, "--optimizer", "adamw", "--weight-decay", "0.3", "--lr", "0.01"],
    "adafactor": [*MLP, "--optimizer", "adafactor", "--lr", "0.01"],
    "adafactor, decay": [*MLP, "--optimizer", "adafactor", "--lr", "0.01", "--weight-decay", "0.3"],
    "adafactor, convolutions": [*UNET, "--optimizer", "adafactor", "--lr", "0.003"],
    "clipped": [*MLP, "--clip-norm", "0.3"],
    "clipped in two passes": [*MLP, "--clip-norm", "0.3", "--clip-two-pass"],
    "clipped, microbatches": [*MLP, "--clip-norm", "0.3", "--microbatch", "6"],
    "clipped, adam": [*MLP, "--clip-norm", "0.3", "--optimizer", "adam", "--weight-decay", "0.1"],
    "label smoothing": [*MLP, "--label-smoothing", "0.2"],
    "smoothing, resnet": [*RESNET, "--label-smoothing", "0.1"],
    **{f"{kind}{', warm-up' if warmup else ''}": [
        *MLP, "--schedule", kind, "--optimizer", "sgd",
        *(["--warmup", "0.034"] if warmup else []),
        *(["--milestones", "0.023,0.045", "--factor", "0.3"] if kind == "step" else [])]
       for kind in ("constant", "step", "cosine", "inverse-sqrt") for warmup in (False, True)},
    "sparse, sgd": [*MLP, "--density", "0.4", "--sparsity", "static", "--optimizer", "sgd"],
    "sparse, adam, clipped": [*MLP, "--density", "0.4", "--sparsity", "static", "--optimizer",
                              "adam", "--clip-norm", "0.3"],
    "density 1, adafactor": [*MLP, "--density", "1", "--optimizer", "adafactor", "--lr", "0.01"],
    "fp16": [*MLP, "--precision", "fp16", "--master"],
    "bf16": [*MLP, "--precision", "bf16", "--master"],
    "fp16, unet": [*UNET, "--precision", "fp16", "--lr", "0.01"],
    "bf16, lstm": [*LSTM, "--precision", "bf16"],
}
MAY_BE_REFUSED = {"density 1, adafactor"}  # or else it is the dense net's


def value(words, flag, default):
    return words[words.index(flag) + 1] if flag in words else default


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    types = {"F32": np.float32, "F16": np.float16, "U8": np.uint8, "I32": np.int32,
             "I64": np.int64}
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + at for at in entry["data_offsets"])
        raw = data[begin:end]
        if entry["dtype"] == "BF16":
            flat = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            flat = np.frombuffer(raw, types[entry["dtype"]])
        tensors[name] = torch.from_numpy(flat.reshape(entry["shape"]).copy())
    return tensors


def load_weights(path):
    """(weights, pixel statistics), in double; convolutions with their input axis in front."""
    tensors = {name: tensor.double() for name, tensor in read_safetensors(path).items()}
    pixel = {name: tensors.pop(name) for name in list(tensors) if name.startswith("pixel.")}
    weights = {name: tensor.permute(0, 3, 1, 2).contiguous() if tensor.dim() == 4 else tensor
               for name, tensor in tensors.items() if ".running_" not in name}
    return weights, pixel


def twin_losses(words, folder, steps, steps_per_epoch):
    weights, pixel = load_weights(folder / "start.safetensors")
    sparse = "--density" in words
    masks = {n: (w != 0).double() for n, w in weights.items()
             if sparse and w.dim() > 1 and n != "classifier.weight"}
    for w in weights.values():
        w.requires_grad_()
    optimizer = value(words, "--optimizer", "nesterov")
    base = float(value(words, "--lr", 0.001 if optimizer.startswith("ada") else 0.1))
    decay = value(words, "--weight-decay", None)
    decay = (None if optimizer == "adamw" else 0.0) if decay is None else float(decay)
    update = twin_training.make_optimizer(optimizer, list(weights.values()), base,
                                          float(value(words, "--momentum", 0.9)), decay)
    batch = int(value(words, "--batch", 0))
    net = twin_nets.net_of(words[0])
    losses = []
    for step in range(steps):
        parts = sorted(folder.glob(f"batches/batch-{step:06}*.safetensors"))
        update.zero_grad()
        loss = 0.0
        for part in map(read_safetensors, parts):
            if "pixels" in part:
                x = ((part["pixels"].double() - pixel["pixel.mean"])
                     * pixel["pixel.inverse_deviation"]).permute(0, 3, 1, 2)
            else:
                x = part["sequence"].double()
            each = F.cross_entropy(net(x, weights, value(words, "--norm", "batch")),
                                   part["labels"].long(), reduction="sum",
                                   label_smoothing=float(value(words, "--label-smoothing", 0)))
            (each / batch).backward()
            loss += each.item() / batch
        losses.append(loss)
        for name, mask in masks.items():
            weights[name].grad *= mask
        if "--clip-norm" in words:
            torch.nn.utils.clip_grad_norm_(weights.values(), float(value(words, "--clip-norm", 0)))
        marks = [round(float(at) * steps_per_epoch)
                 for at in value(words, "--milestones", "").split(",") if at]
        update.param_groups[0]["lr"] = twin_training.rate(
            value(words, "--schedule", "cosine"), base, step,
            round(float(value(words, "--warmup", 0)) * steps_per_epoch), steps, marks,
            float(value(words, "--factor", 0.2)))
        update.step()
    return losses


def run(program, report, count=100, seconds=900, steps=6, only=None):
    torch.set_num_threads(1)
    until = time.monotonic() + seconds
    print(f"  {'case':<26} {'worst difference':>16}  {'limit':>6}")
    for name, words in list(CASES.items())[:count]:
        if only and only != name:
            continue
        if time.monotonic() > until:
            report.skip(f"{name}: out of time")
            continue
        folder = program.folder / name.replace(" ", "-")
        folder.mkdir()
        command = [*words, "--threads", "1", "--steps", str(steps), "--no-eval", "--save-every",
                   "0", "--losses", "--out", str(folder / "out"), "--export-initial",
                   str(folder / "start.safetensors"), "--export-batches", str(folder / "batches")]
        outcome = program.run(["train", *command, "--json"], seconds=120)
        if name in MAY_BE_REFUSED and outcome.code == 2:
            print(f"  {name:<26} {'refused':>16}")
            continue
        if not report.check(outcome.code == 0, f"{name}: {outcome.ending()}; "
                            f"{outcome.last_words()}", program.command(command, "train")):
            continue
        result = outcome.json()
        per_epoch = round(steps / result["epochs"])
        theirs = twin_losses(words, folder, steps, per_epoch)
        worst = max(abs(a - b) / abs(b) for a, b in zip(result["losses"], theirs))
        limit = {"fp16": FP16, "bf16": BF16}.get(value(words, "--precision", ""), SINGLE)
        print(f"  {name:<26} {worst:>16.1e}  {limit:>6.0e}", flush=True)
        report.check(worst <= limit, f"{name}: losses differ by {worst:.1e}, limit {limit:.0e}",
                     program.command(command, "train"))


if __name__ == "__main__":
    arguments = arguments_of(__doc__, count=100, seconds=900.0, steps=6, only=None)
    sys.exit(finish("twins", run, arguments))
