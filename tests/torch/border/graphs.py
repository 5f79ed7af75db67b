"""Nets of graphs, and of experts that a gate chooses."""

import torch
import torch.nn.functional as F
from torch import nn

from . import ROWS, batches, case, labels


@case("a graph's nodes as records: messages between them", apart="no sum over rows")
def graph_of_rows():
    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 5)

        def forward(self, x, near):
            near = (x[:, :1] * near[:, None]).sum(1, keepdim=True).sigmoid() * near[:, None]
            x = torch.relu(self.one(x))
            return self.two(x + (near * x).sum(0) / x.shape[0])

    return Graph(), F.cross_entropy, batches(lambda: (torch.randn(ROWS, 8), torch.rand(ROWS), labels(5)))


@case("graphs as records: normalised adjacency, attention along edges")
def graphs():
    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.edge = nn.Linear(8, 8), nn.Linear(8, 5), nn.Linear(16, 1)

        def forward(self, x, near):
            near = (near + near.transpose(1, 2) + torch.eye(5) > 0.5).float()
            degree = near.sum(-1, keepdim=True).pow(-0.5)
            x = torch.relu(degree * (near @ (degree * self.one(x))))
            pairs = torch.cat([x[:, :, None].expand(-1, -1, 5, -1), x[:, None].expand(-1, 5, -1, -1)], -1)
            shares = F.leaky_relu(self.edge(pairs)[..., 0], 0.2).masked_fill(near == 0, -1e4).softmax(-1)
            return self.two((shares @ x).mean(1))

    made = batches(lambda: (torch.randn(ROWS, 5, 8), (torch.rand(ROWS, 5, 5) < 0.3).float(), labels(5)))
    return Graph(), F.cross_entropy, made


@case("messages scattered to the nodes of each record's edges")
def scattered_messages():
    class Messages(nn.Module):
        def __init__(self):
            super().__init__()
            self.message, self.update, self.head = nn.Linear(16, 8), nn.GRUCell(8, 8), nn.Linear(8, 5)

        def forward(self, x, source, goal):
            def of(places):
                return x.gather(1, places[..., None].expand(-1, -1, 8))

            sent = torch.relu(self.message(torch.cat([of(source), of(goal)], -1)))
            got = torch.zeros_like(x).scatter_add(1, goal[..., None].expand(-1, -1, 8), sent)
            x = self.update(got.flatten(0, 1), x.flatten(0, 1)).view_as(x)
            return self.head(x.mean(1))

    def make():
        return torch.randn(ROWS, 5, 8), labels(5, ROWS, 9), labels(5, ROWS, 9), labels(5)

    return Messages(), F.cross_entropy, batches(make)


@case("mixture of experts: every expert, weighed by a gate, with a balancing loss of each row")
def mixture_of_experts():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.head = nn.Linear(8, 4), nn.Linear(8, 5)
            self.up = nn.Parameter(0.3 * torch.randn(4, 8, 12))
            self.down = nn.Parameter(0.3 * torch.randn(4, 12, 8))

        def forward(self, x, target):
            shares = self.gate(x).softmax(-1)
            made = torch.einsum("btd,edh,ehf->btef", x, self.up, self.down)
            x = x + torch.einsum("bte,btef->btf", shares, torch.tanh(made))
            uneven = 4 * (shares.mean(1) ** 2).sum(-1).mean()
            return F.cross_entropy(self.head(x.mean(1)), target) + 0.1 * uneven

    return Experts(), None, batches(lambda: {"x": torch.randn(ROWS, 6, 8), "target": labels(5)})


@case("a balancing loss over the tokens of all rows (Switch)", apart="no sum over rows")
def balanced_experts():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.head = nn.Linear(8, 4), nn.Linear(4, 5)

        def forward(self, x, target):
            shares = self.gate(x).softmax(-1)
            chosen = F.one_hot(shares.argmax(-1), 4).float()
            uneven = 4 * (chosen.mean((0, 1)) * shares.mean((0, 1))).sum()
            return F.cross_entropy(self.head((chosen * shares).mean(1)), target) + 0.1 * uneven

    return Experts(), None, batches(lambda: {"x": torch.randn(ROWS, 6, 8), "target": labels(5)})
