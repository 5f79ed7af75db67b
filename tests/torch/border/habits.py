"""Habits of modules beside their forward pass: layers that are shared, hooks, buffers and attributes that change, modes, branches."""

import torch
import torch.nn.functional as F
from torch import nn

from . import ROWS, batches, case, labels, of_images, of_vectors
from .patterns import small


@case("modules in lists, dicts and loops; one layer at several depths, one norm in two places")
def shared_layers():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict({"a": nn.Linear(8, 8), "b": nn.Linear(8, 8, bias=False)})
            self.gains = nn.ParameterList([nn.Parameter(torch.ones(8)) for _ in range(2)])
            self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 5)

        def forward(self, x):
            for gain in self.gains:
                for part in self.parts.values():
                    x = x + gain * torch.tanh(self.norm(part(self.norm(x))))
            return self.head(x) + F.linear(x, self.parts["b"].weight[:5])

    return Shared(), F.cross_entropy, of_vectors()


@case("a net's weights made by another net, FiLM, a bilinear form")
def made_weights():
    class Hyper(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights, self.film, self.form = nn.Linear(4, 24), nn.Linear(4, 12), nn.Bilinear(6, 4, 5)

        def forward(self, x, about):
            weights = self.weights(about).view(-1, 6, 4)
            x = torch.bmm(weights, x[:, :4, None])[..., 0]
            scale, shift = self.film(about).chunk(2, 1)
            return self.form(torch.tanh(x) * (1 + scale) + shift, about)

    return Hyper(), F.cross_entropy, batches(lambda: (torch.randn(ROWS, 8), torch.randn(ROWS, 4), labels(5)))


@case("forward hooks that change what they see, and one that keeps it for the loss")
def forward_hooks():
    class Hooked(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small()
            self.net[0].register_forward_hook(lambda _, given, made: made + given[0].mean(1, keepdim=True))
            self.net[2].register_forward_pre_hook(lambda _, given: (given[0] * 0.5,))
            self.net[1].register_forward_hook(self.keep)

        def keep(self, _, given, made):
            self.kept = made

        def forward(self, x, target):
            return F.cross_entropy(self.net(x), target) + 0.1 * self.kept.pow(2).mean()

    return Hooked(), None, batches(lambda: {"x": torch.randn(ROWS, 8), "target": labels(5)})


@case("a hook that changes a gradient", refused="register_hook")
def gradient_hooks():
    class Halved(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small()

        def forward(self, x):
            made = self.net[0](x)
            if made.requires_grad:
                made.register_hook(lambda gradient: gradient * 0.5)
            return self.net[2](torch.tanh(made))

    return Halved(), F.cross_entropy, of_vectors()


@case("a buffer counts steps, and nothing reads it")
def counted_steps():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small()
            self.register_buffer("steps", torch.zeros((), dtype=torch.long))

        def forward(self, x):
            self.steps += 1
            return self.net(x)

    return Counting(), F.cross_entropy, of_vectors()


@case("running means kept by hand in a buffer", refused="the buffer 'mean'")
def running_mean_by_hand():
    class Running(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small()
            self.register_buffer("mean", torch.zeros(8))

        def forward(self, x):
            with torch.no_grad():
                self.mean.mul_(0.9).add_(0.1 * x.mean(0))
            return self.net(x - self.mean)

    return Running(), F.cross_entropy, of_vectors()


@case("a queue of past codes (MoCo)", refused="the buffer 'queue'")
def queue():
    class Moco(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small(8, 6)
            self.register_buffer("queue", F.normalize(torch.randn(12, 6), dim=1))

        def forward(self, one, two):
            one, two = F.normalize(self.net(one), dim=1), F.normalize(self.net(two), dim=1).detach()
            logits = torch.cat([(one * two).sum(1, keepdim=True), one @ self.queue.clone().T], 1) / 0.2
            self.queue.copy_(torch.cat([two, self.queue[: -two.shape[0]]]))
            return F.cross_entropy(logits, torch.zeros(one.shape[0], dtype=torch.long))

    return Moco(), None, batches(lambda: {"one": torch.randn(ROWS, 8), "two": torch.randn(ROWS, 8)})


@case("a weight of the loss that Python counts up (annealing)", refused="passes before it have")
def annealed():
    class Annealed(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.steps = small(), 0

        def forward(self, x, target):
            if self.training:
                self.steps += 1
            share = min(1.0, self.steps / 50)
            made = self.net(x)
            return F.cross_entropy(made, target) + share * made.pow(2).mean()

    return Annealed(), None, batches(lambda: {"x": torch.randn(ROWS, 8), "target": labels(5)})


@case("layers left out by Python's random numbers", refused="random numbers of Python")
def layers_left_out():
    import random

    class Dropping(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.head = nn.Linear(8, 8), nn.Linear(8, 5)
            self.parts = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

        def forward(self, x):
            x = self.enter(x)
            for part in self.parts:
                if random.random() < 1e-9:
                    continue
                x = x + torch.tanh(part(x))
            return self.head(x)

    return Dropping(), F.cross_entropy, of_vectors()


@case("a weight that the forward pass clamps in place", refused="takes a tensor's data")
def clamped_weights():
    class Clamped(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small()

        def forward(self, x):
            self.net[0].weight.data.clamp_(-0.1, 0.1)
            return self.net(x)

    return Clamped(), F.cross_entropy, of_vectors()


@case("embeddings that are renormalised as they are read", refused="renorm")
def max_norm():
    class Renormed(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(11, 8, max_norm=1.0), nn.Linear(8, 5)

        def forward(self, tokens):
            return self.head(self.table(tokens).mean(1))

    return Renormed(), F.cross_entropy, batches(lambda: (labels(11, ROWS, 6), labels(5)))


@case("a branch on numbers of the batch", refused="torch.where")
def branches():
    class Branching(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = small(), small()

        def forward(self, x):
            if x.mean() > 0:
                return self.one(x)
            return self.two(x)

    return Branching(), F.cross_entropy, of_vectors()


@case("eval mode in the middle of training: dropout off, a norm by its statistics")
def mixed_modes():
    net = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Dropout(0.5), nn.Conv2d(6, 4, 3), nn.Flatten(), nn.Linear(64, 5))
    net[1].eval()
    net[3].eval()
    net[1].running_var.uniform_(0.5, 2)
    return net, F.cross_entropy, of_images()


@case("activation checkpoints of both kinds, and autocast that is off")
def checkpoints():
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential

    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = small(8, 8), small(8, 5)

        def forward(self, x):
            with torch.autocast("cpu", enabled=False):
                x = checkpoint(self.one, x, use_reentrant=False)
                return checkpoint_sequential(self.two, 2, x, use_reentrant=False)

    return Checkpointed(), F.cross_entropy, of_vectors()


@case("a half of the net in bfloat16 by autocast", refused="autocast")
def autocast():
    class Cast(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(8, 12), nn.Linear(12, 5)

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                x = torch.tanh(self.one(x))
            return self.two(x.float())

    return Cast(), F.cross_entropy, of_vectors()
