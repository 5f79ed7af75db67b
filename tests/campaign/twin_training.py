"""The effect of a training step on weights, from docs/cli.md and the papers: optimizers and schedules.

Adafactor as documented: rows are the first axis of a weight, columns all others together. There is
no parameter scaling, updates are clipped at an RMS of 1, and second moments decay by 1 - step^-0.8.
Weights with one axis have a moment per element.
"""
import math

import torch


class Adafactor(torch.optim.Optimizer):
    def __init__(self, weights, lr, weight_decay=0):
        super().__init__(weights, {"lr": lr, "weight_decay": weight_decay})
        self.steps = 0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        keep = 1 - self.steps ** -0.8
        for group in self.param_groups:
            for w in group["params"]:
                squares = w.grad.square() + 1e-30
                state = self.state[w]
                if w.dim() == 1:
                    v = state["v"] = keep * state.get("v", 0) + (1 - keep) * squares
                else:  # convolutions are [O,I,kH,kW] here: columns in another order, the same set
                    flat = squares.flatten(1)
                    for name, axis in (("rows", 1), ("columns", 0)):
                        state[name] = keep * state.get(name, 0) + (1 - keep) * flat.mean(axis)
                    v = torch.outer(state["rows"] / state["rows"].mean(), state["columns"])
                    v = v.view_as(w)
                update = w.grad / v.sqrt()
                update /= max(1.0, update.square().mean().sqrt().item())
                w.mul_(1 - group["lr"] * group["weight_decay"])
                w.sub_(group["lr"] * update)


def make_optimizer(name, weights, lr, momentum, decay):
    if name in ("sgd", "nesterov"):
        return torch.optim.SGD(weights, lr, momentum, weight_decay=decay,
                               nesterov=name == "nesterov" and momentum > 0)
    if name == "adam":
        return torch.optim.Adam(weights, lr, weight_decay=decay)
    if name == "adamw":
        return torch.optim.AdamW(weights, lr, weight_decay=0.01 if decay is None else decay)
    return Adafactor(weights, lr, decay)


def rate(kind, base, step, warmup, total, milestones, factor):
    """Of step `step`, counted from 0; `warmup` and `milestones` in steps."""
    if step < warmup:
        return base * (step + 1) / (warmup + 1)
    if kind == "step":
        return base * factor ** sum(step >= at for at in milestones)
    if kind == "cosine":
        return base * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))
    if kind == "inverse-sqrt":  # begins at the base rate where the warm-up ends
        return base * math.sqrt((warmup + 1) / (step + 1))
    return base
