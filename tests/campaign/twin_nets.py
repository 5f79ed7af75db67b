"""The nets of docs/cli.md in PyTorch, as functions of a batch and a dictionary of weights.

Weights have the names of docs/checkpoints.md; convolutions are [O,I,kH,kW] here. The docs leave
open, and the models' own files say: epsilon 1e-5 of all norms, how many groups a group
norm has, the order of layers inside a block of `unet`, the shortcut after the first norm of a block.
"""
import torch
import torch.nn.functional as F

EPSILON = 1e-5


def norm(x, w, name, kind):
    if kind == "group":  # 32 groups, but of four channels at least
        channels = x.shape[1]
        groups = min(max(channels // 4, 1), 32)
        while channels % groups:
            groups -= 1
        return F.group_norm(x, groups, w[f"{name}.weight"], w[f"{name}.bias"], EPSILON)
    return F.batch_norm(x, None, None, w[f"{name}.weight"], w[f"{name}.bias"], True, 0.1, EPSILON)


def conv(x, w, name, stride=1):
    kernel = w[f"{name}.weight"]
    return F.conv2d(x, kernel, None, stride, kernel.shape[-1] // 2)


def linear(x, w, name):
    return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])


def mlp(x, w, kind):
    x = x.permute(0, 2, 3, 1).flatten(1)  # channels last, as the images are
    layer = 1
    while f"hidden{layer}.weight" in w:
        x = F.relu(linear(x, w, f"hidden{layer}"))
        layer += 1
    return linear(x, w, "classifier")


def wrn(x, w, kind):
    x = conv(x, w, "stem")
    for group in (1, 2, 3):
        block = 1
        while f"group{group}.block{block}.conv1.weight" in w:
            name = f"group{group}.block{block}"
            stride = 2 if group > 1 and block == 1 else 1
            h = F.relu(norm(x, w, f"{name}.bn1", kind))
            skip = conv(h, w, f"{name}.shortcut", stride) if f"{name}.shortcut.weight" in w else x
            h = conv(h, w, f"{name}.conv1", stride)
            x = conv(F.relu(norm(h, w, f"{name}.bn2", kind)), w, f"{name}.conv2") + skip
            block += 1
    return linear(F.relu(norm(x, w, "bn", kind)).mean((2, 3)), w, "classifier")


def resnet(x, w, kind):
    x = F.relu(norm(conv(x, w, "stem", 2), w, "stem.bn", kind))
    x = F.max_pool2d(x, 3, 2, 1)
    for stage in (1, 2, 3, 4):
        block = 1
        while f"stage{stage}.block{block}.conv1.weight" in w:
            name = f"stage{stage}.block{block}"
            stride = 2 if stage > 1 and block == 1 else 1
            h = F.relu(norm(x, w, f"{name}.bn1", kind))
            skip = conv(h, w, f"{name}.shortcut", stride) if f"{name}.shortcut.weight" in w else x
            h = F.relu(norm(conv(h, w, f"{name}.conv1"), w, f"{name}.bn2", kind))
            h = F.relu(norm(conv(h, w, f"{name}.conv2", stride), w, f"{name}.bn3", kind))
            x = conv(h, w, f"{name}.conv3") + skip
            block += 1
    return linear(F.relu(norm(x, w, "bn", kind)).mean((2, 3)), w, "classifier")


def unet(x, w, kind):
    def block(x, name):
        for i in (1, 2):
            x = F.relu(norm(conv(x, w, f"{name}.conv{i}"), w, f"{name}.bn{i}", kind))
        return x

    skips = []
    while f"down{len(skips) + 1}.conv1.weight" in w:
        skips.append(block(x, f"down{len(skips) + 1}"))
        x = F.max_pool2d(skips[-1], 2)
    x = block(x, "bottom")
    for i in range(len(skips), 0, -1):
        x = conv(F.interpolate(x, scale_factor=2, mode="nearest"), w, f"up{i}.reduce")
        x = block(torch.cat((skips[i - 1], x), 1), f"up{i}.block")
    return linear(x.mean((2, 3)), w, "classifier")


def lstm(x, w, kind):
    """x: [time, rows, features]. Gates in the order i, f, g, o."""
    layer = 1
    while f"layer{layer}.bias" in w:
        into, again, bias = (w[f"layer{layer}.{part}"] for part in
                             ("input.weight", "recurrent.weight", "bias"))
        h = c = x.new_zeros(x.shape[1], again.shape[1])
        states = []
        for at in range(x.shape[0]):
            i, f, g, o = F.linear(x[at], into, bias).add(h @ again.T).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        x = torch.stack(states)
        layer += 1
    return linear(x[-1], w, "classifier")


def net_of(model):
    return next(net for name, net in (("mlp", mlp), ("wrn", wrn), ("resnet", resnet),
                                      ("unet", unet), ("lstm", lstm)) if model.startswith(name))
