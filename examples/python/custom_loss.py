"""A PyTorch module with a loss of one's own, and the bytes of its step."""
import torch

import thimble.torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64),
                          torch.nn.Tanh(), torch.nn.Linear(64, 1))


def huber_plus(output, target):
    """A loss that is quadratic where it is small, and weighs errors below more than those above."""
    error = output - target
    weight = torch.where(error < 0, 2.0, 1.0)
    return (weight * torch.where(error.abs() < 1, error ** 2 / 2, error.abs() - 0.5)).mean()


inputs = torch.randn(640, 16)
targets = inputs[:, :4].sum(1, keepdim=True).tanh()
batches = [(inputs[i:i + 64], targets[i:i + 64]) for i in range(0, 640, 64)]
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
before = huber_plus(net(inputs), targets).item()
whole = thimble.torch.plan(net, huber_plus, batches[0], optimizer=optimizer)
run = thimble.torch.train(net, huber_plus, batches, optimizer=optimizer, epochs=20)
after = huber_plus(net(inputs), targets).item()
print(f"loss {before:.4f} -> {after:.4f} in {whole.bytes} bytes")
assert after < before / 4
