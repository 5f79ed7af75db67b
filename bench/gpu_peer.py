"""PyTorch's side of bench/gpu.py: one variant a call, peak memory and step time as JSON.

usage: gpu_peer.py NAME    (--list: the names; --versions: what runs them, as JSON)
"NAME graph" replays the step as a CUDA graph.
"""
import contextlib
import json
import math
import statistics
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint_sequential

from wrn_peer import Block

HALF = torch.float16
RECORDING = False  # the step is recorded once and replayed as a CUDA graph


class Bottleneck(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        inner = outputs // 4
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, inner, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(inner)
        self.conv3 = nn.Conv2d(inner, outputs, 1, bias=False)
        same = inputs == outputs and stride == 1
        self.shortcut = None if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        h = F.relu(self.bn1(x), inplace=True)
        residual = x if self.shortcut is None else self.shortcut(h)
        h = F.relu(self.bn2(self.conv1(h)), inplace=True)
        h = F.relu(self.bn3(self.conv2(h)), inplace=True)
        return self.conv3(h) + residual


class ResidualNet(nn.Module):
    """Stem, blocks, head; `segments` above 0: the blocks are checkpointed in so many."""

    def __init__(self, stem, blocks, channels, classes, segments=0):
        super().__init__()
        self.stem, self.blocks, self.segments = stem, nn.Sequential(*blocks), segments
        self.bn = nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.stem(x)
        if self.segments:
            x = checkpoint_sequential(self.blocks, self.segments, x, use_reentrant=False)
        else:
            x = self.blocks(x)
        return self.head(F.relu(self.bn(x)).mean((2, 3)))


def stages(block, inputs, channels, counts):
    blocks = []
    for stage, (outputs, count) in enumerate(zip(channels, counts)):
        for i in range(count):
            blocks.append(block(inputs, outputs, 2 if stage and i == 0 else 1))
            inputs = outputs
    return blocks


def wide_resnet(segments=0):
    stem = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
    return ResidualNet(stem, stages(Block, 16, [32, 64, 128], [4, 4, 4]), 128, 10, segments)


def resnet_1001(segments=0):
    stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True),
                         nn.MaxPool2d(3, 2, 1))
    blocks = stages(Bottleneck, 64, [256, 512, 1024, 2048], [3, 48, 270, 12])
    return ResidualNet(stem, blocks, 2048, 1000, segments)


def compiled_with(model, budget):
    """Compiled; below 1, so that it keeps that share of its activations and recomputes the rest."""
    import torch._functorch.config  # not in every PyTorch that can do the rest

    torch._functorch.config.activation_memory_budget = budget
    return torch.compile(model)


def image_step(model, batch, size, classes, amp=None, microbatches=1, compile_budget=None):
    model = model.cuda().to(memory_format=torch.channels_last)
    x = torch.randn(batch, 3, size, size, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(0, classes, (batch,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, weight_decay=5e-4, fused=True)
    # A scaler asks the host whether to step, which a recording cannot do.
    scaler = torch.amp.GradScaler("cuda") if amp == HALF and not RECORDING else None
    forward = compiled_with(model, compile_budget) if compile_budget else model
    rows = batch // microbatches

    def step():
        optimizer.zero_grad(set_to_none=True)
        for i in range(microbatches):
            part = slice(i * rows, (i + 1) * rows)
            # Casts are not cached across a recording.
            with (torch.autocast("cuda", amp, cache_enabled=not RECORDING) if amp
                  else contextlib.nullcontext()):
                loss = F.cross_entropy(forward(x[part]).float(), y[part]) / microbatches
            (scaler.scale(loss) if scaler else loss).backward()
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()

    return step


def lstm_step(length, batch=64, hidden=1024, inputs=50, classes=5000, every=False):
    """Classes of the last state, or of every one."""
    net, head = nn.LSTM(inputs, hidden, 4).cuda(), nn.Linear(hidden, classes).cuda()
    optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], 0.01, 0.9, fused=True)
    x = torch.randn(length, batch, inputs, device="cuda")
    y = torch.randint(0, classes, (length * batch,) if every else (batch,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        states = net(x)[0]
        F.cross_entropy(head(states.flatten(0, 1) if every else states[-1]), y).backward()
        optimizer.step()

    return step


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (part.view(rows, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, 2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(rows, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """GPT-2: its head is its embedding."""

    def __init__(self, layers=12, width=768, heads=12, tokens=50257, length=1024):
        super().__init__()
        self.embed, self.place = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens, targets):
        x = self.embed(tokens) + self.place.weight
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.embed.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def gpt_step(batch=8, length=1024, compiled=False):
    model = Gpt().cuda()
    forward = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    tokens = torch.randint(0, 50257, (batch, length + 1), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=not RECORDING):
            loss = forward(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        optimizer.step()

    return step


CHECKPOINTS = int(math.sqrt(999)) // 2
VARIANTS = {
    "wrn fp32": lambda: image_step(wide_resnet(), 100, 32, 10),
    "wrn amp": lambda: image_step(wide_resnet(), 100, 32, 10, HALF),
    "wrn amp compile": lambda: image_step(wide_resnet(), 100, 32, 10, HALF, compile_budget=1),
    "wrn amp compile budget 0.5":
        lambda: image_step(wide_resnet(), 100, 32, 10, HALF, compile_budget=0.5),
    "wrn amp checkpoint microbatch": lambda: image_step(wide_resnet(4), 100, 32, 10, HALF, 10),
    "wrn amp microbatch": lambda: image_step(wide_resnet(), 100, 32, 10, HALF, 10),
    "resnet-1001 fp32": lambda: image_step(resnet_1001(), 32, 224, 1000),
    "resnet-1001 fp32 checkpoint": lambda: image_step(resnet_1001(CHECKPOINTS), 32, 224, 1000),
    "resnet-1001 amp": lambda: image_step(resnet_1001(), 32, 224, 1000, HALF),
    "resnet-1001 amp checkpoint": lambda: image_step(resnet_1001(CHECKPOINTS), 32, 224, 1000, HALF),
    "lstm fp32": lambda: lstm_step(2048),
    "lstm every fp32": lambda: lstm_step(2048, every=True),
    "gpt bf16": lambda: gpt_step(),
    "gpt bf16 compile": lambda: gpt_step(compiled=True),
}


def recorded(step):
    """The step as one launch: what a schedule that is known beforehand buys by itself."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def measure(name, steps=10, warm_up=3):
    global RECORDING
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    variant = name.removesuffix(" graph")
    RECORDING = variant != name
    step = VARIANTS[variant]()
    if RECORDING:
        step = recorded(step)
    if not name.startswith(("wrn", "gpt")):
        steps, warm_up = 4, 2
    for _ in range(warm_up):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(steps):
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        step()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return {"name": name, "step_ms": statistics.median(times),
            "peak_bytes": torch.cuda.max_memory_allocated()}


def versions():
    number = torch.backends.cudnn.version() or 0  # 91900: 9.19.0
    return {"torch": torch.__version__, "cuda": torch.version.cuda,
            "cudnn": f"{number // 10000}.{number // 100 % 100}.{number % 100}"}


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(VARIANTS))
    elif sys.argv[1:] == ["--versions"]:
        print(json.dumps(versions()))
    else:
        print(json.dumps(measure(sys.argv[1])))
