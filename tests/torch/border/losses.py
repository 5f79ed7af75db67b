"""Losses of classes and of numbers: how they count, weigh and mask."""

import torch
import torch.nn.functional as F
from torch import nn

from . import ROWS, adamw, batches, case, labels, of_tokens, of_vectors, some_ignored

WEIGHTS = torch.tensor([1.0, 2.0, 0.5, 3.0, 0.25])


def small(features=8, classes=5):
    return nn.Sequential(nn.Linear(features, 12), nn.Tanh(), nn.Linear(12, classes))


def numbers(width=5):
    """Vectors, and numbers to meet."""
    return batches(lambda: (torch.randn(ROWS, 8), torch.randn(ROWS, width)))


class Tagger(nn.Module):
    """A class for every token."""

    def __init__(self, vocabulary=11, classes=11):
        super().__init__()
        self.table, self.head = nn.Embedding(vocabulary, 8), nn.Linear(8, classes)

    def forward(self, tokens):
        return self.head(torch.tanh(self.table(tokens)))


@case("mean over rows")
def cross_entropy():
    return small(), F.cross_entropy, of_vectors()


@case("mean over rows, as a module, with AdamW", optimizer=adamw)
def cross_entropy_of_a_module():
    return small(), nn.CrossEntropyLoss(), of_vectors()


@case("a sum of weights per class underneath")
def class_weights():
    return small(), nn.CrossEntropyLoss(weight=WEIGHTS), of_vectors()


@case("class weights, smoothing and an ignored class at once")
def class_weights_smoothed_and_ignoring():
    loss = nn.CrossEntropyLoss(weight=WEIGHTS, label_smoothing=0.1, ignore_index=2)
    return small(), loss, of_vectors()


@case("label smoothing")
def label_smoothing():
    return small(), lambda o, t: F.cross_entropy(o, t, label_smoothing=0.1), of_vectors()


@case("labels of -100: other counts in every row, none in one")
def ignored_tokens():
    def loss(output, target):
        return F.cross_entropy(output.flatten(0, 1), target.flatten())

    return Tagger(), loss, [(x, some_ignored(y)) for x, y in of_tokens()]


@case("padding is class 0, and ignored")
def ignored_padding_of_class_0():
    def loss(output, target):
        return F.cross_entropy(output.transpose(1, 2), target, ignore_index=0)

    return Tagger(), loss, [(x, some_ignored(y, 0)) for x, y in of_tokens()]


@case("segmentation: a class for every pixel, 255 ignored")
def ignored_pixels():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 1))
    made = batches(lambda: (torch.randn(ROWS, 3, 6, 6), some_ignored(labels(4, ROWS, 6, 6), 255)))
    return net, nn.CrossEntropyLoss(ignore_index=255), made


@case("ignored, weighed and smoothed tokens")
def ignored_and_weighed_tokens():
    def loss(output, target):
        return F.cross_entropy(output.flatten(0, 1), target.flatten(), WEIGHTS, label_smoothing=0.2)

    made = [(x, some_ignored(y % 5)) for x, y in of_tokens()]
    return Tagger(classes=5), loss, made


@case("a sum of rows")
def summed_cross_entropy():
    return small(), lambda o, t: F.cross_entropy(o, t, reduction="sum"), of_vectors()


@case("a sum of tokens that count, and as many tokens of every row as there are")
def summed_over_tokens_that_count():
    def loss(output, target):
        each = F.cross_entropy(output.flatten(0, 1), target.flatten(), reduction="sum")
        return each / target.shape[0]

    return Tagger(), loss, [(x, some_ignored(y)) for x, y in of_tokens()]


@case("sum divided by the number of counted labels, by hand")
def sum_over_a_count_of_labels():
    def loss(output, target):
        each = F.cross_entropy(output.flatten(0, 1), target.flatten(), reduction="sum")
        return each / (target != -100).sum()

    return Tagger(), loss, [(x, some_ignored(y)) for x, y in of_tokens()]


@case("a mask divided by its sum, of at least one")
def masked_by_hand():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Tagger()

        def forward(self, tokens, mask, target):
            each = F.cross_entropy(self.net(tokens).transpose(1, 2), target, reduction="none")
            return (each * mask).sum() / mask.sum().clamp(min=1)

    def make():
        mask = (torch.arange(6) < torch.tensor([[6], [1], [0], [3], [5], [2]])).float()
        return {"tokens": labels(11, ROWS, 6), "mask": mask, "target": labels(11, ROWS, 6)}

    return Masked(), None, batches(make)


@case("means over a row's own tokens, then over rows")
def masked_in_each_row():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Tagger()

        def forward(self, tokens, mask, target):
            each = F.cross_entropy(self.net(tokens).transpose(1, 2), target, reduction="none")
            return ((each * mask).sum(1) / mask.sum(1).clamp(min=1)).mean()

    def make():
        mask = (torch.rand(ROWS, 6) < 0.6).float()
        return {"tokens": labels(11, ROWS, 6), "mask": mask, "target": labels(11, ROWS, 6)}

    return Masked(), None, batches(make)


@case("a weight for each record")
def weighed_records():
    class Weighed(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small()

        def forward(self, x, weight, target):
            return (F.cross_entropy(self.net(x), target, reduction="none") * weight).sum() / weight.sum()

    def make():
        return {"x": torch.randn(ROWS, 8), "weight": torch.rand(ROWS), "target": labels(5)}

    return Weighed(), None, batches(make)


@case("means over different counts, added up", apart="takes all labels to count", line=False)
def means_over_different_counts():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.guess = Tagger(), nn.Linear(8, 1)

        def forward(self, tokens):
            x = torch.tanh(self.net.table(tokens))
            return self.net.head(x), self.guess(x)

    def loss(output, target):
        logits, guess = output
        counted = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        return counted + 0.1 * (guess**2).mean()

    return Two(), loss, [(x, some_ignored(y)) for x, y in of_tokens()]


@case("focal loss of classes")
def focal():
    def loss(output, target):
        each = F.cross_entropy(output, target, reduction="none")
        return (0.25 * (1 - torch.exp(-each)) ** 2 * each).mean()

    return small(), loss, of_vectors()


@case("focal loss of RetinaNet, over the number of positives")
def focal_of_detectors():
    def loss(output, target):
        p = torch.sigmoid(output)
        each = F.binary_cross_entropy_with_logits(output, target, reduction="none")
        right = p * target + (1 - p) * (1 - target)
        alpha = 0.25 * target + 0.75 * (1 - target)
        return (alpha * (1 - right) ** 2 * each).sum() / target.sum().clamp(min=1.0)

    made = batches(lambda: (torch.randn(ROWS, 8), (torch.rand(ROWS, 5) < 0.3).float()))
    return small(), loss, made


@case("binary labels with pos_weight")
def bce_with_pos_weight():
    made = batches(lambda: (torch.randn(ROWS, 8), (torch.rand(ROWS, 5) < 0.3).float()))
    return small(), nn.BCEWithLogitsLoss(pos_weight=WEIGHTS), made


@case("probabilities and their binary cross-entropy")
def bce_of_probabilities():
    made = batches(lambda: (torch.randn(ROWS, 8), (torch.rand(ROWS, 1) < 0.5).float()))
    return nn.Sequential(small(classes=1), nn.Sigmoid()), nn.BCELoss(), made


@case("labels mixed by shares that come with the records (mixup)")
def mixup():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small()

        def forward(self, x, other, share, one, two):
            output = self.net(share * x + (1 - share) * other)
            each = share[:, 0] * F.cross_entropy(output, one, reduction="none")
            return (each + (1 - share[:, 0]) * F.cross_entropy(output, two, reduction="none")).mean()

    def make():
        x = torch.randn(ROWS, 8), torch.randn(ROWS, 8), torch.rand(ROWS, 1), labels(5), labels(5)
        return dict(zip(("x", "other", "share", "one", "two"), x))

    return Mixed(), None, batches(make)


@case("soft labels")
def soft_labels():
    made = [(x, F.softmax(2 * t, 1)) for x, t in numbers()]
    return small(), F.cross_entropy, made


@case("a distance from a smoothed one-hot")
def one_hot_squares():
    def loss(output, target):
        return ((F.softmax(output, -1) - F.one_hot(target, 5).float()) ** 2).sum(1).mean()

    return small(), loss, of_vectors()


@case("negative log-likelihood of a log-softmax, weighed")
def nll_of_log_softmax():
    net = nn.Sequential(small(), nn.LogSoftmax(1))
    return net, nn.NLLLoss(weight=WEIGHTS), of_vectors()


@case("squared errors, summed")
def mse_sum():
    return small(), nn.MSELoss(reduction="sum"), numbers()


@case("squared errors, over the rows alone")
def mse_over_rows():
    return small(), lambda o, t: ((o - t) ** 2).sum() / o.shape[0], numbers()


@case("the root of a mean", apart="no sum over rows")
def rmse():
    def loss(output, target):
        return torch.sqrt(F.mse_loss(output, target) + 1e-8)

    return small(), loss, numbers()


@case("huber and smooth L1")
def huber():
    def loss(output, target):
        return F.huber_loss(output, target, delta=0.5) + F.smooth_l1_loss(output, target, beta=0.3)

    return small(), loss, numbers()


@case("the logarithm of a hyperbolic cosine, and quantiles")
def log_cosh_and_quantiles():
    def loss(output, target):
        error = target - output
        pinball = torch.maximum(0.9 * error, -0.1 * error)
        return torch.log(torch.cosh(error)).mean() + pinball.mean()

    return small(), loss, numbers()


@case("Kullback-Leibler from a distribution")
def kl_batchmean():
    def loss(output, target):
        return F.kl_div(F.log_softmax(output, 1), F.softmax(target, 1), reduction="batchmean")

    return small(), loss, numbers()


@case("hinge of classes, and of signs")
def hinge():
    def loss(output, target):
        signs = 2.0 * F.one_hot(target, 5) - 1
        return F.multi_margin_loss(output, target) + F.relu(1 - output * signs).mean()

    return small(), loss, of_vectors()


@case("Gaussian and Poisson likelihoods")
def likelihoods():
    def loss(output, target):
        mean, spread, rate = output[:, :2], F.softplus(output[:, 2:4]) + 0.1, output[:, 4:]
        gauss = F.gaussian_nll_loss(mean, target[:, :2], spread)
        return gauss + F.poisson_nll_loss(rate, target[:, 4:].abs().round())

    return small(), loss, numbers()


@case("torch.distributions: log-likelihoods, an entropy, a divergence")
def distributions():
    def loss(output, target):
        normal = torch.distributions.Normal(output[:, :2], F.softplus(output[:, 2:4]) + 0.1)
        prior = torch.distributions.Normal(0.0, 1.0)
        chosen = torch.distributions.Categorical(logits=output)
        return (
            torch.distributions.kl_divergence(normal, prior).sum(1).mean()
            - normal.log_prob(target[:, :2]).mean()
            - chosen.log_prob(target.argmax(1)).mean()
            - 0.1 * chosen.entropy().mean()
        )

    return small(), loss, numbers()
