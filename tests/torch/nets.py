"""The nets that are exported, planned and trained beside PyTorch: name -> (module, loss, batch).

Tiny: a few blocks, small images, so that twenty steps take seconds. `full=True`: as published, for
planning alone. Dropout is off, since two programs draw other random bits.
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
        return torchvision.models.swin_t(stochastic_depth_prob=0)
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
        return dense(
            s.fcn_resnet50(weights_backbone=None, num_classes=5, aux_loss=True), 128, segmentation
        )
    body = IntermediateLayerGetter(resnet18(), {"layer4": "out", "layer3": "aux"})
    module = FCN(body, FCNHead(512, 5), FCNHead(256, 5))
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return dense(module, 64, segmentation)


def deeplab(full):
    from torchvision.models import resnet18, segmentation as s
    from torchvision.models._utils import IntermediateLayerGetter
    from torchvision.models.segmentation.deeplabv3 import DeepLabHead, DeepLabV3

    if full:
        return dense(s.deeplabv3_resnet50(weights_backbone=None, num_classes=5), 128, segmentation)
    body = IntermediateLayerGetter(resnet18(), {"layer3": "out"})
    module = DeepLabV3(body, DeepLabHead(256, 5, (2, 3)))
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return dense(module, 48, segmentation)


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


def torchvision_net(name, size=64, **settings):
    return classifier(
        lambda full: getattr(torchvision.models, name)(num_classes=CLASSES, **settings), size
    )


SMALL = dict(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=100
)


def transformers_net(config, model, causal=False, labels=True, **settings):
    """A net of transformers by the names of its configuration and of its class."""

    def build(full):
        import transformers

        made = getattr(transformers, config)(**settings)
        module = getattr(transformers, model)(made)
        ids = tokens(16, made.vocab_size).clamp(min=3)  # below are tokens that stand for nothing
        target = ids.clone() if causal else torch.randint(0, CLASSES, (ROWS,))
        return module, None, {"input_ids": ids, "labels": target}

    return build


class T5Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import T5Config, T5EncoderModel

        self.encoder = T5EncoderModel(
            T5Config(
                d_model=32, d_ff=64, d_kv=8, num_layers=2, num_heads=4, vocab_size=100, dropout_rate=0
            )
        )
        self.head = nn.Linear(32, CLASSES)

    def forward(self, ids):
        return self.head(self.encoder(input_ids=ids).last_hidden_state.mean(1))


class BothWays(nn.Module):
    """An LSTM in both directions."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 24)
        self.lstm = nn.LSTM(24, 16, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, CLASSES)

    def forward(self, ids):
        states, (last, _) = self.lstm(self.embedding(ids))
        return self.head(states.mean(1) + torch.cat([last[-2], last[-1]], 1))


def ids_net(build):
    return lambda full: (build(), cross_entropy, (tokens(12, 50), torch.randint(0, CLASSES, (ROWS,))))


def swin_v2():
    from torchvision.models import swin_transformer as s

    return s.SwinTransformer(
        [4, 4],
        16,
        [2, 2],
        [2, 4],
        [4, 4],
        num_classes=CLASSES,
        stochastic_depth_prob=0,
        block=s.SwinTransformerBlockV2,
        downsample_layer=s.PatchMergingV2,
    )


# Others of the same libraries.
MORE = {
    "resnext50": torchvision_net("resnext50_32x4d"),
    "wide_resnet50": torchvision_net("wide_resnet50_2"),
    "densenet121": torchvision_net("densenet121"),
    "squeezenet": torchvision_net("squeezenet1_1", dropout=0),
    "shufflenet": torchvision_net("shufflenet_v2_x0_5"),
    "regnet_y": torchvision_net("regnet_y_400mf"),
    "regnet_x": torchvision_net("regnet_x_400mf"),
    "mnasnet": torchvision_net("mnasnet0_5", dropout=0),
    "googlenet": torchvision_net("googlenet", aux_logits=False, init_weights=False, dropout=0),
    "inception_v3": torchvision_net(
        "inception_v3", 128, aux_logits=False, init_weights=False, dropout=0
    ),
    "efficientnet_v2_s": torchvision_net("efficientnet_v2_s", dropout=0, stochastic_depth_prob=0),
    "vgg11_bn": torchvision_net("vgg11_bn", 32, dropout=0),
    "alexnet": torchvision_net("alexnet", 64, dropout=0),
    "swin_v2": lambda full: (swin_v2(), cross_entropy, images(32)),
    "maxvit": lambda full: (
        torchvision.models.MaxVit(
            (64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=CLASSES
        ),
        cross_entropy,
        images(64),
    ),
    "distilbert": transformers_net(
        "DistilBertConfig",
        "DistilBertForSequenceClassification",
        dim=32,
        hidden_dim=64,
        n_layers=2,
        n_heads=4,
        vocab_size=100,
        dropout=0,
        attention_dropout=0,
        seq_classif_dropout=0,
        num_labels=CLASSES,
    ),
    "roberta": transformers_net(
        "RobertaConfig",
        "RobertaForSequenceClassification",
        **SMALL,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
        max_position_embeddings=40,
        num_labels=CLASSES,
    ),
    "electra": transformers_net(
        "ElectraConfig",
        "ElectraForSequenceClassification",
        **SMALL,
        embedding_size=16,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
        num_labels=CLASSES,
    ),
    "albert": transformers_net(
        "AlbertConfig",
        "AlbertForSequenceClassification",
        **SMALL,
        embedding_size=16,
        classifier_dropout_prob=0,
        num_labels=CLASSES,
    ),
    "bert_masked": transformers_net(
        "BertConfig",
        "BertForMaskedLM",
        True,
        **SMALL,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
    ),
    "t5_encoder": ids_net(T5Classifier),
    "qwen2": transformers_net(
        "Qwen2Config", "Qwen2ForCausalLM", True, **SMALL, num_key_value_heads=2, use_cache=False
    ),
    "qwen3": transformers_net(
        "Qwen3Config",
        "Qwen3ForCausalLM",
        True,
        **SMALL,
        num_key_value_heads=2,
        head_dim=8,
        use_cache=False,
    ),
    "mistral": transformers_net(
        "MistralConfig",
        "MistralForCausalLM",
        True,
        **SMALL,
        num_key_value_heads=2,
        sliding_window=8,
        use_cache=False,
    ),
    "phi": transformers_net("PhiConfig", "PhiForCausalLM", True, **SMALL, use_cache=False),
    "gemma": transformers_net(
        "GemmaConfig",
        "GemmaForCausalLM",
        True,
        **SMALL,
        num_key_value_heads=1,
        head_dim=8,
        use_cache=False,
    ),
    "gpt_neox": transformers_net(
        "GPTNeoXConfig", "GPTNeoXForCausalLM", True, **SMALL, use_cache=False
    ),
    "opt": transformers_net(
        "OPTConfig",
        "OPTForCausalLM",
        True,
        hidden_size=32,
        ffn_dim=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        vocab_size=100,
        word_embed_proj_dim=32,
        max_position_embeddings=64,
        dropout=0,
        use_cache=False,
    ),
    "bloom": transformers_net(
        "BloomConfig",
        "BloomForCausalLM",
        True,
        hidden_size=32,
        n_layer=2,
        n_head=4,
        vocab_size=100,
        use_cache=False,
    ),
    "lstm_both_ways": ids_net(BothWays),
}

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

# By way of ONNX: what PyTorch's older exporter can write, and its newer one.
ONNX = [name for name in NETS if name not in ("swin", "gpt2", "llama")]
DYNAMO = [name for name in NETS if name not in ("convnext", "swin", "fcn", "deeplab")]


def net(name, full=False):
    """(module in training mode, loss or None: the module's own, an example batch)."""
    torch.manual_seed(1)
    module, loss, batch = {**NETS, **MORE}[name](full)
    return module.train(), loss, batch
