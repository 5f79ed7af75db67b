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


class Fed(Around):
    """A function of [N,4,16] and of whole numbers [N,4] from 0 to 15 that come with the records."""

    def __init__(self, function):
        super().__init__(lambda x: function(x, torch.zeros(x.shape[0], PLACES, dtype=torch.long)))
        self.fed = function

    def forward(self, x, places):
        return self.head(self.fed(torch.tanh(self.enter(x)), places).flatten(1))


class Last(nn.Module):
    """The last state of a recurrent layer."""

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


class Standardised(nn.Module):
    """A convolution of rows whose weight is normalised by itself, as those of BiT and NF-ResNet are."""

    def __init__(self, scale):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, PLACES, 3) + 0.3)
        self.gain = nn.Parameter(torch.linspace(0.5, 1.5, 6)) if scale else None

    def forward(self, x):
        gain = None if self.gain is None else self.gain * 0.7
        flat = self.weight.reshape(1, 6, -1)
        weight = F.batch_norm(flat, None, None, weight=gain, training=True, momentum=0.0, eps=1e-6)
        return F.conv1d(x, weight.reshape_as(self.weight))


class Masked(nn.Module):
    """nn.Transformer with a mask for what it makes."""

    def __init__(self, mask):
        super().__init__()
        self.layers = nn.Transformer(WIDTH, 2, 1, 1, 16, 0.0, batch_first=True)
        self.mask = mask

    def forward(self, x):
        return self.layers(x, x.sin(), tgt_mask=self.mask(PLACES))


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


class PassThrough(torch.autograd.Function):
    """Rounds, and gives the gradient on as it is."""

    @staticmethod
    def forward(ctx, x):
        return torch.round(x * 4) / 4

    @staticmethod
    def backward(ctx, upstream):
        return upstream


class Surrogate(torch.autograd.Function):
    """A step, with the gradient of a smooth one."""

    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x)
        ctx.width = width
        return (x > 0).float()

    @staticmethod
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        return upstream / (1 + ctx.width * x.abs()) ** 2, None


class Doubled(torch.autograd.Function):
    """With the gradient of what it computes, and a context that is set up apart."""

    @staticmethod
    def forward(x, y):
        return 2 * x @ y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, upstream):
        x, y = ctx.saved_tensors
        return 2 * upstream @ y.transpose(1, 2), 2 * x.transpose(1, 2) @ upstream


def changed(x, change):
    """The tensor that an op in place leaves."""
    x = x * 1.0
    change(x)
    return x


@torch.no_grad()
def product_into(x, y):
    torch.mul(x, y, out=y)


def into_another(x):
    """By numbers that were written into a tensor, which has no gradient."""
    y = x.detach().sin()
    product_into(x, y)
    return x * y


def places(x, count=PLACES):
    """Other places of the last axis in every row, some of them twice, that numbers of the row decide on."""
    return (x.detach()[..., :count].abs() * 7).long() % WIDTH


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
    "scatter of a source": lambda x: x.scatter(-1, known((4, 5), 16)[None].expand(x.shape[0], 4, 5), x[..., :5] * 2),
    "scatter along another axis": lambda x: x.scatter(1, places(x, WIDTH)[:, :1] % PLACES, x[:, 2:3]),
    "scatter of a part": lambda x: x.scatter(-1, places(x)[:, 1:3, :1], x[:, :2, 3:4]),
    "scatter_add": lambda x: x.scatter_add(-1, places(x), x[..., 5:9]),
    "scatter_add to zeros": lambda x: torch.zeros(x.shape[0], 4, 7).scatter_add(-1, places(x) % 7, x[..., 5:9]),
    "scatter_add along another axis": lambda x: x.scatter_add(1, places(x, 16) % PLACES, x.sin()),
    "scatter_add of a part": lambda x: x.scatter_add(-1, places(x)[:, :2, :3], x[:, :2, 2:5]),
    "scatter_reduce by the mean": lambda x: x.scatter_reduce(-1, places(x), x[..., 5:9], "mean", include_self=False),
    "gather by computed numbers": lambda x: x.gather(-1, places(x)),
    "gather along another axis": lambda x: x.gather(1, places(x, 16)[:, :3] % PLACES),
    "gather of a part": lambda x: x.gather(-1, places(x)[:, 1:3]),
    "gather of the infinite": lambda x: torch.where(x > 0, x, float("-inf")).gather(-1, x.argmax(-1, keepdim=True)),
    "index_add": lambda x: x.index_add(2, torch.tensor([3, 0, 3, 15]), x[..., 4:8].cos(), alpha=0.5),
    "index_add along another axis": lambda x: torch.zeros(x.shape[0], 3, WIDTH).index_add(1, torch.tensor([2, 0, 2, 2]), x),
    "index_add over the rows": lambda x: x
    + torch.zeros(3, WIDTH).index_add(0, x[:, 0, 0].detach().gt(0).long(), x[:, 1])[1:2],
    "index_copy": lambda x: x.index_copy(2, torch.tensor([3, 0, 15]), x[..., 4:7].cos()),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([2, 0]), 0.25),
    "index_put": lambda x: changed(x, lambda y: y.__setitem__((slice(None), [3, 1], [2, 5]), x[:, 0, :2])),
    "index_put of one axis": lambda x: changed(x, lambda y: y.__setitem__((slice(None), [3, 1]), 0.5)),
    "index_put of each row": lambda x: x.index_put((torch.arange(x.shape[0]), places(x)[:, 0, 0] % PLACES), x[:, 1].sin()),
    "index_put that adds": lambda x: x.transpose(0, 1)
    .index_put((torch.tensor([1, 1, 2]),), x.transpose(0, 1)[:3].sin(), accumulate=True)
    .transpose(0, 1),
    "index_put by a mask": lambda x: changed(x, lambda y: y.__setitem__(x > 0.5, 0.0)),
    "cumsum": lambda x: x.cumsum(1) + x.cumsum(-1),
    "cumprod": lambda x: torch.cumprod(1 + x, -1),
    "cumprod with zeros": lambda x: torch.cumprod(F.relu(x), -1) + torch.cumprod(x * (x > -0.3), 1),
    "prod of many": lambda x: (1 + x.flatten(1).repeat(1, 2) * 0.05).prod(-1, keepdim=True) * x[:, 0],
    "round": lambda x: x * torch.round(x * 3),
    "round alone": lambda x: torch.cat([x, torch.round(x * 3)], -1),
    "round to decimals": lambda x: x * torch.round(x, decimals=1),
    "floor, ceil and trunc": lambda x: x * (torch.floor(x * 3) + torch.ceil(x * 5) + torch.trunc(x * 7)),
    "frac": lambda x: torch.frac(x * 3),
    "straight through": lambda x: x + (torch.round(x * 4) / 4 - x).detach(),
    "straight through, by a Function": PassThrough.apply,
    "a gradient of its own": lambda x: Surrogate.apply(x, 3.0),
    "a gradient that is derived": lambda x: Doubled.apply(x, x.transpose(1, 2)),
    "fake_quantize": lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 1, -4, 3),
    "fake_quantize of channels": lambda x: torch.fake_quantize_per_channel_affine(
        x, torch.tensor([0.1, 0.2, 0.05, 0.1]), torch.tensor([0, 1, 0, 2], dtype=torch.int32), 1, -4, 3
    ),
    "out": into_another,
    "attention with wide values": lambda x: F.scaled_dot_product_attention(
        x[..., :2].unflatten(-1, (1, 2)).transpose(1, 2), x[..., 2:4].unsqueeze(1), x.unsqueeze(1), is_causal=True
    ),
    "attention with narrow values": lambda x: F.scaled_dot_product_attention(
        x[..., :8].unflatten(-1, (2, 4)).transpose(1, 2),
        x[..., 8:].unflatten(-1, (2, 4)).transpose(1, 2),
        x[..., :6].unflatten(-1, (2, 3)).transpose(1, 2),
    ),
    "attention with wide values and a mask": lambda x: F.scaled_dot_product_attention(
        x[..., :2].unsqueeze(1), x[..., 2:4].unsqueeze(1), x.unsqueeze(1), torch.arange(16.0).reshape(4, 4) / 8
    ),
    "attention of groups with a mask": lambda x: F.scaled_dot_product_attention(
        x.unflatten(-1, (4, 4)).transpose(1, 2),
        x[..., :8].unflatten(-1, (2, 4)).transpose(1, 2),
        x[..., 8:].unflatten(-1, (2, 4)).transpose(1, 2),
        torch.arange(16.0).reshape(4, 4) / 8,
        enable_gqa=True,
    ),
    "attention of windows": lambda x: F.scaled_dot_product_attention(
        *(part.unflatten(-1, (2, 4)).unflatten(1, (2, 2)).transpose(2, 3) for part in (x[..., :8], x[..., 8:], x[..., 4:12]))
    ),
    "attention of windows with a mask": lambda x: F.scaled_dot_product_attention(
        *(part.unflatten(-1, (2, 4)).unflatten(1, (2, 2)).transpose(2, 3) for part in (x[..., :8], x[..., 8:], x[..., 4:12])),
        attn_mask=torch.arange(8.0).reshape(2, 1, 2, 2) / 8,
    ),
    "topk": lambda x: torch.cat([x.topk(3).values, x.topk(2, largest=False).values], -1),
    "topk of a middle axis": lambda x: x.topk(2, dim=1).values * x.topk(2, dim=1).indices,
    "topk of many": lambda x: x.topk(11).values * x.topk(11).indices,
    "topk of infinities": lambda x: x.gather(-1, torch.where(x > 0, x, float("-inf")).topk(1).indices),
    "topk of more than are finite": lambda x: x
    * torch.zeros_like(x)  # the same number of places, whichever they are
    .scatter(-1, torch.where(torch.arange(16) % 4 == 2, x, float("-inf")).topk(7).indices, 1.0)
    .sum(-1, keepdim=True),
    "topk of computed infinities": lambda x: x
    * torch.zeros_like(x).scatter(-1, torch.log(F.relu(x - 0.3)).topk(8).indices, 1.0).sum(-1, keepdim=True),
    "sort": lambda x: x.sort(-1, descending=True).values * torch.arange(16),
    "sort of a middle axis": lambda x: x.sort(1).values * x.argsort(1),
    "sort of equal numbers": lambda x: x * (x > 0).float().sort(dim=-1, stable=True).indices,
    "median": lambda x: x.kthvalue(5).values,
    "other places of each row": lambda x: x[torch.arange(x.shape[0])[:, None], places(x)[:, 0] % PLACES],
    "places of each row from the end": lambda x: x[torch.arange(x.shape[0])[:, None], places(x)[:, 0] % PLACES - PLACES],
    "a place of each row from the end": lambda x: x[:, 0][torch.arange(x.shape[0]), places(x)[:, 0, 0] - WIDTH][:, None],
    "a place of each row": lambda x: x[:, 0][torch.arange(x.shape[0]), places(x)[:, 0, 0]][:, None],
    "fft": lambda x: torch.fft.fft(x, dim=1).real + torch.fft.fftn(x, dim=(1, 2), norm="ortho").imag,
    "rfft, a filter, irfft": lambda x: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(torch.arange(16.0)), n=16),
    "rfft2, a filter, irfft2": lambda x: torch.fft.irfft2(
        torch.fft.rfft2(x, norm="ortho") * torch.view_as_complex(torch.arange(18.0).reshape(9, 2) / 9), s=(4, 16), norm="ortho"
    ),
    "sizes of frequencies": lambda x: torch.fft.rfft(x).abs() + torch.fft.ifft(x, dim=1)[..., :9].real,
    "complex rotations": lambda x: torch.view_as_real(
        torch.view_as_complex(x.unflatten(-1, (8, 2))) * torch.polar(torch.ones(4, 8), torch.arange(32.0).reshape(4, 8))
    ).flatten(2),
    "acos, asin and atan": lambda x: torch.acos(x * 0.9) + torch.asin(x * 0.9) + torch.atan(3 * x),
    "attention without heads": lambda x: F.scaled_dot_product_attention(x, x, x),
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

FED = {
    "gather by fed numbers": lambda x, i: x.gather(2, i[:, :, None].expand(-1, -1, 3)),
    "gather of the rows' own": lambda x, i: x.gather(1, i[:, :, None].expand(-1, -1, WIDTH) % PLACES),
    "scatter by fed numbers": lambda x, i: x.scatter(2, i[:, :, None], x[..., 3:4].sin()),
    "scatter_add by fed numbers": lambda x, i: x.scatter_add(2, i[:, None].expand(-1, PLACES, -1), x[..., 5:9]),
    "scatter_add of slices": lambda x, i: torch.zeros_like(x).scatter_add(
        1, (i % PLACES)[:, :, None].expand_as(x), x.sin()
    ),
    "index_add by fed numbers": lambda x, i: x + torch.zeros(WIDTH, WIDTH).index_add(0, i.flatten(), x.flatten(0, 1))[:4],
    "index_put by fed numbers": lambda x, i: x.index_put(
        (torch.arange(x.shape[0])[:, None], i[:, :1] % PLACES), x[:, 1:2].sin()
    ),
    "index_put that adds by fed numbers": lambda x, i: x.index_put(
        (torch.arange(x.shape[0]), i[:, 0] % PLACES), x[:, 1].sin(), accumulate=True
    ),
    "fed places of the rows": lambda x, i: x[torch.arange(x.shape[0]), i[:, 1] // 4],
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
    "weight standardisation": lambda: Standardised(False),
    "weight standardisation, scaled": lambda: Standardised(True),
    "Transformer with a mask": lambda: Masked(nn.Transformer.generate_square_subsequent_mask),
    "Transformer with a mask of bits": lambda: Masked(lambda n: torch.ones(n, n, dtype=torch.bool).triu(2)),
    "Transformer with other numbers": lambda: Masked(lambda n: torch.arange(n * n).reshape(n, n).sin()),
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
# From ONNX, too, which has ops for them.
IN_ONNX = {"gather", "scatter of a source", "index_put", "cumsum", "round", "weight standardisation"}
ALL = [*FUNCTIONS, *FED, *LAYERS, *OF_LABELS, *OF_NUMBERS]


def net(name, **_):
    torch.manual_seed(1)
    function = LAYERS[name]() if name in LAYERS else FUNCTIONS.get(name, torch.relu)
    loss = OF_LABELS.get(name) or OF_NUMBERS.get(name) or F.cross_entropy
    labels = torch.randint(0, CLASSES, (ROWS,))
    if name in FED:
        fed = torch.randint(0, WIDTH, (ROWS, PLACES))
        fed[0, 0], fed[0, 1] = 0, WIDTH - 1  # between which those of records lie
        return Fed(FED[name]).train(), loss, (torch.randn(ROWS, PLACES, 8), fed, labels)
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
                good = worst <= MOST and apart <= MOST and tested <= MOST
                if name in HALVES:
                    in_half = ("--precision", "fp16", "--overwrite")
                    halves = parity.compare(name, args.program, 4, folder, 1e-2, in_half)[0]
                    good = good and halves <= MOST_OF_HALVES
                if name in IN_ONNX:
                    onnx = parity.compare(name, args.program, 4, folder, 1e-2, ("--overwrite",), onnx=True)
                    good = good and max(onnx[:3]) <= MOST
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
