"""Losses of what overlaps, of ranks, of a batch as a whole, and those divided by themselves."""

import torch
import torch.nn.functional as F
from torch import nn

from . import ROWS, batches, case, labels, of_images, of_vectors
from .losses import Tagger, numbers, small


@case("dice of a whole batch", apart="no sum over rows")
def dice():
    def loss(output, target):
        p = torch.sigmoid(output)
        return 1 - (2 * (p * target).sum() + 1) / (p.sum() + target.sum() + 1)

    made = batches(lambda: (torch.randn(ROWS, 3, 6, 6), (torch.rand(ROWS, 1, 6, 6) < 0.4).float()))
    return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 1, 1)), loss, made


@case("dice of each image, and cross-entropy beside it")
def dice_of_each_image():
    def loss(output, target):
        p = torch.sigmoid(output).flatten(1)
        flat = target.flatten(1)
        each = 1 - (2 * (p * flat).sum(1) + 1) / (p.sum(1) + flat.sum(1) + 1)
        return each.mean() + F.binary_cross_entropy_with_logits(output, target)

    made = batches(lambda: (torch.randn(ROWS, 3, 6, 6), (torch.rand(ROWS, 1, 6, 6) < 0.4).float()))
    return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 1, 1)), loss, made


@case("Tversky index of classes, over the batch", apart="no sum over rows")
def tversky():
    def loss(output, target):
        p, hot = F.softmax(output, 1), F.one_hot(target, 5)
        hit, over, under = (p * hot).sum(0), (p * (1 - hot)).sum(0), ((1 - p) * hot).sum(0)
        return 1 - ((hit + 1) / (hit + 0.3 * over + 0.7 * under + 1)).mean()

    return small(), loss, of_vectors()


@case("the worst records alone", refused="topk")
def hard_examples():
    def loss(output, target):
        each = F.cross_entropy(output, target, reduction="none")
        return each.topk(2).values.mean()

    return small(), loss, of_vectors()


@case("Lovász: errors in their order", refused="aten::sort")
def lovasz():
    def loss(output, target):
        errors = 1 - output.gather(1, target[:, None]).flatten()
        ranked = torch.sort(errors, descending=True).values
        return F.relu(ranked).mean()

    return small(), loss, of_vectors()


@case("connectionist temporal classification", refused="ctc_loss")
def ctc():
    def loss(output, target):
        given = output.log_softmax(-1).transpose(0, 1)
        lengths = torch.full((output.shape[0],), output.shape[1]), torch.full((output.shape[0],), 3)
        return F.ctc_loss(given, target, *lengths)

    made = batches(lambda: (labels(11, ROWS, 8), 1 + labels(4, ROWS, 3)))
    return Tagger(classes=5), loss, made


@case("correlation over the batch", apart="no sum over rows")
def correlation():
    def loss(output, target):
        x, y = output - output.mean(0), target - target.mean(0)
        return 1 - ((x * y).sum(0) / (x.norm(dim=0) * y.norm(dim=0) + 1e-6)).mean()

    return small(), loss, numbers()


@case("a loss divided by its own size")
def normalised_by_itself():
    def loss(output, target):
        value = F.mse_loss(output, target)
        return value / value.detach()

    return small(), loss, numbers()


@case("a loss divided by a number that Python reads", refused="item")
def normalised_by_a_number():
    def loss(output, target):
        value = F.mse_loss(output, target)
        return value / value.item()

    return small(), loss, numbers()


@case("total variation and an L1 of activations beside it")
def total_variation():
    class Smooth(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.head = nn.Conv2d(3, 5, 3, padding=1), nn.Linear(5, 5)

        def forward(self, x):
            x = torch.tanh(self.enter(x))
            return self.head(x.mean((2, 3))), x

    def loss(output, target):
        logits, x = output
        rough = (x[..., 1:] - x[..., :-1]).abs().mean() + (x[..., 1:, :] - x[..., :-1, :]).pow(2).sum() / len(x)
        return F.cross_entropy(logits, target) + 0.1 * rough + 0.01 * x.abs().sum((1, 2, 3)).mean()

    return Smooth(), loss, of_images()
