"""Losses between records: of pairs and triplets, which are rows, and of a batch against itself, which no part of it has."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from . import ROWS, batches, case, labels, of_vectors


def encoder(features=8, width=6):
    return nn.Sequential(nn.Linear(features, 12), nn.ReLU(), nn.Linear(12, width))


def views():
    """Two of each record."""
    return batches(lambda: {"one": torch.randn(ROWS, 8), "two": torch.randn(ROWS, 8)})


class Pairs(nn.Module):
    """Gives its loss of two views that one encoder codes."""

    def __init__(self, loss, **parts):
        super().__init__()
        self.encoder, self.loss = encoder(), loss
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, one, two):
        return self.loss(self, self.encoder(one), self.encoder(two))


@case("Siamese net, contrastive margin of labelled pairs")
def siamese_margin():
    class Siamese(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = encoder()

        def forward(self, one, two, same):
            apart = F.pairwise_distance(self.encoder(one), self.encoder(two))
            return (same * apart**2 + (1 - same) * F.relu(1 - apart) ** 2).mean()

    def make():
        return {"one": torch.randn(ROWS, 8), "two": torch.randn(ROWS, 8), "same": (torch.rand(ROWS) < 0.5).float()}

    return Siamese(), None, batches(make)


@case("cosine embeddings of pairs labelled 1 and -1")
def cosine_embedding():
    class Siamese(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = encoder()

        def forward(self, one, two, same):
            return F.cosine_embedding_loss(self.encoder(one), self.encoder(two), same, margin=0.2)

    def make():
        return {"one": torch.randn(ROWS, 8), "two": torch.randn(ROWS, 8), "same": 2.0 * labels(2) - 1}

    return Siamese(), None, batches(make)


@case("triplets with a margin, and with a distance of one's own")
def triplets():
    class Three(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = encoder()

        def forward(self, anchor, near, far):
            a, n, f = self.encoder(anchor), self.encoder(near), self.encoder(far)
            cosine = nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: 1 - F.cosine_similarity(x, y))
            return F.triplet_margin_loss(a, n, f, margin=1.0) + cosine(a, n, f)

    return Three(), None, batches(lambda: {n: torch.randn(ROWS, 8) for n in ("anchor", "near", "far")})


@case("InfoNCE: the other rows are the negatives", refused="numbers that are not the same for every row")
def info_nce():
    def loss(_, one, two):
        logits = F.normalize(one, dim=1) @ F.normalize(two, dim=1).T / 0.2
        return F.cross_entropy(logits, torch.arange(len(one)))

    return Pairs(loss), None, views()


@case("InfoNCE without an index: the own pair's share", apart="no sum over rows")
def info_nce_by_shares():
    def loss(_, one, two):
        one, two = F.normalize(one, dim=1), F.normalize(two, dim=1)
        return (torch.logsumexp(one @ two.T / 0.2, 1) - (one * two).sum(1) / 0.2).mean()

    return Pairs(loss), None, views()


@case("CLIP: both directions, a learnt temperature", refused="numbers that are not the same for every row")
def clip():
    def loss(net, one, two):
        logits = net.scale.exp() * F.normalize(one, dim=1) @ F.normalize(two, dim=1).T
        target = torch.arange(logits.shape[0])
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2

    return Pairs(loss, scale=nn.Parameter(torch.tensor(1.5))), None, views()


@case("NT-Xent of SimCLR, on both views in one batch", refused="numbers that are not the same for every row")
def simclr():
    def loss(_, one, two):
        x = F.normalize(torch.cat([one, two]), dim=1)
        count = len(one)
        logits = (x @ x.T / 0.5).masked_fill(torch.eye(2 * count, dtype=torch.bool), -1e9)
        return F.cross_entropy(logits, torch.arange(2 * count).roll(count))

    return Pairs(loss), None, views()


@case("supervised contrastive: rows of one class attract", refused="numbers that are not the same for every row")
def supervised_contrastive():
    def loss(output, target):
        x = F.normalize(output, dim=1)
        apart = 1 - torch.eye(len(x))
        same = (target[:, None] == target[None]).float() * apart
        logits = x @ x.T / 0.5
        share = logits - torch.log((logits.exp() * apart).sum(1, keepdim=True))
        return -((same * share).sum(1) / same.sum(1).clamp(min=1)).mean()

    return encoder(), loss, of_vectors()


@case("the hardest triplet of a batch", refused="cdist")
def hardest_triplet():
    def loss(output, target):
        apart = torch.cdist(output, output)
        same = target[:, None] == target[None]
        far = (apart * same).amax(1)
        near = torch.where(same, 1e6, apart).amin(1)
        return F.relu(far - torch.where(near < 1e5, near, far + 1) + 0.5).mean()

    return encoder(), loss, of_vectors(classes=2)


@case("Barlow twins: a correlation over the batch", apart="no sum over rows")
def barlow_twins():
    def loss(_, one, two):
        one, two = ((x - x.mean(0)) / (x.std(0) + 1e-5) for x in (one, two))
        apart = one.T @ two / len(one) - torch.eye(one.shape[1])
        return (apart.diagonal() ** 2).sum() + 0.1 * (apart**2).sum()

    return Pairs(loss), None, views()


@case("VICReg: variances and covariances of the batch", apart="no sum over rows")
def vicreg():
    def loss(_, one, two):
        value = 25 * F.mse_loss(one, two)
        for x in (one, two):
            x = x - x.mean(0)
            value = value + F.relu(1 - torch.sqrt(x.var(0) + 1e-4)).mean()
            covariance = x.T @ x / len(x)
            value = value + covariance.flatten()[1:].view(5, 7)[:, :-1].pow(2).sum() / 6
        return value / 10

    return Pairs(loss), None, views()


@case("a covariance over one record less than there are", refused="multiples of the rows only")
def covariance():
    def loss(_, one, two):
        x = one - two
        covariance = x.T @ x / (x.shape[0] - 1)
        return (covariance**2).mean()

    return Pairs(loss), None, views()


@case("maximum mean discrepancy of two samples", apart="no sum over rows")
def mmd():
    def loss(_, one, two):
        def kernel(x, y):
            return torch.exp(-((x[:, None] - y[None]) ** 2).sum(2)).mean()

        return kernel(one, one) + kernel(two, two) - 2 * kernel(one, two)

    return Pairs(loss), None, views()


@case("SimSiam: gradients stop at the other view")
def simsiam():
    def loss(net, one, two):
        def apart(x, y):
            return -F.cosine_similarity(net.predictor(x), y.detach(), dim=1).mean()

        return (apart(one, two) + apart(two, one)) / 2

    return Pairs(loss, predictor=nn.Linear(6, 6)), None, views()


@case("centres of classes, learnt beside a classifier")
def centre_loss():
    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.head = encoder(), nn.Linear(6, 5)
            self.centres = nn.Parameter(torch.randn(5, 6))

        def forward(self, x, target):
            x = self.encoder(x)
            near = ((x - self.centres[target]) ** 2).sum(1)
            return F.cross_entropy(self.head(x), target) + 0.1 * near.mean()

    return Centred(), None, batches(lambda: {"x": torch.randn(ROWS, 8), "target": labels(5)})


@case("ArcFace: an angle's margin at the own class")
def arcface():
    class Arc(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.weight = encoder(), nn.Parameter(torch.randn(5, 6))

        def forward(self, x, target):
            cosine = F.linear(F.normalize(self.encoder(x)), F.normalize(self.weight))
            sine = torch.sqrt(1 - cosine**2 + 1e-6)
            wider = cosine * math.cos(0.3) - sine * math.sin(0.3)
            own = F.one_hot(target, 5).bool()
            return F.cross_entropy(8 * torch.where(own, wider, cosine), target)

    return Arc(), None, batches(lambda: {"x": torch.randn(ROWS, 8), "target": labels(5)})


@case("preferences: DPO beside a frozen reference")
def preferences():
    class Preferring(nn.Module):
        def __init__(self):
            super().__init__()
            self.policy, self.reference = nn.Embedding(11, 11), nn.Embedding(11, 11)
            self.reference.requires_grad_(False)

        def share(self, net, tokens):
            each = F.log_softmax(net(tokens[:, :-1]), -1).gather(2, tokens[:, 1:, None])[..., 0]
            return (each * (tokens[:, 1:] != 0)).sum(1)

        def forward(self, chosen, rejected):
            gained = [self.share(self.policy, x) - self.share(self.reference, x) for x in (chosen, rejected)]
            return -F.logsigmoid(0.5 * (gained[0] - gained[1])).mean()

    return Preferring(), None, batches(lambda: {n: labels(11, ROWS, 7) for n in ("chosen", "rejected")})


@case("PPO: a clipped ratio, a value, an entropy")
def ppo():
    class Actor(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = encoder()
            self.policy, self.value = nn.Linear(6, 4), nn.Linear(6, 1)

        def forward(self, x, action, before, advantage, gain):
            x = torch.tanh(self.body(x))
            shares = F.log_softmax(self.policy(x), 1)
            ratio = torch.exp(shares.gather(1, action[:, None])[:, 0] - before)
            clipped = torch.clamp(ratio, 0.8, 1.2)
            gained = torch.min(ratio * advantage, clipped * advantage).mean()
            entropy = -(shares.exp() * shares).sum(1).mean()
            return 0.5 * F.mse_loss(self.value(x)[:, 0], gain) - gained - 0.01 * entropy

    def make():
        x = torch.randn(ROWS, 8), labels(4), torch.randn(ROWS) - 1.4, torch.randn(ROWS), torch.randn(ROWS)
        return dict(zip(("x", "action", "before", "advantage", "gain"), x))

    return Actor(), None, batches(make)


@case("advantages that a batch normalises", apart="no sum over rows")
def normalised_advantages():
    class Critic(nn.Module):
        def __init__(self):
            super().__init__()
            self.value = encoder(width=1)

        def forward(self, x, gain):
            x = self.value(x)[:, 0] - gain
            return F.huber_loss((x - x.mean()) / (x.std() + 1e-6), gain)

    return Critic(), None, batches(lambda: {"x": torch.randn(ROWS, 8), "gain": torch.randn(ROWS)})
