"""Ways to train: what is frozen, copied, alternated, weighed, scheduled."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from . import ROWS, batches, case, labels, of_vectors, sgd


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


class Tasks(nn.Module):
    """Heads of classes, of numbers, of bits."""

    def __init__(self, together):
        super().__init__()
        self.body, self.one, self.two, self.three = nn.Linear(8, 12), nn.Linear(12, 5), nn.Linear(12, 2), nn.Linear(12, 1)
        self.weights, self.together = nn.Parameter(torch.tensor([0.1, -0.2, 0.3])), together

    def forward(self, x, kind, goal, bit):
        x = torch.relu(self.body(x))
        losses = [
            F.cross_entropy(self.one(x), kind),
            F.mse_loss(self.two(x), goal),
            F.binary_cross_entropy_with_logits(self.three(x)[:, 0], bit),
        ]
        return self.together(losses, self.weights)


def of_tasks():
    def make():
        x = torch.randn(ROWS, 8), labels(5), torch.randn(ROWS, 2), (torch.rand(ROWS) < 0.5).float()
        return dict(zip(("x", "kind", "goal", "bit"), x))

    return batches(make)


@case("several tasks, with learnt weights between them")
def tasks():
    def added(losses, weights):
        return sum(torch.exp(-weight) * loss + weight for loss, weight in zip(losses, weights))

    return Tasks(added), None, of_tasks()


@case("losses of several tasks stacked, and weighed together", apart="no sum over rows")
def stacked_tasks():
    def stacked(losses, weights):
        return (torch.exp(-weights) * torch.stack(losses) + weights).sum()

    return Tasks(stacked), None, of_tasks()


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
