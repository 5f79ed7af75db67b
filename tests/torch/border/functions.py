"""Gradients that are written by hand or stopped, rounding, draws, and tensors that are changed, viewed and indexed."""

import torch
import torch.nn.functional as F
from torch import nn

from . import ROWS, batches, case, labels, of_images, of_series, of_vectors


class Between(nn.Module):
    """A function between two layers."""

    def __init__(self, function, width=12):
        super().__init__()
        self.one, self.two, self.function = nn.Linear(8, 12), nn.Linear(width, 5), function

    def forward(self, x, *more):
        return self.two(self.function(self.one(x), *more))


@case("gradient reversal for another domain (DANN)")
def gradient_reversal():
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, share):
            ctx.share = share
            return x.view_as(x)

        @staticmethod
        def backward(ctx, gradient):
            return -ctx.share * gradient, None

    class Domains(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head, self.domain = nn.Linear(8, 12), nn.Linear(12, 5), nn.Linear(12, 2)

        def forward(self, x, target, domain):
            x = torch.tanh(self.body(x))
            return F.cross_entropy(self.head(x), target) + F.cross_entropy(self.domain(Reverse.apply(x, 0.3)), domain)

    return Domains(), None, batches(lambda: {"x": torch.randn(ROWS, 8), "target": labels(5), "domain": labels(2)})


@case("a Function whose backward is the derivative, of two tensors")
def right_backward():
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight.T

        @staticmethod
        def backward(ctx, gradient):
            x, weight = ctx.saved_tensors
            return gradient @ weight, gradient.T @ x

    class Multiplied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.weight = nn.Linear(8, 12), nn.Parameter(torch.randn(5, 12) / 3)

        def forward(self, x):
            return Product.apply(torch.tanh(self.one(x)), self.weight)

    return Multiplied(), F.cross_entropy, of_vectors()


@case("Functions element by element: swish, a surrogate for spikes, a clipped gradient of one's own slope")
def elementwise_backwards():
    class Swish(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * torch.sigmoid(x)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            s = torch.sigmoid(x)
            return gradient * s * (1 + x * (1 - s))

    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x > 0).float()

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient / (1 + 5 * x.abs()) ** 2

    return Between(lambda x: Swish.apply(x) + Spike.apply(x - 0.1)), F.cross_entropy, of_vectors()


@case("a Function that clips the gradient that comes to it", refused="has a gradient of its own")
def clipping_backward():
    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient.clamp(-1e-3, 1e-3)

    class Clipped(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(8, 12), nn.Linear(12, 5)

        def forward(self, x):
            return self.two(Clip.apply(self.one(x)))

    return Clipped(), F.cross_entropy, of_vectors()


@case("a Function that normalises the gradient of each row", refused="mixes places")
def mixing_backward():
    class Normed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, gradient):
            return gradient / gradient.norm(dim=1, keepdim=True)

    def called(x):
        return Normed.apply(x)

    return Between(called), F.cross_entropy, of_vectors()


@case("rounding with a straight-through gradient: weights of 4 bits, activations of 3 (QAT)")
def straight_through():
    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    class Quantised(nn.Linear):
        def forward(self, x):
            scale = self.weight.detach().abs().amax() / 7
            weight = Rounded.apply(self.weight / scale) * scale
            x = x + ((x * 4).round().clamp(-4, 3) / 4 - x).detach()
            return F.linear(x, weight, self.bias)

    return nn.Sequential(nn.Linear(8, 12), nn.Tanh(), Quantised(12, 5)), F.cross_entropy, of_vectors()


@case("signs with a clipped straight-through gradient (binary nets)")
def binary_weights():
    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.where(x >= 0, 1.0, -1.0)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * (x.abs() <= 1).float()

    class Binary(nn.Linear):
        def forward(self, x):
            return F.linear(x, Sign.apply(self.weight) * self.weight.abs().mean(1, keepdim=True), self.bias)

    return nn.Sequential(nn.Linear(8, 12), nn.Hardtanh(), Binary(12, 5)), F.cross_entropy, of_vectors()


@case("Gumbel softmax, soft and hard")
def gumbel():
    class Chosen(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.codes, self.two = nn.Linear(8, 12), nn.Parameter(torch.randn(6, 4)), nn.Linear(8, 5)

        def forward(self, x):
            x = self.one(x).view(-1, 2, 6)
            shares = F.gumbel_softmax(x, tau=0.7)
            hard = F.gumbel_softmax(x, tau=0.7, hard=True)
            return self.two(((shares + hard) @ self.codes).flatten(1))

    return Chosen(), F.cross_entropy, of_vectors()


@case("noise of a known shape: of a layer's weights, of inputs, uniform and normal")
def noise():
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.spread = nn.Linear(8, 12), nn.Linear(12, 5), nn.Parameter(0.1 * torch.ones(5, 12))

        def forward(self, x):
            x = self.one(x + 0.1 * torch.randn_like(x))
            weight = self.two.weight + self.spread * torch.randn(5, 12)
            return F.linear(torch.tanh(x) * (1 + 0.2 * torch.rand(12)), weight, self.two.bias)

    return Noisy(), F.cross_entropy, of_vectors()


@case("tensors changed in place: sums, masks, slices, of views")
def in_place():
    def changed(x):
        x = x.clone()
        x.mul_(0.5).add_(0.1)
        x[:, :4] += x[:, 4:8]
        x[:, -1] = 0.0
        x.masked_fill_(x > 1, 1.0)
        return F.relu_(x)

    return Between(changed), F.cross_entropy, of_vectors()


@case("views, strides, splits, flips, rolls, stacks")
def views():
    def moved(x):
        x = x.view(-1, 3, 4).transpose(1, 2).contiguous().flip(1)
        a, b = x.split([1, 2], 2)
        x = torch.stack([b[..., 0], b[..., 1], a.squeeze(-1).roll(1, 1)], 1)
        return torch.cat([t.flatten(1) for t in x.unbind(1)], 1).narrow(1, 0, 12) + x.permute(0, 2, 1).reshape(-1, 12)

    return Between(moved), F.cross_entropy, of_vectors()


@case("indices: gather, scatter, index_add, masks, one-hot, tables of known places")
def indexed():
    def taken(x, places):
        known = torch.tensor([3, 0, 2, 0])
        x = x.index_add(1, known, x[:, :4].sin(), alpha=0.5)
        x = x + torch.zeros_like(x).scatter_add(1, places, x.gather(1, places).cos())
        x = x * F.one_hot(places[:, 0], 12) + x[:, known].repeat(1, 3)
        return torch.where(x > 0, x, 0.1 * x).scatter(1, places[:, :1], 1.0)

    made = batches(lambda: (torch.randn(ROWS, 8), labels(12, ROWS, 5), labels(5)))
    return Between(taken), F.cross_entropy, made


@case("sums and products along an axis, extremes, norms, triangles")
def running_sums():
    def summed(x):
        y = x.cumsum(1) * 0.1 + torch.cumprod(torch.tanh(x) + 1, 1) * 0.01
        y = y + x.amax(1, keepdim=True) - x.min(1, keepdim=True).values + x.norm(dim=1, keepdim=True)
        return (y.unsqueeze(1) @ torch.ones(12, 12).triu()).squeeze(1) + torch.logsumexp(x, 1, keepdim=True)

    return Between(summed), F.cross_entropy, of_vectors()


@case("einsum in many forms")
def einsums():
    class Sums(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.core = nn.Linear(8, 12), nn.Parameter(torch.randn(4, 3, 3) / 3)
            self.two = nn.Linear(9, 5)

        def forward(self, x):
            x = torch.tanh(self.one(x)).view(-1, 4, 3)
            x = torch.einsum("bij,ijk,bil->bkl", x, self.core, x)
            return self.two(torch.einsum("bkl,bml->bkm", x, x).flatten(1))

    return Sums(), F.cross_entropy, of_vectors()


@case("activations: GLU, PReLU, maxout, Mish, softplus, hard ones")
def activations():
    class Many(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.slope, self.two = nn.Linear(8, 24), nn.PReLU(12), nn.Linear(12, 5)

        def forward(self, x):
            x = self.slope(F.glu(self.one(x))) * 2
            x = F.mish(x) + F.softplus(x) - F.hardswish(x) + F.leaky_relu(x, 0.2) + F.softsign(x) + F.logsigmoid(x)
            return self.two(torch.maximum(x, F.elu(x) + 0.1) + F.tanhshrink(x) + F.relu6(x))

    return Many(), F.cross_entropy, of_vectors()


@case("padding, pooling and resizing of all kinds")
def resized():
    class Resized(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.head = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 6, 3, stride=2), nn.Linear(6, 5)

        def forward(self, x):
            x = F.avg_pool2d(self.one(F.pad(x, (2, 2, 1, 1), mode="reflect")), 3, 1, 1)
            x = self.two(F.interpolate(x, (9, 9), mode="bicubic", align_corners=False))
            x = F.adaptive_avg_pool2d(x, (3, 2)) + F.max_pool2d(x, 2, 2)[..., :1, :1]
            return self.head(F.lp_pool2d(F.relu(x) + 0.1, 2, 2).mean((2, 3)))

    return Resized(), F.cross_entropy, of_images()


@case("a transform of frequencies")
def frequencies():
    class Frequencies(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 5)

        def forward(self, x):
            x = self.one(x)
            return self.two(torch.fft.fft(x, dim=1).real.mean(1))

    return Frequencies(), F.cross_entropy, of_series()


@case("the largest k of a row and their places")
def largest_of_a_row():
    class Top(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.two = nn.Linear(8, 6), nn.Linear(6, 5)

        def forward(self, x):
            x = self.gate(x)
            best, places = x.topk(2, dim=1)
            return self.two(torch.zeros_like(x).scatter(1, places, best.softmax(1)))

    return Top(), F.cross_entropy, of_vectors()


@case("rows in another order (mixup inside of the module)", refused="randperm")
def shuffled_rows():
    class Mixing(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(8, 12), nn.Linear(12, 5)

        def forward(self, x):
            order = torch.randperm(x.shape[0])
            return self.two(torch.tanh(self.one(0.8 * x + 0.2 * x[order])))

    return Mixing(), F.cross_entropy, of_vectors()


@case("parameters in fp16", refused="make it float32")
def half_parameters():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(8, 12)
            self.two = nn.Linear(12, 5).half()

        def forward(self, x):
            return self.two(torch.tanh(self.one(x)).half()).float()

    return Half(), F.cross_entropy, of_vectors()
