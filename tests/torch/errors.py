"""All parts that cannot be exported are named at once, with lines of the module's source. The rest is not touched."""

import sys

import parity  # first: it finds the package
import torch
import torch.nn.functional as F
from torch import nn

tools = parity.thimble_torch()


def said(module, loss, batch, training=True):
    try:
        tools.capture(module.train(training), loss, batch)
    except tools.CannotExport as error:
        return str(error)
    return ""


class Fancy(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Linear(4, 4)

    def forward(self, x):
        x = torch.cummax(self.table(x), 1).values
        return torch.sort(x, 1).values


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        x = self.layer(x)
        return x * 2 if x.sum() > 0 else x


class Runs(nn.Module):
    """Numbers without those that are like the one before."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        x = self.layer(x)
        return x * torch.unique_consecutive(x[0].detach().gt(0).long()).sum()


class Grows(nn.Module):
    """As many outputs as there are rows above zero."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        x = self.layer(x)
        return x[x[:, 0] > 0]


class Twice(nn.Module):
    """One batch norm behind two layers."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(4, 4), nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.second(self.norm(self.first(x))))


class Counts(nn.Module):
    """As many columns as there are rows above zero, sorted."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        x = self.layer(x)
        count = (x[:, 0] > 0).sum().item()
        torch._check(count <= 3)
        return torch.sort(x, 1).values.narrow(1, 0, count + 1).mean(1)


class Remembers(nn.Module):
    """A mean over all steps so far, which the exported graph would forget."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean.mul_(0.9).add_(0.1 * x.mean(0))
        return self.layer(x - self.mean)


class Views(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        x = self.layer(x)
        y = x.view(-1, 2, 2)
        x.mul_(2)
        return x + y.flatten(1)


class Writes(nn.Module):
    """A buffer that is what an op writes into."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        with torch.no_grad():
            torch.mean(x, 0, out=self.mean)
        return self.layer(x - self.mean)


class Normed(nn.Module):
    """A layer whose weight is divided by its largest singular value."""

    def __init__(self, norm):
        super().__init__()
        self.layer = nn.Sequential(norm(nn.Linear(4, 4)))

    def forward(self, x):
        return self.layer(x)


class Mixes(torch.autograd.Function):
    """Gives each number the gradient of all of them."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, upstream):
        return upstream.sum(-1, keepdim=True).expand_as(upstream)


class Several(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round(), x.floor()

    @staticmethod
    def backward(ctx, first, second):
        return first + second


class Around(nn.Module):
    """A function of [N,4]."""

    def __init__(self, function):
        super().__init__()
        self.layer, self.function = nn.Linear(4, 4), function

    def forward(self, x):
        return self.function(self.layer(x))


class Statistics(nn.Module):
    """An instance norm that evaluates by what it saw."""

    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm1d(2, track_running_stats=True)
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.norm(self.layer(x).view(-1, 2, 2)).flatten(1)


CHANNELS, ORDER = "unsqueeze(1)", "puts the rows into another order"
REFUSED = {
    "max_pool1d without channels": (lambda x: F.max_pool1d(x, 2), CHANNELS),
    "avg_pool1d without channels": (lambda x: F.avg_pool1d(x, 2), CHANNELS),
    "adaptive_avg_pool1d without channels": (lambda x: F.adaptive_avg_pool1d(x, 2), CHANNELS),
    "adaptive_max_pool1d without channels": (lambda x: F.adaptive_max_pool1d(x, 2), CHANNELS),
    "the largest of the rows, and its place": (lambda x: x - x.max(0).values, "amax and amin"),
    "the smallest of the rows, and its place": (lambda x: x - x.min(0).values, "amax and amin"),
    "rows backwards": (lambda x: x.flip(0), ORDER),
    "rows rolled": (lambda x: x.roll(1, 0), ORDER),
    "rows in two parts": (lambda x: torch.cat(x.chunk(2, 0)[::-1]), "takes the rows apart"),
    "some of the rows": (lambda x: torch.cat([x, x], 0)[: x.shape[0]], "takes some of the rows"),
    "gradients that mix places": (Mixes.apply, "'Mixes'"),
    "gradients of several results": (lambda x: Several.apply(x)[0], "'Several'"),
    "a random order": (lambda x: x[:, torch.randperm(4)], "aten::randperm"),
    "a mask as an index": (lambda x: x.index_put((x > 0,), x[:, 0]), "torch.where"),
    "numbers added to other rows": (
        lambda x: x.index_add(0, torch.zeros(x.shape[0], dtype=torch.long), x),
        "adds to other rows",
    ),
    "numbers put into other rows": (
        lambda x: x.scatter(0, torch.zeros(x.shape[0], 4, dtype=torch.long), x),
        "writes to other rows",
    ),
    "the largest of what is scattered": (
        lambda x: x.scatter_reduce(1, torch.zeros(x.shape[0], 4, dtype=torch.long), x, "amax"),
        "'sum' and 'mean' can be",
    ),
    "a product over the rows": (lambda x: x.cumprod(0), "multiplies up over the rows"),
    "a number that the rows decide on": (
        lambda x: x * torch.ones(x.shape[0]).sum().item(),
        "a number that depends on how many rows",
    ),
}


def check(holds, what):
    print(("ok      " if holds else "FAILED  ") + what, flush=True)
    if not holds:
        check.failed = True


check.failed = False
batch = (torch.randn(3, 4), torch.randn(3, 4))

text = said(Fancy(), F.mse_loss, batch)
check(
    "aten::cummax" in text and "aten::sort" in text and text.count("errors.py:") == 2,
    "both ops, with their lines",
)
text = said(Branches(), F.mse_loss, batch)
check("cannot trace" in text and "torch.where" in text, "a branch on numbers")
check(said(Runs(), F.mse_loss, batch) != "", "unique_consecutive, of which a trace knows nothing")
check(said(Grows(), F.mse_loss, batch) != "", "a shape that depends on numbers")
text = said(Counts(), lambda output, target: F.mse_loss(output, target[:, 0]), batch)
check(
    "aten::item: its size, or a number" in text and "aten::sort" in text and text.count("\n") == 2,
    "a number that Python reads, and the rest beside it",
)
check("the buffer 'mean'" in said(Remembers(), F.mse_loss, batch), "a buffer that is changed")
text = said(Writes(), F.mse_loss, batch)
check("the buffer 'mean'" in text and text.count("errors.py:") == 1, "a buffer that is written into")
for norm, off in (
    (nn.utils.spectral_norm, "remove_spectral_norm(layer, 'weight')"),
    (nn.utils.parametrizations.spectral_norm, "remove_parametrizations(layer, 'weight')"),
):
    text = said(Normed(norm), F.mse_loss, batch)
    found = "spectral_norm of 'layer.0.weight'" in text and off in text and "errors.py:" in text
    check(found and text.count("\n") == 1, off)
text = said(Around(lambda x: x.view(-1, 3)), F.mse_loss, batch)
check(text != "" and "torch.where" not in text, "a hint for what it is of")
check("in place" in said(Views(), F.mse_loss, batch), "a view of what is changed in place")
check(
    "float16" in said(nn.Linear(4, 4), F.mse_loss, (batch[0].half(), batch[1])),
    "a type that cannot be fed",
)
check(
    "float64" in said(nn.Linear(4, 4).double(), F.mse_loss, batch)
    or said(nn.Linear(4, 4).double(), F.mse_loss, batch) != "",
    "parameters of another type",
)
text = said(Twice(), F.mse_loss, batch)
check("a layer of its own" in text and text.count("errors.py:") == 1, "statistics that move twice in a pass")
check(said(Twice().eval(), F.mse_loss, batch, training=False) == "", "statistics that stay, read twice")
check("track_running_stats=False" in said(Statistics(), F.mse_loss, batch), "instance norm with statistics")
for what, (function, sentence) in REFUSED.items():
    text = said(Around(function), lambda output, target: output.mean(), batch)
    check(sentence in text and text.count("errors.py:") == 1, what)

norm = nn.BatchNorm1d(4)
before = {key: value.clone() for key, value in norm.state_dict().items()}
tools.capture(norm.train(), F.mse_loss, batch)
check(
    all(torch.equal(before[key], value) for key, value in norm.state_dict().items()),
    "exporting changes nothing of the module",
)

optimizer = torch.optim.Adam(norm.parameters(), 1e-3, amsgrad=True)
try:
    tools.settings_of(optimizer)
    check(False, "an optimizer that is not there")
except tools.CannotExport as error:
    check("amsgrad" in str(error), "an optimizer that is not there")

sys.exit(1 if check.failed else 0)
