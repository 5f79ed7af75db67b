"""Small nets around one function of PyTorch's each, and around one loss each, trained for four steps beside PyTorch.

usage: functions.py [--program build/release/thimble] [NAME ...]

Each is there since a net may have it, and most have no op of their own in a network file: they are made of others.
"""

import argparse
import sys
import tempfile

import parity  # first: it finds the package
import nets
import torch
import torch.nn.functional as F
from torch import nn

ROWS, PLACES, WIDTH, CLASSES = 4, 4, 16, 5
MOST = 1e-5  # rounding, over four steps


class Around(nn.Module):
    """A function of [N,4,16], between two layers."""

    def __init__(self, function):
        super().__init__()
        self.enter, self.function = nn.Linear(8, WIDTH), function
        made = function(torch.randn(2, PLACES, WIDTH))
        self.head = nn.Linear(made.flatten(1).shape[1], CLASSES)

    def forward(self, x):
        return self.head(self.function(torch.tanh(self.enter(x))).flatten(1))


class Last(nn.Module):
    """What a recurrent layer gives last."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0][:, -1]


class Cells(nn.Module):
    """A cell, step by step."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        state = None
        for step in x.unbind(1):
            state = self.cell(step, state)
        return state[0] if isinstance(state, tuple) else state


class Scaled(nn.Module):
    """By a number that Python reads of a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.75))

    def forward(self, x):
        return x * self.scale.item()


def image(x):
    return x.unsqueeze(1)


def volume(x):
    return x.reshape(-1, 1, 4, 4, 4)


def gram(x):
    return x @ x.transpose(1, 2)


def known(shape, modulus):
    return (torch.arange(shape[0])[:, None] + torch.arange(shape[1])) % modulus


FUNCTIONS = {
    "cosine_similarity": lambda x: F.cosine_similarity(x[:, :2], x[:, 2:], dim=-1),
    "min": lambda x: x.min(-1).values,
    "amin": lambda x: x.amin(1),
    "max of all": lambda x: x / x.max(),
    "prod": lambda x: (1 + x * 0.1).prod(-1),
    "sign": lambda x: x * torch.sign(x),
    "any": lambda x: x * (x > 0).any(-1, keepdim=True),
    "all": lambda x: x * (x > -0.9).all(-1, keepdim=True),
    "count": lambda x: x * (x > 0).sum(-1, keepdim=True),
    "assert": lambda x: (torch._assert_async((x < 9).all()), x)[1],
    "logaddexp": lambda x: torch.logaddexp(x[:, :2], x[:, 2:]),
    "softshrink": lambda x: F.softshrink(x, 0.1),
    "celu": F.celu,
    "tan": torch.tan,
    "sinh": torch.sinh,
    "exp2": torch.exp2,
    "erfc": torch.erfc,
    "power of two": lambda x: 2.0**x,
    "clamp by tensors": lambda x: torch.clamp(x, min=torch.zeros(WIDTH)),
    "norm of order 3": lambda x: x.norm(3, dim=-1),
    "norm at zero": lambda x: (x * 0).norm(dim=-1) + x[..., 0],
    "norm of order 3 at zero": lambda x: (x * 0).norm(3, dim=-1) + x[..., 0],
    "std at zero": lambda x: (x * 0).std(-1) + x[..., 0],
    "norm of infinite order": lambda x: x.norm(float("inf"), dim=-1),
    "number that is known": lambda x: x * (torch.arange(3).sum().item() / 4),
    "number of rows": lambda x: x / x.shape[0],
    "windows": lambda x: x.unfold(1, 2, 1),
    "im2col": lambda x: F.unfold(image(x), (2, 3)),
    "col2im": lambda x: F.fold(F.unfold(image(x), (2, 3)), (PLACES, WIDTH), (2, 3)),
    "col2im, side by side": lambda x: F.fold(F.unfold(image(x), 2, stride=2), (PLACES, WIDTH), 2, stride=2),
    "clamp by infinity": lambda x: torch.clamp(x, 0.1, float("inf")),
    "gather": lambda x: x.gather(-1, known((4, 16), 16)[None].expand(x.shape[0], 4, 16)),
    "index of two axes": lambda x: x[:, torch.tensor([0, 1, 3]), torch.tensor([2, -5, 7])],
    "diagonal": lambda x: gram(x).diagonal(dim1=1, dim2=2),
    "diag_embed": torch.diag_embed,
    "one_hot": lambda x: x * F.one_hot(x.argmax(-1), WIDTH),
    "scatter": lambda x: x * torch.zeros_like(x).scatter(-1, x.argmax(-1, keepdim=True), 1.0),
    "linear": lambda x: F.interpolate(x, 8, mode="linear"),
    "bicubic": lambda x: F.interpolate(image(x), (7, 9), mode="bicubic"),
    "trilinear": lambda x: F.interpolate(volume(x), (6, 6, 6), mode="trilinear"),
    "antialias": lambda x: F.interpolate(image(x), (2, 9), mode="bilinear", antialias=True),
    "nearest-exact": lambda x: F.interpolate(image(x), (7, 9), mode="nearest-exact"),
    "bilinear by a factor": lambda x: F.interpolate(image(x)[..., :5], scale_factor=1.5, mode="bilinear"),
    "nearest by factors": lambda x: F.interpolate(image(x), scale_factor=(1.3, 0.7)),
    "nearest of rows": lambda x: F.interpolate(x, 32),
    "max_pool1d": lambda x: F.max_pool1d(x, 3, 2, 1),
    "max_pool1d of all": lambda x: F.max_pool1d(x, WIDTH),
    "avg_pool1d": lambda x: F.avg_pool1d(x, 2),
    "max_pool of 1 by 3": lambda x: F.max_pool2d(image(x), (1, 3), (1, 2)),
    "max_pool of 1 by 3, and the rest": lambda x: F.max_pool2d(image(x), (1, 3), (1, 2), ceil_mode=True),
    "avg_pool of 2 by 4": lambda x: F.avg_pool2d(image(x), (2, 4)),
    "avg_pool by another number": lambda x: F.avg_pool2d(image(x), (2, 4), divisor_override=3),
    "avg_pool not counting": lambda x: F.avg_pool2d(
        image(x), (1, 3), (1, 2), (0, 1), count_include_pad=False
    ),
    "adaptive_avg_pool1d": lambda x: F.adaptive_avg_pool1d(x, 5),
    "adaptive_max_pool1d": lambda x: F.adaptive_max_pool1d(x, 4),
    "lp_pool1d": lambda x: F.lp_pool1d(x.abs() + 0.1, 2, 2),
    "local_response_norm": lambda x: F.local_response_norm(x, 3),
    "reflect": lambda x: F.pad(x, (2, 2), mode="reflect"),
    "replicate": lambda x: F.pad(image(x), (2, 2, 1, 1), mode="replicate"),
    "circular": lambda x: F.pad(x, (2, 2), mode="circular"),
    "einsum of one": lambda x: torch.einsum("bij->bji", x),
    "einsum of three": lambda x: torch.einsum("bi,bj,bk->bijk", x[:, 0, :4], x[:, 1, :4], x[:, 2, :4]),
    "einsum with dots": lambda x: torch.einsum("...i,ij->...j", x, torch.ones(WIDTH, 3)),
    "einsum that sums": lambda x: torch.einsum("bij,bjk->bk", x, x.transpose(1, 2)),
    "product with a vector": lambda x: x @ torch.ones(WIDTH),
    "group_norm of rows": lambda x: F.group_norm(x, 2),
    "group_norm of volumes": lambda x: F.group_norm(x.reshape(-1, 4, 2, 2, 4), 2),
    "instance_norm of rows": F.instance_norm,
    "conv_transpose1d": lambda x: F.conv_transpose1d(x, torch.ones(4, 3, 4) / 9, stride=2, padding=1),
    "conv1d, even and same": lambda x: F.conv1d(x, torch.ones(3, 4, 4) / 9, padding="same"),
}

LAYERS = {
    "number of a buffer": Scaled,
    "GRU": lambda: Last(nn.GRU(WIDTH, 6, 2, batch_first=True)),
    "GRU in both directions": lambda: Last(nn.GRU(WIDTH, 6, batch_first=True, bidirectional=True)),
    "RNN": lambda: Last(nn.RNN(WIDTH, 6, batch_first=True)),
    "LSTM with a projection": lambda: Last(nn.LSTM(WIDTH, 6, proj_size=3, batch_first=True)),
    "GRUCell": lambda: Cells(nn.GRUCell(WIDTH, 6)),
    "LSTMCell": lambda: Cells(nn.LSTMCell(WIDTH, 6)),
    "TransformerEncoder": lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(WIDTH, 2, 16, 0.0, batch_first=True), 2
    ),
    "weight_norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(WIDTH, 6)),
}


def per_label(output, target):
    return F.cross_entropy(output, target, reduction="none")


def overlap(output, target):
    shares = F.softmax(output, 1)
    return 1 - 2 * (shares * F.one_hot(target, CLASSES)).sum() / (shares.sum() + target.shape[0])


WEIGHTS = torch.arange(1.0, CLASSES + 1)
OF_LABELS = {
    "cross-entropy, weighed": lambda o, t: F.cross_entropy(o, t, weight=WEIGHTS),
    "cross-entropy, weighed and smooth": lambda o, t: F.cross_entropy(
        o, t, weight=WEIGHTS, label_smoothing=0.1
    ),
    "cross-entropy, but for a label": lambda o, t: F.cross_entropy(o, t, WEIGHTS, ignore_index=2),
    "cross-entropy of each": lambda o, t: per_label(o, t).mean(),
    "focal": lambda o, t: ((1 - torch.exp(-per_label(o, t))) ** 2 * per_label(o, t)).mean(),
    "log-likelihood, gathered": lambda o, t: -F.log_softmax(o, -1).gather(1, t[:, None]).mean(),
    "squares of one_hot": lambda o, t: ((F.softmax(o, -1) - F.one_hot(t, CLASSES)) ** 2).mean(),
    "dice": overlap,
}
OF_NUMBERS = {
    "cross-entropy of shares": lambda o, t: F.cross_entropy(o, F.softmax(t, 1)),
    "cross-entropy of shares, smooth": lambda o, t: F.cross_entropy(
        o, F.softmax(t, 1), label_smoothing=0.1
    ),
    "bce": lambda o, t: F.binary_cross_entropy(torch.sigmoid(o), torch.sigmoid(t)),
    "bce of sure shares": lambda o, t: F.binary_cross_entropy(torch.sigmoid(o * 300), (t > 0).float()),
    "bce with pos_weight": lambda o, t: F.binary_cross_entropy_with_logits(
        o, torch.sigmoid(t), pos_weight=WEIGHTS
    ),
    "cosine_embedding": lambda o, t: F.cosine_embedding_loss(o, t, torch.ones(o.shape[0])),
    "poisson_nll": lambda o, t: F.poisson_nll_loss(o, t.abs()),
    "soft_margin": lambda o, t: F.soft_margin_loss(o, torch.sign(t)),
    "hinge_embedding": lambda o, t: F.hinge_embedding_loss(o, torch.sign(t)),
    "triplet_margin": lambda o, t: F.triplet_margin_loss(o, t, t + 1),
    "multilabel_soft_margin": lambda o, t: F.multilabel_soft_margin_loss(o, (t > 0).float()),
}
# In 16 bits, too: what stands in for the infinite there must not be so itself.
HALVES = {"max_pool of 1 by 3, and the rest", "norm at zero", "norm of order 3 at zero"}
MOST_OF_HALVES = 1e-2
ALL = [*FUNCTIONS, *LAYERS, *OF_LABELS, *OF_NUMBERS]


def net(name, **_):
    torch.manual_seed(1)
    function = LAYERS[name]() if name in LAYERS else FUNCTIONS.get(name, torch.relu)
    loss = OF_LABELS.get(name) or OF_NUMBERS.get(name) or F.cross_entropy
    labels = torch.randint(0, CLASSES, (ROWS,))
    target = torch.randn(ROWS, CLASSES) if name in OF_NUMBERS else labels
    return Around(function).train(), loss, (torch.randn(ROWS, PLACES, 8), target)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(parity.ROOT / "build" / "release" / "thimble"))
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    nets.net = net
    failed = []
    for name in args.names or ALL:
        with tempfile.TemporaryDirectory() as folder:
            try:
                worst, apart, tested, *_ = parity.compare(name, args.program, 4, folder, 1e-2)
                good = worst <= MOST and tested <= MOST
                if name in HALVES:
                    in_half = ("--precision", "fp16", "--overwrite")
                    halves = parity.compare(name, args.program, 4, folder, 1e-2, in_half)[0]
                    good = good and halves <= MOST_OF_HALVES
                print(f"{name:34} loss {worst:.1e}  weights {apart:.1e}  test {tested:.1e}", flush=True)
            except Exception as error:
                print(f"{name:34} FAILED {type(error).__name__}: {error}", flush=True)
                good = False
        failed += [] if good else [name]
    if failed:
        print("failed:", ", ".join(failed))
        sys.exit(1)


if __name__ == "__main__":
    main()
