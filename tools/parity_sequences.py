"""Losses of Thimble and PyTorch, step by step, of a translator and of a language model.

usage: parity_sequences.py --thimble build/release/thimble [--model dynamicconv|lightconv|lstm]
                           [--device cpu] [--steps 10] [--double]
       in an environment of its own:
         python3 -m venv VENV && VENV/bin/pip install torch numpy --extra-index-url \
           https://download.pytorch.org/whl/cpu
Thimble writes its initial weights and the batches that it trains on; PyTorch, with nets written from
the papers' description, loads both and takes the same steps: Adam, nothing dropped. Fails (exit 1)
when a loss differs by more than 1e-4, relatively.
"""
import argparse
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from parity_files import Agreement, read_safetensors  # noqa: E402

PAD = 0
SMOOTHING = 0.1


class TimeConv(nn.Module):
    """linear, a convolution whose softmaxed kernels a head's channels share, linear."""

    def __init__(self, width, heads, kernel, causal, dynamic):
        super().__init__()
        self.heads, self.kernel, self.dynamic = heads, kernel, dynamic
        self.left = kernel - 1 if causal else (kernel - 1) // 2
        self.add_module("in", nn.Linear(width, width))
        self.out = nn.Linear(width, width)
        self.kernels = nn.Parameter(torch.empty(heads * kernel, width) if dynamic
                                    else torch.empty(heads, kernel))

    def forward(self, x, present):
        x = getattr(self, "in")(x)
        n, t, c = x.shape
        if self.dynamic:
            taps = (x @ self.kernels.T).view(n, t, self.heads, self.kernel)
        else:
            taps = self.kernels.expand(n, t, -1, -1)
        taps = taps.softmax(-1)
        if present is not None:
            x = x * present.unsqueeze(-1)
        padded = F.pad(x, (0, 0, self.left, self.kernel - 1 - self.left))
        windows = padded.unfold(1, self.kernel, 1)  # [N,T,C,K]
        windows = windows.reshape(n, t, self.heads, c // self.heads, self.kernel)
        return self.out(torch.einsum("nthck,nthk->nthc", windows, taps).reshape(n, t, c))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        for name in ("query", "key", "value", "out"):
            self.add_module(name, nn.Linear(width, width))

    def forward(self, x, memory, present):
        def split(y):
            return y.view(y.shape[0], y.shape[1], self.heads, -1).transpose(1, 2)
        q, k, v = split(self.query(x)), split(self.key(memory)), split(self.value(memory))
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~present[:, None, None, :].bool(), -math.inf)
        y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Each part beside a shortcut, normalised behind."""

    def __init__(self, width, inner, heads, kernel, decoder, dynamic):
        super().__init__()
        self.conv = TimeConv(width, heads, kernel, decoder, dynamic)
        self.conv.norm = nn.LayerNorm(width)
        self.mlp = nn.Module()
        self.mlp.add_module("in", nn.Linear(width, inner))
        self.mlp.out = nn.Linear(inner, width)
        self.mlp.norm = nn.LayerNorm(width)
        if decoder:
            self.attention = Attention(width, heads)
            self.attention.norm = nn.LayerNorm(width)

    def forward(self, x, present, memory=None):
        x = self.conv.norm(x + self.conv(x, present if memory is None else None))
        if memory is not None:
            x = self.attention.norm(x + self.attention(x, memory, present))
        hidden = F.relu(getattr(self.mlp, "in")(x))
        return self.mlp.norm(x + self.mlp.out(hidden))


def positions(tokens, width, real):
    half = width // 2
    rates = torch.exp(torch.arange(half, dtype=torch.float64) * -(math.log(10000) / (half - 1)))
    place = torch.arange(tokens.shape[1], dtype=torch.float64) + PAD + 1
    angles = place[:, None] * rates
    table = torch.cat([angles.sin(), angles.cos()], 1).to(real)
    return table * (tokens != PAD).unsqueeze(-1)


class Stack(nn.Module):
    def __init__(self, words, width, inner, heads, kernels, decoder, dynamic):
        super().__init__()
        self.width = width
        self.tokens = nn.Embedding(words, width)
        for i, kernel in enumerate(kernels):
            self.add_module(f"layer{i}", Layer(width, inner, heads, kernel, decoder, dynamic))
        self.layers = len(kernels)

    def forward(self, tokens, present, memory=None):
        x = self.tokens(tokens) * math.sqrt(self.width) * (tokens != PAD).unsqueeze(-1)
        x = x + positions(tokens, self.width, x.dtype)
        for i in range(self.layers):
            x = getattr(self, f"layer{i}")(x, present, memory)
        return x


class Translator(nn.Module):
    def __init__(self, source, target, options, dynamic):
        super().__init__()
        width, heads = options["width"], options["heads"]
        kernels = [min(4 * 2**i - 1, options["kernel"]) for i in range(8)]
        self.encoder = Stack(source, width, 2 * width, heads, kernels[:options["encoder"]], False,
                             dynamic)
        self.decoder = Stack(target, width, 2 * width, heads, kernels[:options["decoder"]], True,
                             dynamic)
        self.head = nn.Linear(width, target, bias=False)

    def forward(self, batch):
        source, target = batch["source"].long(), batch["target_in"].long()
        places = torch.arange(source.shape[1])
        present = (places < batch["source_length"].long()[:, None]).to(self.head.weight.dtype)
        memory = self.encoder(source, present)
        return self.head(self.decoder(target, present, memory)), batch["targets"].long()


class LanguageModel(nn.Module):
    def __init__(self, words, layers, hidden):
        super().__init__()
        self.tokens = nn.Embedding(words, hidden)
        self.lstm = nn.LSTM(hidden, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, words, bias=False)

    def forward(self, batch):
        return self.head(self.lstm(self.tokens(batch["tokens"].long()))[0]), batch["targets"].long()


def load(net, tensors):
    """Our names into theirs; every parameter must be there once."""
    state, loaded = net.state_dict(), set()
    for name, tensor in tensors.items():
        value = torch.from_numpy(tensor)
        theirs = name.replace("conv.kernel.weight", "conv.kernels")
        if name.startswith("layer"):  # of the LSTM: one bias here, two there
            layer, part = name.split(".", 1)
            theirs = "lstm." + {"input.weight": "weight_ih", "recurrent.weight": "weight_hh",
                                "bias": "bias_ih"}[part] + f"_l{int(layer[5:]) - 1}"
            if part == "bias":
                other = theirs.replace("_ih", "_hh")
                state[other].zero_()
                loaded.add(other)
        state[theirs].copy_(value)
        loaded.add(theirs)
    assert loaded == set(state), loaded ^ set(state)


def make_pairs(thimble, folder):
    """Made-up sentences, translated word by word."""
    draw = random.Random(5)
    words = [[f"{side}{i}" for i in range(60)] for side in "st"]
    for split, count in (("train", 400), ("valid", 40)):
        with open(f"{folder}/{split}.s", "w") as source, open(f"{folder}/{split}.t", "w") as target:
            for _ in range(count):
                sentence = [draw.randrange(60) for _ in range(draw.randrange(4, 15))]
                print(*(words[0][i] for i in sentence), file=source)
                print(*(words[1][i] for i in reversed(sentence)), file=target)
    subprocess.run([thimble, "data", "pairs", "--train", f"{folder}/train.s", f"{folder}/train.t",
                    "--valid", f"{folder}/valid.s", f"{folder}/valid.t", "--out", folder],
                   check=True, capture_output=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--thimble", default="build/release/thimble")
    parser.add_argument("--model", default="dynamicconv", choices=("dynamicconv", "lightconv", "lstm"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--double", action="store_true", help="PyTorch computes in double")
    arguments = parser.parse_args()
    torch.manual_seed(0)

    with tempfile.TemporaryDirectory() as folder:
        start, batches = f"{folder}/start.safetensors", f"{folder}/batches"
        if arguments.model == "lstm":
            model = "lstm:layers=2,hidden=64,length=40,steps-at-once=16,reads=tokens,predicts=targets"
            data = ["--data", "copy", "--batch", "16"]
        else:
            make_pairs(arguments.thimble, folder)
            options = {"width": 64, "heads": 4, "encoder": 3, "decoder": 2, "kernel": 15}
            model = arguments.model + ":" + ",".join(f"{k}={v}" for k, v in options.items())
            model += ",length=16,dropout=0,attention-dropout=0,kernel-dropout=0"
            data = ["--data", "pairs", "--data-dir", folder, "--batch", "16",
                    "--label-smoothing", str(SMOOTHING)]
        # Where nothing is squared, Adam's first steps are signs: a large epsilon makes them numbers.
        command = [arguments.thimble, "train", model, *data, "--steps", str(arguments.steps),
                   "--optimizer", "adam", "--lr", str(arguments.lr), "--epsilon", "1e-4",
                   "--weight-decay", "0",
                   "--schedule", "constant", "--export-initial", start, "--export-batches", batches,
                   "--no-eval", "--save-every", "0", "--losses", "--json", "--device",
                   arguments.device, "--out", f"{folder}/out"]
        if arguments.device == "cuda":
            command += ["--tf32", "off"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(result.stderr)
        ours = json.loads(result.stdout)["losses"]
        tensors = read_safetensors(start)
        if arguments.model == "lstm":
            net = LanguageModel(len(tensors["tokens.weight"]), 2, 64)
            smoothing = 0.0
        else:
            net = Translator(len(tensors["encoder.tokens.weight"]), len(tensors["head.weight"]),
                             options, arguments.model == "dynamicconv")
            smoothing = SMOOTHING
        load(net, tensors)
        net.to(torch.float64 if arguments.double else torch.float32)
        # Of the two biases of an LSTM ours is the sum: one moves.
        moving = [p for name, p in net.named_parameters() if "bias_hh" not in name]
        optimizer = torch.optim.Adam(moving, arguments.lr, eps=1e-4)

        def loss_of(batch):
            logits, targets = net(batch)
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1,
                                   label_smoothing=smoothing)

        agreement = Agreement()
        agreement.train(optimizer, batches, ours, loss_of)
    sys.exit(agreement.verdict())


if __name__ == "__main__":
    main()
