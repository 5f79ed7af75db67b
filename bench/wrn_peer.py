"""The peer: WideResNet for small images in PyTorch, the same net as `wrn-D-K`."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        changes = inputs != outputs or stride != 1
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if changes else None

    def forward(self, x):
        h = F.relu(self.bn1(x), inplace=True)
        skip = x if self.shortcut is None else self.shortcut(h)
        return self.conv2(F.relu(self.bn2(self.conv1(h)), inplace=True)) + skip


class WideResNet(nn.Module):
    """Parameter names equal Thimble's: stem, groupG.blockB.{bn1,conv1,bn2,conv2,shortcut}, ..."""

    def __init__(self, depth=28, width=2, channels=3, classes=10):
        super().__init__()
        blocks = (depth - 4) // 6
        widths = [16, 16 * width, 32 * width, 64 * width]
        self.stem = nn.Conv2d(channels, 16, 3, 1, 1, bias=False)
        for g in range(3):
            group = nn.Module()
            for b in range(blocks):
                inputs = widths[g] if b == 0 else widths[g + 1]
                stride = 2 if g > 0 and b == 0 else 1
                group.add_module(f"block{b + 1}", Block(inputs, widths[g + 1], stride))
            self.add_module(f"group{g + 1}", group)
        self.bn = nn.BatchNorm2d(widths[3])
        self.classifier = nn.Linear(widths[3], classes)

    def forward(self, x):
        x = self.stem(x)
        for group in (self.group1, self.group2, self.group3):
            for block in group.children():
                x = block(x)
        return self.classifier(F.relu(self.bn(x), inplace=True).mean((2, 3)))
