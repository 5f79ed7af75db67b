"""ResNet-50, ConvNeXt-T and ViT-B/16 in plain PyTorch, layer by layer as torchvision has them: for machines
without it. 1,000 classes, images of 224 by 224."""
import torch
import torch.nn.functional as F
from torch import nn

CLASSES, SIZE = 1000, 224


class Bottleneck(nn.Module):
    def __init__(self, inputs, inner, stride):
        super().__init__()
        outputs = 4 * inner
        self.conv1, self.bn1 = nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                            nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)), inplace=True)


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        blocks, inputs = [], 64
        for stage, count in enumerate([3, 4, 6, 3]):
            inner = 64 << stage
            for at in range(count):
                blocks.append(Bottleneck(inputs, inner, 2 if stage > 0 and at == 0 else 1))
                inputs = 4 * inner
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(2048, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x)), inplace=True), 3, 2, 1)
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(self.blocks(x), 1), 1))


class NormOfChannels(nn.LayerNorm):
    """Over the channels of [N,C,H,W]."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.pwconv1, self.pwconv2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.layer_scale = nn.Parameter(torch.full((width, 1, 1), 1e-6))

    def forward(self, x):
        y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        y = self.pwconv2(F.gelu(self.pwconv1(y))).permute(0, 3, 1, 2)
        return x + self.layer_scale * y


class ConvNeXtTiny(nn.Module):
    def __init__(self, widths=(96, 192, 384, 768), counts=(3, 3, 9, 3)):
        super().__init__()
        layers = [nn.Conv2d(3, widths[0], 4, 4), NormOfChannels(widths[0], eps=1e-6)]
        for stage, (width, count) in enumerate(zip(widths, counts)):
            if stage > 0:
                layers += [NormOfChannels(widths[stage - 1], eps=1e-6),
                           nn.Conv2d(widths[stage - 1], width, 2, 2)]
            layers += [ConvNeXtBlock(width) for _ in range(count)]
        self.features = nn.Sequential(*layers)
        self.norm = NormOfChannels(widths[-1], eps=1e-6)
        self.head = nn.Linear(widths[-1], CLASSES)

    def forward(self, x):
        x = F.adaptive_avg_pool2d(self.features(x), 1)
        return self.head(torch.flatten(self.norm(x), 1))


class EncoderBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp1, self.mlp2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (part.view(n, t, self.heads, c // self.heads).transpose(1, 2)
                   for part in self.qkv(self.ln_1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, c)
        x = x + self.out(y)
        return x + self.mlp2(F.gelu(self.mlp1(self.ln_2(x))))


class ViTB16(nn.Module):
    def __init__(self, width=768, layers=12, heads=12, patch=16):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, width, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        places = (SIZE // patch) ** 2 + 1
        self.pos_embedding = nn.Parameter(torch.randn(1, places, width) * 0.02)
        self.layers = nn.Sequential(*(EncoderBlock(width, heads) for _ in range(layers)))
        self.ln = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embedding
        return self.head(self.ln(self.layers(x))[:, 0])


NETS = {"resnet50": ResNet50, "convnext_t": ConvNeXtTiny, "vit_b16": ViTB16}


def optimizer_of(name, model):
    if name == "resnet50":
        return torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return torch.optim.AdamW(model.parameters(), 1e-4)
