"""Nets of images, and of what convolves."""

import torch
import torch.nn.functional as F
from torch import nn

from . import ROWS, adamw, batches, case, labels, of_images, of_vectors


def pooled(*layers, width=8, classes=5):
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


class Residual(nn.Module):
    def __init__(self, norm, width=8):
        super().__init__()
        self.one, self.two = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.first, self.second = norm(width), norm(width)

    def forward(self, x):
        y = F.relu(self.first(self.one(x)), inplace=True)
        return F.relu(x + self.second(self.two(y)))


def residual(norm):
    return pooled(nn.Conv2d(3, 8, 3, padding=1), Residual(norm), nn.MaxPool2d(2), Residual(norm))


@case("ResNet blocks with batch norm", approximate=True)
def batch_norm():
    return residual(nn.BatchNorm2d), F.cross_entropy, of_images()


@case("batch norm with momentum=None: a plain mean over all steps", refused="momentum=None")
def batch_norm_of_all_steps():
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.norm, self.head = nn.Linear(8, 6), nn.BatchNorm1d(6, momentum=None), nn.Linear(6, 5)

        def forward(self, x):
            return self.head(self.norm(self.enter(x)))

    return Normed(), F.cross_entropy, of_vectors()


@case("batch norm that tracks nothing", apart="whole batches")
def batch_norm_without_statistics():
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.head = nn.Linear(8, 6), nn.Linear(6, 5)
            self.norm = nn.BatchNorm1d(6, track_running_stats=False)

        def forward(self, x):
            return self.head(self.norm(self.enter(x)))

    return Normed(), F.cross_entropy, of_vectors()


@case("batch norm in eval mode inside a net in train mode")
def batch_norm_in_eval():
    net = residual(nn.BatchNorm2d)
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eval()
            part.running_mean.uniform_(-0.3, 0.3)
    return net, F.cross_entropy, of_images()


@case("one batch norm in eval mode, the other in train mode", approximate=True)
def batch_norm_in_both_modes():
    net = residual(nn.BatchNorm2d)
    net[1].first.eval()
    return net, F.cross_entropy, of_images()


@case("frozen backbone in eval mode, a head on top")
def frozen_backbone():
    net = residual(nn.BatchNorm2d)
    for part in list(net)[:-1]:
        part.eval().requires_grad_(False)
    return net, F.cross_entropy, of_images()


@case("group norm, instance norm, layer norm of channels")
def other_norms():
    net = pooled(
        nn.Conv2d(3, 8, 3),
        nn.GroupNorm(4, 8),
        nn.SiLU(),
        nn.Conv2d(8, 8, 3),
        nn.InstanceNorm2d(8, affine=True),
        nn.LayerNorm([8, 4, 4]),
    )
    return net, F.cross_entropy, of_images()


@case("depthwise separable convolutions, squeeze and excite (MobileNet)")
def squeeze_and_excite():
    class Squeeze(nn.Module):
        def __init__(self):
            super().__init__()
            self.less, self.more = nn.Conv2d(12, 3, 1), nn.Conv2d(3, 12, 1)

        def forward(self, x):
            return x * F.hardsigmoid(self.more(F.relu(self.less(x.mean((2, 3), keepdim=True)))))

    net = pooled(
        nn.Conv2d(3, 12, 1), nn.Hardswish(), nn.Conv2d(12, 12, 3, groups=12, padding=1), Squeeze(), nn.Conv2d(12, 8, 1)
    )
    return net, F.cross_entropy, of_images()


@case("U-Net with skips, transposed convolutions, per-pixel classes")
def u_net():
    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.down = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 8, 3, padding=1)
            self.up, self.join = nn.ConvTranspose2d(8, 6, 2, stride=2), nn.Conv2d(12, 4, 3, padding=1)

        def forward(self, x):
            wide = F.relu(self.enter(x))
            deep = F.relu(self.down(F.max_pool2d(wide, 2)))
            return self.join(torch.cat([wide, F.relu(self.up(deep))], 1))

    made = batches(lambda: (torch.randn(ROWS, 3, 8, 8), labels(4, ROWS, 8, 8)))
    return UNet(), F.cross_entropy, made


@case("deep supervision: a loss at every depth")
def deep_supervision():
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList([nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)])
            self.heads = nn.ModuleList([nn.Linear(6, 5), nn.Linear(6, 5)])

        def forward(self, x):
            made = []
            for part, head in zip(self.parts, self.heads):
                x = F.relu(part(x))
                made.append(head(x.mean((2, 3))))
            return made

    def loss(output, target):
        return sum(0.5**i * F.cross_entropy(o, target) for i, o in enumerate(reversed(output)))

    return Deep(), loss, of_images()


@case("super-resolution: pixel shuffle, upsampling, L1")
def super_resolution():
    class Up(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Conv2d(3, 12, 3, padding=1), nn.Conv2d(12, 12, 3, padding=1)

        def forward(self, x):
            fine = F.pixel_shuffle(self.two(F.leaky_relu(self.one(x), 0.2)), 2)
            return fine + F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)

    made = batches(lambda: (torch.randn(ROWS, 3, 6, 6), torch.randn(ROWS, 3, 12, 12)))
    return Up(), nn.L1Loss(), made


@case("variational autoencoder: sum of squares and of divergences, over rows")
def vae():
    class Vae(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.mean, self.spread = nn.Linear(8, 12), nn.Linear(12, 3), nn.Linear(12, 3)
            self.leave = nn.Linear(3, 8)

        def forward(self, x):
            h = torch.tanh(self.enter(x))
            mean, spread = self.mean(h), self.spread(h)
            return self.leave(mean + torch.randn_like(mean) * torch.exp(0.5 * spread)), mean, spread

    def loss(output, target):
        made, mean, spread = output
        apart = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())
        return F.mse_loss(made, target, reduction="mean") + 0.1 * apart / target.shape[0]

    made = batches(lambda: (torch.randn(ROWS, 8),) * 2)
    return Vae(), loss, made


@case("vector quantisation: the nearest code, gradients straight through")
def vq_vae():
    class Codes(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.leave = nn.Linear(8, 4), nn.Linear(4, 8)
            self.codes = nn.Parameter(torch.randn(7, 4))

        def forward(self, x):
            z = self.enter(x)
            near = ((z[:, None] - self.codes) ** 2).sum(2).argmin(1)
            code = self.codes[near]
            value = F.mse_loss(code, z.detach()) + 0.25 * F.mse_loss(z, code.detach())
            return value + F.mse_loss(self.leave(z + (code - z).detach()), x)

    return Codes(), None, batches(lambda: {"x": torch.randn(ROWS, 8)})


@case("denoising diffusion: a step's noise by its cosine schedule")
def diffusion():
    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            shares = torch.cos(torch.linspace(0.1, 1.4, 10)) ** 2
            self.register_buffer("shares", shares)
            self.times, self.net = nn.Embedding(10, 4), nn.Sequential(nn.Linear(12, 16), nn.SiLU(), nn.Linear(16, 8))

        def forward(self, x, time, noise):
            share = self.shares[time][:, None]
            mixed = share.sqrt() * x + (1 - share).sqrt() * noise
            return F.mse_loss(self.net(torch.cat([mixed, self.times(time)], 1)), noise)

    return Denoiser(), None, batches(lambda: {"x": torch.randn(ROWS, 8), "time": labels(10), "noise": torch.randn(ROWS, 8)})


@case("DenseNet, Inception and ShuffleNet: concatenated and shuffled channels")
def concatenated():
    class Many(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.three = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 3, padding=1)
            self.next, self.head = nn.Conv2d(11, 8, 3, groups=1, padding=1), nn.Linear(19, 5)

        def forward(self, x):
            x = torch.cat([x, F.elu(self.one(x)), F.elu(self.three(x))], 1)
            x = torch.cat([x, F.gelu(self.next(x))], 1)
            n, _, h, w = x.shape
            x = torch.cat([x[:, :1], x[:, 1:].view(n, 2, 9, h, w).transpose(1, 2).reshape(n, 18, h, w)], 1)
            return self.head(F.adaptive_max_pool2d(x, 1).flatten(1))

    return Many(), F.cross_entropy, of_images()


@case("stochastic depth, drawn for every row")
def stochastic_depth():
    class Drops(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.part, self.head = nn.Linear(8, 12), nn.Linear(12, 12), nn.Linear(12, 5)
            self.scale = nn.Parameter(0.1 * torch.ones(12))

        def forward(self, x):
            x = torch.tanh(self.enter(x))
            kept = (torch.rand(x.shape[0], 1) < 0.8).float() / 0.8 if self.training else 1.0
            return self.head(x + kept * self.scale * torch.relu(self.part(x)))

    return Drops(), F.cross_entropy, of_vectors()


@case("dropout of numbers, of channels, and of alpha")
def dropouts():
    net = pooled(
        nn.Conv2d(3, 8, 3), nn.SELU(), nn.Dropout2d(0.3), nn.Conv2d(8, 8, 3), nn.Dropout(0.2), nn.SELU(), nn.AlphaDropout(0.1)
    )
    return net, F.cross_entropy, of_images()


@case("weight normalisation, and spectral normalisation in eval mode")
def weight_normed():
    net = nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Linear(8, 12)),
        nn.Tanh(),
        nn.utils.parametrizations.spectral_norm(nn.Linear(12, 5)),
    )
    net[2].eval()
    return net, F.cross_entropy, of_vectors()


@case("spectral normalisation, whose vectors move as it runs", refused="spectral_norm of '")
def spectral_normed():
    class Critic(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 12)), nn.Linear(12, 5)

        def forward(self, x):
            return self.two(F.leaky_relu(self.one(x), 0.1))

    return Critic(), F.cross_entropy, of_vectors()


@case("weights standardised by batch_norm (BiT)")
def standardised_weights():
    class Standard(nn.Conv2d):
        def forward(self, x):
            flat = self.weight.reshape(1, self.out_channels, -1)
            weight = F.batch_norm(flat, None, None, training=True, momentum=0.0, eps=1e-8)
            return F.conv2d(x, weight.reshape_as(self.weight), self.bias, self.stride, self.padding)

    return pooled(Standard(3, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), Standard(8, 8, 3)), F.cross_entropy, of_images()


@case("scaled weight standardisation and gains (NF-ResNet)", optimizer=adamw)
def scaled_standardised_weights():
    class Scaled(nn.Conv2d):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.gain = nn.Parameter(torch.ones(self.out_channels, 1, 1, 1))

        def forward(self, x):
            flat = self.weight.reshape(1, self.out_channels, -1)
            gain = (self.gain * self.weight[0].numel() ** -0.5).view(-1)
            weight = F.batch_norm(flat, None, None, weight=gain, training=True, momentum=0.0, eps=1e-6)
            return F.conv2d(x, weight.reshape_as(self.weight), self.bias)

    return pooled(Scaled(3, 8, 3), nn.ReLU(), Scaled(8, 8, 3)), F.cross_entropy, of_images()


@case("a radiance field: frequencies, cumulative transmittance")
def radiance():
    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("frequencies", 2.0 ** torch.arange(3))
            self.net = nn.Sequential(nn.Linear(18, 16), nn.ReLU(), nn.Linear(16, 4))

        def forward(self, points):
            x = (points[..., None] * self.frequencies).flatten(2)
            made = self.net(torch.cat([x.sin(), x.cos()], -1))
            colour, alpha = torch.sigmoid(made[..., :3]), 1 - torch.exp(-F.softplus(made[..., 3]) * 0.3)
            left = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
            return ((alpha * left)[..., None] * colour).sum(1)

    return Field(), F.mse_loss, batches(lambda: (torch.randn(ROWS, 6, 3), torch.rand(ROWS, 3)))


@case("a standard deviation over groups of four records (StyleGAN)", refused="multiples of the rows only")
def minibatch_deviation():
    class Deviation(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.head = nn.Linear(8, 6), nn.Linear(7, 5)

        def forward(self, x):
            x = torch.tanh(self.enter(x))
            group = min(4, x.shape[0])
            apart = x.view(group, -1, 6)
            spread = torch.sqrt(((apart - apart.mean(0)) ** 2).mean(0) + 1e-8).mean(1)
            return self.head(torch.cat([x, spread.repeat(group)[:, None]], 1))

    made = batches(lambda: (torch.randn(8, 8), labels(5, 8)))
    return Deviation(), F.cross_entropy, made


@case("otherwise from five records on", refused="how many rows there are")
def other_from_five_rows_on():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(8, 5), nn.Linear(8, 5)

        def forward(self, x):
            if x.shape[0] > 4:
                return self.one(x)
            return self.two(x)

    return Counting(), F.cross_entropy, of_vectors()
