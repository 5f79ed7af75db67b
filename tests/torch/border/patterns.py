"""Ways to train: what is frozen, copied, alternated, scheduled, and what a module does beside its forward pass."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from . import ROWS, batches, case, labels, of_images, of_vectors, sgd


def small(features=8, classes=5):
    return nn.Sequential(nn.Linear(features, 12), nn.Tanh(), nn.Linear(12, classes))


@case("a GAN: its critic and its generator in turns, each with an optimizer of its own")
def gan():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.made, self.judged = small(4, 8), small(8, 1)

    class Critic(nn.Module):
        def __init__(self, both):
            super().__init__()
            self.both = both

        def forward(self, noise, real):
            made = self.both.made(noise).detach()
            fake, true = self.both.judged(made), self.both.judged(real)
            return F.softplus(fake).mean() + F.softplus(-true).mean()

    class Generator(Critic):
        def forward(self, noise):
            return F.softplus(-self.both.judged(self.both.made(noise))).mean()

    both = Both()

    def steps(train):
        critic = torch.optim.SGD(both.judged.parameters(), 0.1, momentum=0.5)
        generator = torch.optim.SGD(both.made.parameters(), 0.1, momentum=0.5)
        draw = torch.Generator().manual_seed(1)
        for _ in range(3):
            noise, real = torch.randn(ROWS, 4, generator=draw), torch.randn(ROWS, 8, generator=draw)
            train(Critic(both), None, [{"noise": noise, "real": real}], critic, fresh=False)
            train(Generator(both), None, [{"noise": noise}], generator, fresh=False)

    return both, steps


@case("a Wasserstein critic's gradient penalty: gradients inside of the loss", refused="autograd.grad")
def gradient_penalty():
    class Critic(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small(8, 1)

        def forward(self, x):
            x = x.detach().requires_grad_()
            made = self.net(x)
            slope = torch.autograd.grad(made.sum(), x, create_graph=True)[0]
            return made.mean() + ((slope.norm(dim=1) - 1) ** 2).mean()

    return Critic(), None, batches(lambda: {"x": torch.randn(ROWS, 8)})


@case("an average of weights (EMA), moved by hand after every step")
def ema_copies():
    class Averaged(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small()
            self.average = copy.deepcopy(self.net).requires_grad_(False)

        def forward(self, x):
            return self.net(x)

    model = Averaged()
    made = of_vectors()

    def steps(train):
        optimizer = sgd(model.net)
        for batch in made[:3]:
            train(model, F.cross_entropy, [batch], optimizer, fresh=False)
            with torch.no_grad():
                for slow, fast in zip(model.average.parameters(), model.net.parameters()):
                    slow.lerp_(fast, 0.1)

    return model, steps


@case("BYOL: a target that follows by hand and has no gradient")
def moving_target():
    class Byol(nn.Module):
        def __init__(self):
            super().__init__()
            self.online, self.predictor = small(8, 6), nn.Linear(6, 6)
            self.target = copy.deepcopy(self.online).requires_grad_(False)

        def forward(self, one, two):
            def apart(x, y):
                with torch.no_grad():
                    goal = F.normalize(self.target(y), dim=1)
                return 2 - 2 * (F.normalize(self.predictor(self.online(x)), dim=1) * goal).sum(1)

            return (apart(one, two) + apart(two, one)).mean()

    model = Byol()
    made = batches(lambda: {"one": torch.randn(ROWS, 8), "two": torch.randn(ROWS, 8)}, 3)

    def steps(train):
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.1, momentum=0.9)
        for batch in made:
            train(model, None, [batch], optimizer, fresh=False)
            with torch.no_grad():
                for slow, fast in zip(model.target.parameters(), model.online.parameters()):
                    slow.mul_(0.9).add_(fast, alpha=0.1)

    return model, steps


@case("distillation: a frozen teacher in eval mode, softened shares, labels beside them")
def distillation():
    class Taught(nn.Module):
        def __init__(self):
            super().__init__()
            self.student = small()
            self.teacher = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 5))
            self.teacher.eval().requires_grad_(False)

        def forward(self, x):
            with torch.no_grad():
                taught = self.teacher(x)
            return self.student(x), taught

    def loss(output, target):
        made, taught = output
        soft = F.kl_div(F.log_softmax(made / 2, 1), F.softmax(taught / 2, 1), reduction="batchmean") * 4
        return 0.7 * soft + 0.3 * F.cross_entropy(made, target)

    return Taught(), loss, of_vectors()


@case("LoRA by hand: frozen weights, low-rank products beside them")
def lora():
    class Lora(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer.requires_grad_(False)
            self.down = nn.Parameter(torch.randn(2, layer.in_features) / 3)
            self.up = nn.Parameter(torch.zeros(layer.out_features, 2))

        def forward(self, x):
            return self.layer(x) + 2.0 * (x @ self.down.T) @ self.up.T

    return nn.Sequential(Lora(nn.Linear(8, 12)), nn.Tanh(), Lora(nn.Linear(12, 5))), F.cross_entropy, of_vectors()


@case("DoRA by hand: magnitudes and directions")
def dora():
    class Dora(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer.requires_grad_(False)
            self.down, self.up = nn.Parameter(torch.randn(2, 8)), nn.Parameter(torch.zeros(12, 2))
            self.size = nn.Parameter(layer.weight.norm(dim=1, keepdim=True).detach())

        def forward(self, x):
            weight = self.layer.weight + self.up @ self.down
            return F.linear(x, self.size * weight / weight.norm(dim=1, keepdim=True).detach(), self.layer.bias)

    return nn.Sequential(Dora(nn.Linear(8, 12)), nn.Tanh(), nn.Linear(12, 5)), F.cross_entropy, of_vectors()


@case("several tasks: heads of classes, of numbers, of bits; learnt weights between them")
def tasks():
    class Tasks(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.one, self.two, self.three = nn.Linear(8, 12), nn.Linear(12, 5), nn.Linear(12, 2), nn.Linear(12, 1)
            self.weights = nn.Parameter(torch.tensor([0.1, -0.2, 0.3]))

        def forward(self, x, kind, goal, bit):
            x = torch.relu(self.body(x))
            losses = torch.stack([
                F.cross_entropy(self.one(x), kind),
                F.mse_loss(self.two(x), goal),
                F.binary_cross_entropy_with_logits(self.three(x)[:, 0], bit),
            ])
            return (torch.exp(-self.weights) * losses + self.weights).sum()

    def make():
        x = torch.randn(ROWS, 8), labels(5), torch.randn(ROWS, 2), (torch.rand(ROWS) < 0.5).float()
        return dict(zip(("x", "kind", "goal", "bit"), x))

    return Tasks(), None, batches(make)


@case("a task that some records have no label of")
def tasks_with_missing_labels():
    class Tasks(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.one, self.two = nn.Linear(8, 12), nn.Linear(12, 5), nn.Linear(12, 4)

        def forward(self, x, first, second):
            x = torch.relu(self.body(x))
            here = (second >= 0).float()
            each = F.cross_entropy(self.two(x), second.clamp(min=0), reduction="none")
            return F.cross_entropy(self.one(x), first) + (each * here).mean()

    def make():
        return {"x": torch.randn(ROWS, 8), "first": labels(5), "second": labels(5) - 1}

    return Tasks(), None, batches(make)


@case("weight decay of matrices alone, another rate for a head, momentum")
def groups():
    model = small()

    def optimizer(net):
        return torch.optim.SGD(
            [
                {"params": [net[0].weight], "weight_decay": 0.1},
                {"params": [net[0].bias]},
                {"params": net[2].parameters(), "lr": 0.02, "weight_decay": 0.01},
            ],
            0.1,
            momentum=0.9,
            nesterov=True,
        )

    made = of_vectors()
    return model, lambda train: train(model, F.cross_entropy, made, optimizer(model))


@case("penalties of weights in the loss: L2, L1, orthogonality")
def penalties():
    class Held(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small()

        def forward(self, x, target):
            weight = self.net[0].weight
            square = weight.T @ weight - torch.eye(8)
            penalty = sum((p**2).sum() for p in self.parameters()) + (square**2).sum()
            return F.cross_entropy(self.net(x), target) + 1e-3 * penalty + 1e-3 * weight.abs().mean()

    return Held(), None, batches(lambda: {"x": torch.randn(ROWS, 8), "target": labels(5)})


@case("parts are thawed after two steps, and the optimizer is made anew")
def gradual_unfreezing():
    model, made = small(), of_vectors()

    def steps(train):
        model[0].requires_grad_(False)
        train(model, F.cross_entropy, made[:2], torch.optim.SGD(model[2].parameters(), 0.1))
        model[0].requires_grad_(True)
        train(model, F.cross_entropy, made[2:], torch.optim.AdamW(model.parameters(), 1e-2))

    return model, steps


@case("AdamW goes on where PyTorch's own steps have left it")
def optimizer_state():
    model, made = small(), of_vectors()

    def steps(train):
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        for x, target in made[:2]:
            optimizer.zero_grad()
            F.cross_entropy(model(x), target).backward()
            optimizer.step()
        optimizer.zero_grad()
        train(model, F.cross_entropy, made[2:4], optimizer)
        train(model, F.cross_entropy, made[4:], optimizer)

    return model, steps


@case("a scheduler: warm-up, then a cosine")
def scheduled():
    model, made = small(), of_vectors()

    def steps(train):
        optimizer = sgd(model)
        lr = torch.optim.lr_scheduler
        warm = lr.LinearLR(optimizer, 0.1, total_iters=2)
        scheduler = lr.SequentialLR(optimizer, [warm, lr.CosineAnnealingLR(optimizer, 3)], [2])
        train(model, F.cross_entropy, made, optimizer, scheduler=scheduler)

    return model, steps


@case("the norm of all gradients is clipped")
def clipped_gradients():
    model, made = small(), of_vectors()
    return model, lambda train: train(model, F.cross_entropy, made, sgd(model), clip_norm=0.1)


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


@case("a weight that the forward pass clamps in place", refused="the parameter 'net.0.weight'")
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
