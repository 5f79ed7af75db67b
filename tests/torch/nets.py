"""The nets that are exported, planned and trained beside PyTorch: name -> (module, loss, batch).

Tiny: a few blocks, small images, so that twenty steps take seconds. `full=True`: as published. Dropout is
off, since two programs draw other random bits.
"""

import torch
import torch.nn.functional as F
import torchvision
from torch import nn

ROWS = 4
CLASSES = 10


def images(size, channels=3, rows=ROWS, classes=CLASSES):
    return torch.randn(rows, channels, size, size), torch.randint(0, classes, (rows,))


def tokens(length, vocabulary, rows=ROWS):
    return torch.randint(0, vocabulary, (rows, length))


class Lstm(nn.Module):
    def __init__(self, vocabulary=50, width=24, hidden=32, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, CLASSES)

    def forward(self, ids):
        states, _ = self.lstm(self.embedding(ids))
        return self.head(states[:, -1])


class UNet(nn.Module):
    """Two levels down and up again, with transposed convolutions and skips."""

    def __init__(self, width=8, classes=5):
        super().__init__()
        self.enter = self.block(3, width)
        self.down = self.block(width, 2 * width)
        self.middle = self.block(2 * width, 4 * width)
        self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.join1 = self.block(4 * width, 2 * width)
        self.up2 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.join2 = self.block(2 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def block(into, out):
        return nn.Sequential(
            nn.Conv2d(into, out, 3, padding=1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, padding=1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        a = self.enter(x)
        b = self.down(F.max_pool2d(a, 2))
        c = self.middle(F.max_pool2d(b, 2))
        b = self.join1(torch.cat([self.up1(c), b], 1))
        a = self.join2(torch.cat([self.up2(b), a], 1))
        return self.head(a)


def cross_entropy(output, target):
    return F.cross_entropy(output, target)


def segmentation(output, target):
    """Of torchvision's segmentation nets: the main output and, at 0.4, the auxiliary one."""
    loss = F.cross_entropy(output["out"], target)
    return loss + 0.4 * F.cross_entropy(output["aux"], target) if "aux" in output else loss


def without_drops(module):
    """Two programs draw other random bits: nothing is drawn."""
    for part in module.modules():
        for name, value in vars(part).items():
            draws = "drop" in name or "drop" in type(part).__name__.lower()
            if isinstance(value, float) and (draws or isinstance(part, torchvision.ops.StochasticDepth)):
                setattr(part, name, 0.0)
    return module


def classifier(build, size):
    return lambda full: (build(full), cross_entropy, images(224 if full else size))


def resnet18(full):
    return torchvision.models.resnet18(num_classes=CLASSES)


def resnet50(full):
    if full:
        return torchvision.models.resnet50()
    from torchvision.models.resnet import Bottleneck, ResNet

    return ResNet(Bottleneck, [1, 1, 1, 1], num_classes=CLASSES)


def mobilenet_v2(full):
    if full:
        return torchvision.models.mobilenet_v2(dropout=0)
    settings = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 1, 2]]
    return torchvision.models.MobileNetV2(CLASSES, 1.0, settings, dropout=0)


def mobilenet_v3(full):
    return torchvision.models.mobilenet_v3_small(num_classes=CLASSES, dropout=0)


def efficientnet_b0(full):
    return torchvision.models.efficientnet_b0(
        num_classes=CLASSES, dropout=0, stochastic_depth_prob=0
    )


def convnext(full):
    if full:
        return torchvision.models.convnext_tiny(stochastic_depth_prob=0)
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return ConvNeXt(
        [CNBlockConfig(16, 32, 1), CNBlockConfig(32, 64, 2), CNBlockConfig(64, None, 1)],
        stochastic_depth_prob=0,
        num_classes=CLASSES,
    )


def vit(full):
    if full:
        return torchvision.models.vit_b_16()
    return torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=CLASSES)


def swin(full):
    if full:
        return without_drops(torchvision.models.swin_t())
    return torchvision.models.SwinTransformer(
        [4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=CLASSES, stochastic_depth_prob=0
    )


def dense(module, size, loss, classes=5):
    """One label a pixel."""
    return (
        module,
        loss,
        (torch.randn(ROWS, 3, size, size), torch.randint(0, classes, (ROWS, size, size))),
    )


def unet(full):
    return dense(UNet(64 if full else 8), 128 if full else 32, cross_entropy)


def fcn(full):
    from torchvision.models import resnet18, segmentation as s
    from torchvision.models._utils import IntermediateLayerGetter
    from torchvision.models.segmentation.fcn import FCN, FCNHead

    if full:
        module = s.fcn_resnet50(weights_backbone=None, num_classes=5, aux_loss=True)
        return dense(without_drops(module), 128, segmentation)
    body = IntermediateLayerGetter(resnet18(), {"layer4": "out", "layer3": "aux"})
    return dense(without_drops(FCN(body, FCNHead(512, 5), FCNHead(256, 5))), 64, segmentation)


def deeplab(full):
    from torchvision.models import resnet18, segmentation as s
    from torchvision.models._utils import IntermediateLayerGetter
    from torchvision.models.segmentation.deeplabv3 import DeepLabHead, DeepLabV3

    if full:
        module = s.deeplabv3_resnet50(weights_backbone=None, num_classes=5)
        return dense(without_drops(module), 128, segmentation)
    body = IntermediateLayerGetter(resnet18(), {"layer3": "out"})
    return dense(without_drops(DeepLabV3(body, DeepLabHead(256, 5, (2, 3)))), 48, segmentation)


def bert(full):
    from transformers import BertConfig, BertForSequenceClassification

    sizes = (
        {}
        if full
        else dict(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            vocab_size=100,
            max_position_embeddings=64,
        )
    )
    config = BertConfig(
        hidden_dropout_prob=0, attention_probs_dropout_prob=0, num_labels=CLASSES, **sizes
    )
    ids = tokens(128 if full else 16, config.vocab_size)
    return (
        BertForSequenceClassification(config),
        None,
        {"input_ids": ids, "labels": torch.randint(0, CLASSES, (ROWS,))},
    )


def gpt2(full):
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {} if full else dict(n_embd=32, n_layer=2, n_head=4, vocab_size=100, n_positions=64)
    config = GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False, **sizes)
    ids = tokens(1024 if full else 16, config.vocab_size)
    return GPT2LMHeadModel(config), None, {"input_ids": ids, "labels": ids.clone()}


def llama(full):
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = (
        dict(
            hidden_size=512,
            intermediate_size=1376,
            num_hidden_layers=8,
            num_attention_heads=8,
            num_key_value_heads=4,
            vocab_size=32000,
        )
        if full
        else dict(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=100,
            max_position_embeddings=64,
        )
    )
    config = LlamaConfig(use_cache=False, **sizes)
    ids = tokens(512 if full else 16, config.vocab_size)
    return LlamaForCausalLM(config), None, {"input_ids": ids, "labels": ids.clone()}


def lstm(full):
    return (
        (Lstm(10000, 256, 512) if full else Lstm()),
        cross_entropy,
        (tokens(128 if full else 12, 10000 if full else 50), torch.randint(0, CLASSES, (ROWS,))),
    )


NETS = {
    "resnet18": classifier(resnet18, 64),
    "resnet50": classifier(resnet50, 64),
    "mobilenet_v2": classifier(mobilenet_v2, 32),
    "mobilenet_v3": classifier(mobilenet_v3, 64),
    "efficientnet_b0": classifier(efficientnet_b0, 64),
    "convnext": classifier(convnext, 32),
    "vit": classifier(vit, 32),
    "swin": classifier(swin, 32),
    "unet": unet,
    "fcn": fcn,
    "deeplab": deeplab,
    "bert": bert,
    "gpt2": gpt2,
    "llama": llama,
    "lstm": lstm,
}

# By way of ONNX: the older exporter of PyTorch cannot write two of them, the newer one writes all.
ONNX = [name for name in NETS if name not in ("gpt2", "llama")]
DYNAMO = list(NETS)


def cropped(tensor, size, length):
    """A batch's tensor with pictures (and maps of labels) of this size, rows of this many tokens."""
    if tensor.ndim >= 3 and size:
        return tensor[..., :size, :size].contiguous()
    return tensor[:, :length].contiguous() if tensor.ndim == 2 and length else tensor


def net(name, full=False, size=None, length=None):
    """(module in training mode, loss or None: the module's own, an example batch). `size`, `length`: smaller
    pictures and shorter rows than usual, for nets that take any."""
    from more_nets import MORE

    torch.manual_seed(1)
    module, loss, batch = {**NETS, **MORE}[name](full)
    for parameter in module.parameters():  # a head of zeros hides the gradients of all that is before it
        if parameter.ndim > 1 and not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
    if isinstance(batch, dict):
        batch = {key: cropped(tensor, size, length) for key, tensor in batch.items()}
    else:
        batch = tuple(cropped(tensor, size, length) for tensor in batch)
    return module.train(), loss, batch
