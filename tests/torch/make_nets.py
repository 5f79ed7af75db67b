"""Writes the small networks of tests/import/nets, some as ONNX too, and what PyTorch makes of them, for tests without it.

usage: make_nets.py [--program build/release/thimble]
"""

import argparse
import json
import os
import tempfile

import parity  # first: it finds the package
import torch
import torch.nn.functional as F
from torch import nn

FOLDER = parity.ROOT / "tests" / "import" / "nets"
STEPS = 8


class Pictures(nn.Module):
    """Convolutions of every kind, batch norm, pooling, gates; a frozen stem."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.deep = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8)
        self.gate = nn.Conv2d(8, 8, 1)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.head = nn.Linear(4 * 16, 5)
        self.stem.weight.requires_grad = False

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x)), inplace=True), 2)
        x = F.hardswish(self.deep(x))
        x = x * F.hardsigmoid(self.gate(F.adaptive_avg_pool2d(x, 1)))
        x = F.interpolate(self.up(x), (4, 4), mode="bilinear", align_corners=False)
        return self.head(torch.flatten(x, 1))


class Words(nn.Module):
    """A block of attention with a tied table, over tokens."""

    def __init__(self, width=8):
        super().__init__()
        self.table = nn.Embedding(11, width)
        self.places = nn.Parameter(torch.randn(6, width) * 0.1)
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.head = nn.Linear(width, 11, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        x = self.table(tokens) + self.places
        q, k, v = (
            part.view(*part.shape[:2], 2, -1).transpose(1, 2)
            for part in self.qkv(self.norm(x)).chunk(3, -1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(F.gelu(y.transpose(1, 2).flatten(2)))
        return self.head(x)


class Series(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 6, batch_first=True)
        self.head = nn.Linear(6, 2)

    def forward(self, series):
        states, _ = self.lstm(series)
        return self.head(states.mean(1))


class Sounds(nn.Module):
    """Made of ops that a network file has no name for: a GRU, windows of rows, lookups, prototypes that are compared to."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Conv1d(3, 8, 4, padding="same")
        self.gru = nn.GRU(8, 6, batch_first=True)
        self.prototypes = nn.Parameter(torch.randn(4, 6))

    def forward(self, series):
        x = F.max_pool1d(F.pad(self.enter(series), (1, 1), mode="reflect"), 3, 2)
        x = F.interpolate(x, 7, mode="linear")
        states, _ = self.gru(x.transpose(1, 2))
        together = (states @ states.transpose(1, 2))[:, [0, 1, 2], [4, 5, 6]]
        last = states[:, -1] * (1 + together.mean(1, keepdim=True))
        return 4 * F.cosine_similarity(last[:, None], self.prototypes, dim=-1)


def weighed(output, target):
    return F.cross_entropy(output, target, weight=torch.tensor([1.0, 2.0, 0.5, 1.0]))


def of_tokens(output, target):
    return F.cross_entropy(output.flatten(0, 1), target.flatten(), label_smoothing=0.1)


NETS = {
    "pictures": (Pictures, F.cross_entropy, (torch.randn(6, 3, 8, 8), torch.randint(0, 5, (6,)))),
    "words": (Words, of_tokens, (torch.randint(0, 11, (6, 6)), torch.randint(0, 11, (6, 6)))),
    "sounds": (Sounds, weighed, (torch.randn(6, 3, 10), torch.randint(0, 4, (6,)))),
    "series": (Series, F.smooth_l1_loss, (torch.randn(6, 20, 3), torch.randn(6, 2))),
}


class BatchNormFree(nn.Module):
    """Has none to fold, whatever its name."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 5)

    def forward(self, x):
        return self.head(self.conv(x).mean((2, 3)))


def export_folded():
    """Both exporters as they are usually called: batch norms are folded. Refused by `thimble train`, but for the last."""
    import onnx

    example = torch.randn(4, 3, 8, 8)
    for name, build, how in (
        ("folded", Pictures, dict(dynamo=False)),
        ("folded_dynamo", Pictures, dict(external_data=False)),
        ("norm_free", BatchNormFree, dict(external_data=False)),
    ):
        torch.manual_seed(3)
        module = build().train()
        module(example)  # statistics that fold to something
        path = str(FOLDER / f"{name}.onnx")
        torch.onnx.export(module.eval(), (example,), path, **how)
        model = onnx.load(path)
        for node in model.graph.node:  # lines of sources where it was exported
            kept = [note for note in node.metadata_props if "stack_trace" not in note.key]
            del node.metadata_props[:]
            node.metadata_props.extend(kept)
        onnx.save(model, path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(parity.ROOT / "build" / "release" / "thimble"))
    args = parser.parse_args()
    tools = parity.thimble_torch(args.program)
    FOLDER.mkdir(parents=True, exist_ok=True)
    export_folded()
    for name, (build, loss, example) in NETS.items():
        torch.manual_seed(3)
        module = build().train()
        decayed = [p for p in module.parameters() if p.requires_grad and p.ndim > 1]
        others = [p for p in module.parameters() if p.requires_grad and p.ndim <= 1]
        optimizer = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": 0.1},
                {"params": others, "lr": 2e-3, "weight_decay": 0.0},
            ],
            1e-3,
        )
        net = str(FOLDER / f"{name}.json")
        tools.export(module, loss, example, net, optimizer)
        settings = [
            f for key, value in tools.settings_of(optimizer).items() for f in (f"--{key}", value)
        ]
        with tempfile.TemporaryDirectory() as folder:
            result = json.loads(
                parity.run(
                    args.program,
                    "train",
                    net,
                    "--json",
                    "--losses",
                    "--data",
                    "noise",
                    "--seed",
                    4,
                    "--steps",
                    STEPS,
                    "--threads",
                    1,
                    "--no-eval",
                    "--out",
                    folder + "/run",
                    "--export-batches",
                    folder + "/batches",
                    *settings,
                )
            )
            losses = []
            batch, _ = tools.fields_of(module, loss, example)
            for step in range(STEPS):
                tensors = tools.read_safetensors(
                    os.path.join(folder, "batches", f"batch-{step:06}.safetensors")
                )
                fed = {
                    key: tensors[key] if tensors[key].is_floating_point() else tensors[key].long()
                    for key in batch
                }
                optimizer.zero_grad()
                value = parity.loss_of(module, loss, fed)
                value.backward()
                optimizer.step()
                losses.append(value.item())
        if name in ("pictures", "words"):
            parity.export_onnx(build().train(), loss, example, str(FOLDER / f"{name}.onnx"), False)
        worst = max(abs(a - b) for a, b in zip(losses, result["losses"]))
        print(name, "largest difference", worst)
        assert worst < 1e-5, (losses, result["losses"])
        (FOLDER / f"{name}.losses").write_text("\n".join(f"{value:.9g}" for value in losses) + "\n")


if __name__ == "__main__":
    main()
