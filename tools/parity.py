"""Losses of Thimble and PyTorch, step by step, from the same start on the same generated data.

usage: parity.py --thimble build/release/thimble [--steps 20] [--model wrn-28-2] [--batch 100]
Thimble writes its initial weights as safetensors and the batches it trains on; PyTorch loads both.
Fails (exit 1) when a loss differs by more than 1e-4, relatively.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
from parity_files import Agreement, read_safetensors  # noqa: E402
from wrn_peer import WideResNet  # noqa: E402


def load_into(net, tensors):
    """Thimble keeps convolution weights as [O,kH,kW,I]; PyTorch as [O,I,kH,kW]."""
    state = net.state_dict()
    for name, tensor in tensors.items():
        if name.startswith("pixel."):
            continue
        value = torch.from_numpy(tensor)
        state[name].copy_(value.permute(0, 3, 1, 2) if value.dim() == 4 else value)
    missing = [n for n in state if n not in tensors and not n.endswith("num_batches_tracked")]
    assert not missing, missing


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--thimble", default="build/release/thimble")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--model", default="wrn-28-2")
    parser.add_argument("--batch", type=int, default=100)
    # Small enough that rounding is not blown up by training itself: at 0.1 PyTorch in float and
    # PyTorch in double part by 1e-4 within three steps, too.
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--double", action="store_true", help="PyTorch computes in double")
    arguments = parser.parse_args()
    depth, width = (int(n) for n in arguments.model.split("-")[1:])

    with tempfile.TemporaryDirectory() as folder:
        start, batches = f"{folder}/start.safetensors", f"{folder}/batches"
        command = [arguments.thimble, "train", arguments.model, "--data", "generated",
                   "--batch", str(arguments.batch), "--steps", str(arguments.steps),
                   "--lr", str(arguments.lr), "--schedule", "constant", "--weight-decay", "5e-4",
                   "--export-initial", start, "--export-batches", batches, "--no-eval",
                   "--save-every", "0", "--losses", "--json", "--out", f"{folder}/out"]
        result = subprocess.run(command, check=True, capture_output=True, text=True)
        ours = json.loads(result.stdout)["losses"]
        tensors = read_safetensors(start)
        net = WideResNet(depth, width)
        load_into(net, tensors)
        real = torch.float64 if arguments.double else torch.float32
        net.to(real)
        optimizer = torch.optim.SGD(net.parameters(), arguments.lr, 0.9, weight_decay=5e-4,
                                    nesterov=True)
        mean = torch.from_numpy(tensors["pixel.mean"])
        inverse = torch.from_numpy(tensors["pixel.inverse_deviation"])

        def loss_of(batch):
            pixels = (batch["pixels"].float() - mean) * inverse
            return F.cross_entropy(net(pixels.permute(0, 3, 1, 2).to(real)),
                                   batch["labels"].long())

        agreement = Agreement()
        agreement.train(optimizer, batches, ours, loss_of)
    sys.exit(agreement.verdict())


if __name__ == "__main__":
    main()
