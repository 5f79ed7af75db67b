"""Other nets of torchvision, transformers and timm, tiny: name -> build(full) -> (module, loss, batch).

`parity.py --more` trains those beside PyTorch that take a moment; `parity.py --rate 1e-7 NAME` one of the others.
"""

import torch
import torchvision
from torch import nn

from nets import (
    CLASSES,
    ROWS,
    classifier,
    cross_entropy,
    dense,
    images,
    segmentation,
    tokens,
    without_drops,
)

WORDS, LENGTH = 100, 16


def of_torchvision(name, size=64, **settings):
    return classifier(
        lambda full: without_drops(
            getattr(torchvision.models, name)(num_classes=CLASSES, **settings)
        ),
        size,
    )


def of_timm(name, size=64):
    def build(full):
        import timm

        return timm.create_model(name, num_classes=CLASSES)

    return classifier(build, size)


def of_segmentation(name, size=64, **settings):
    def build(full):
        make = getattr(torchvision.models.segmentation, name)
        module = make(weights=None, weights_backbone=None, num_classes=5, **settings)
        return dense(without_drops(module), size, segmentation)

    return build


def of_video(name, frames=4, size=32):
    def build(full):
        module = without_drops(getattr(torchvision.models.video, name)(num_classes=CLASSES))
        clips = torch.randn(ROWS, 3, frames, size, size)
        return module, cross_entropy, (clips, torch.randint(0, CLASSES, (ROWS,)))

    return build


def swin_v2(full):
    from torchvision.models import swin_transformer as s

    module = s.SwinTransformer(
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
    return module, cross_entropy, images(32)


def maxvit(full):
    module = torchvision.models.MaxVit(
        (64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=CLASSES
    )
    return module, cross_entropy, images(64)


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


def both_ways(full):
    return BothWays(), cross_entropy, (tokens(12, 50), torch.randint(0, CLASSES, (ROWS,)))


TORCHVISION = {
    "alexnet": of_torchvision("alexnet"),
    "vgg11_bn": of_torchvision("vgg11_bn", 32),
    "resnext50": of_torchvision("resnext50_32x4d"),
    "wide_resnet50": of_torchvision("wide_resnet50_2"),
    "densenet121": of_torchvision("densenet121"),
    "squeezenet": of_torchvision("squeezenet1_1"),
    "shufflenet": of_torchvision("shufflenet_v2_x0_5"),
    "mnasnet": of_torchvision("mnasnet0_5"),
    "regnet_x": of_torchvision("regnet_x_400mf"),
    "regnet_y": of_torchvision("regnet_y_400mf"),
    "googlenet": of_torchvision("googlenet", aux_logits=False, init_weights=False),
    "inception_v3": of_torchvision("inception_v3", 128, aux_logits=False, init_weights=False),
    "efficientnet_v2_s": of_torchvision("efficientnet_v2_s", stochastic_depth_prob=0),
    "swin_v2": swin_v2,
    "maxvit": maxvit,
    "fcn_resnet50": of_segmentation("fcn_resnet50", aux_loss=True),
    "deeplabv3_mobilenet": of_segmentation("deeplabv3_mobilenet_v3_large", aux_loss=True),
    "lraspp": of_segmentation("lraspp_mobilenet_v3_large"),
    "r3d_18": of_video("r3d_18"),
    "mc3_18": of_video("mc3_18"),
    "r2plus1d_18": of_video("r2plus1d_18"),
    "lstm_both_ways": both_ways,
}


def text(labels):
    """Token ids, with labels: one a row, or those that come next. 0 to 2 stand for nothing, begin, end."""
    ids = tokens(LENGTH, WORDS).clamp(min=3)
    return {"input_ids": ids, "labels": labels(ids)}


def of_rows():
    return text(lambda ids: torch.randint(0, 2, (ROWS,)))


def of_words():
    return text(torch.clone)


def of_padded(kind):
    """With a mask of what was padded."""

    def batch():
        fields = kind()
        return {
            "input_ids": fields["input_ids"],
            "attention_mask": torch.ones(ROWS, LENGTH, dtype=torch.long),
            "labels": fields["labels"],
        }

    return batch


def of_spans():
    places = {name: torch.randint(0, LENGTH, (ROWS,)) for name in ("start_positions", "end_positions")}
    return {"input_ids": of_words()["input_ids"], **places}


def of_pictures(size=32):
    return lambda: {
        "pixel_values": torch.randn(ROWS, 3, size, size),
        "labels": torch.randint(0, 2, (ROWS,)),
    }


def of_maps():
    return {
        "pixel_values": torch.randn(ROWS, 3, 64, 64),
        "labels": torch.randint(0, 5, (ROWS, 64, 64)),
    }


def of_sounds(kind):
    return lambda: {"input_features": torch.randn(ROWS, 16, 64), "labels": kind()["labels"]}


def of_waves():
    return {"input_values": torch.randn(ROWS, 400), "labels": torch.randint(0, 2, (ROWS,))}


def of_transformers(model, config, batch, **settings):
    """A net of transformers by the names of its class and of its configuration."""

    def build(full):
        import transformers

        made = getattr(transformers, config)(**settings)
        for name, value in vars(made).items():
            if "drop" in name and isinstance(value, float):
                setattr(made, name, 0.0)
        return without_drops(getattr(transformers, model)(made)), None, batch()

    return build


SPECIAL = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
SMALL = dict(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=WORDS
)
CAUSAL = dict(SMALL, use_cache=False)
GROUPED = dict(CAUSAL, num_key_value_heads=2)
GPT = dict(n_embd=32, n_layer=2, n_head=4, vocab_size=WORDS, n_positions=64, use_cache=False)
T5 = dict(
    d_model=32,
    d_ff=64,
    d_kv=8,
    num_layers=2,
    num_heads=4,
    vocab_size=WORDS,
    use_cache=False,
    decoder_start_token_id=0,
    pad_token_id=0,
)
BOTH = dict(
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    vocab_size=WORDS,
    use_cache=False,
    decoder_start_token_id=1,
    **SPECIAL,
)
PATCHES = dict(
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    image_size=32,
    patch_size=8,
)
WINDOWS = dict(
    image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4
)
STAGES = dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])
HEARS = dict(BOTH, max_source_positions=32, max_target_positions=32, num_mel_bins=16)


DISENTANGLED = dict(
    SMALL, relative_attention=True, pos_att_type=["c2p", "p2c"], max_position_embeddings=32, pad_token_id=0
)
WAVES = dict(
    SMALL,
    conv_dim=[16, 16],
    conv_stride=[4, 2],
    conv_kernel=[8, 4],
    num_feat_extract_layers=2,
    num_conv_pos_embeddings=8,
    num_conv_pos_embedding_groups=2,
    mask_time_prob=0.0,
    classifier_proj_size=16,
)


def causal(name, batch=of_words, **settings):
    return of_transformers(f"{name}ForCausalLM", f"{name}Config", batch, **settings)


def classifies(name, batch=of_rows, **settings):
    return of_transformers(f"{name}ForSequenceClassification", f"{name}Config", batch, **settings)


def sees(name, batch, **settings):
    return of_transformers(f"{name}ForImageClassification", f"{name}Config", batch, **settings)


TRANSFORMERS = {
    "bert_padded": classifies("Bert", of_padded(of_rows), **SMALL),
    "bert_masked": of_transformers("BertForMaskedLM", "BertConfig", of_words, **SMALL),
    "bert_tokens": of_transformers(
        "BertForTokenClassification", "BertConfig", of_words, num_labels=WORDS, **SMALL
    ),
    "bert_answers": of_transformers("BertForQuestionAnswering", "BertConfig", of_spans, **SMALL),
    "distilbert": classifies(
        "DistilBert",
        of_padded(of_rows),
        dim=32,
        hidden_dim=64,
        n_layers=2,
        n_heads=4,
        vocab_size=WORDS,
    ),
    "roberta": classifies("Roberta", of_padded(of_rows), max_position_embeddings=40, **SMALL),
    "electra": classifies("Electra", embedding_size=16, **SMALL),
    "albert": classifies("Albert", embedding_size=16, **SMALL),
    "mobilebert": classifies("MobileBert", embedding_size=16, intra_bottleneck_size=16, **SMALL),
    "modernbert": classifies("ModernBert", cls_token_id=1, sep_token_id=2, **SPECIAL, **SMALL),
    "mpnet": classifies("MPNet", **SMALL),
    "t5": of_transformers("T5ForConditionalGeneration", "T5Config", of_words, **T5),
    "flan_t5": of_transformers(
        "T5ForConditionalGeneration",
        "T5Config",
        of_words,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        **T5,
    ),
    "bart": of_transformers(
        "BartForConditionalGeneration", "BartConfig", of_words, max_position_embeddings=64, **BOTH
    ),
    "marian": of_transformers(
        "MarianMTModel", "MarianConfig", of_words, max_position_embeddings=64, **BOTH
    ),
    "whisper": of_transformers(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        of_sounds(of_words),
        suppress_tokens=None,
        begin_suppress_tokens=None,
        **HEARS,
    ),
    "whisper_encoder": of_transformers(
        "WhisperForAudioClassification",
        "WhisperConfig",
        of_sounds(of_rows),
        classifier_proj_size=16,
        **HEARS,
    ),
    "vit_hf": sees("ViT", of_pictures(), **PATCHES),
    "deit": sees("DeiT", of_pictures(), **PATCHES),
    "beit": sees("Beit", of_pictures(), **PATCHES),
    "dinov2": sees(
        "Dinov2",
        of_pictures(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
    ),
    "swin_hf": sees("Swin", of_pictures(), **WINDOWS),
    "swinv2_hf": sees("Swinv2", of_pictures(), **WINDOWS),
    "convnextv2": sees(
        "ConvNextV2", of_pictures(), hidden_sizes=[16, 32], depths=[1, 1], num_stages=2
    ),
    "mobilevit": sees(
        "MobileViT",
        of_pictures(64),
        image_size=64,
        hidden_sizes=[24, 32, 40],
        neck_hidden_sizes=[8, 8, 16, 16, 24, 24, 32],
    ),
    "poolformer": sees("PoolFormer", of_pictures(64), **STAGES),
    "segformer": of_transformers(
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        of_maps,
        num_attention_heads=[1, 2, 2, 4],
        num_labels=5,
        decoder_hidden_size=16,
        **STAGES,
    ),
    "gpt2_padded": of_transformers("GPT2LMHeadModel", "GPT2Config", of_padded(of_words), **GPT),
    "gpt2_classifier": classifies("GPT2", pad_token_id=0, **GPT),
    "llama_padded": causal("Llama", of_padded(of_words), **GROUPED),
    "llama_classifier": classifies("Llama", pad_token_id=0, **GROUPED),
    "mistral": causal("Mistral", sliding_window=8, **GROUPED),
    "qwen2": causal("Qwen2", **GROUPED),
    "qwen3": causal("Qwen3", head_dim=8, **GROUPED),
    "gemma": causal("Gemma", num_key_value_heads=1, head_dim=8, **CAUSAL),
    "gemma2": causal("Gemma2", head_dim=8, sliding_window=8, **GROUPED),
    "phi": causal("Phi", **CAUSAL),
    "phi3": causal("Phi3", pad_token_id=0, **GROUPED),
    "opt": causal(
        "OPT",
        hidden_size=32,
        ffn_dim=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        vocab_size=WORDS,
        word_embed_proj_dim=32,
        max_position_embeddings=64,
        use_cache=False,
    ),
    "gpt_neox": causal("GPTNeoX", **CAUSAL),
    "gpt_neo": causal(
        "GPTNeo",
        hidden_size=32,
        num_layers=2,
        attention_types=[[["global", "local"], 1]],
        num_heads=4,
        vocab_size=WORDS,
        max_position_embeddings=64,
        window_size=8,
        use_cache=False,
    ),
    "gptj": causal("GPTJ", rotary_dim=4, **GPT),
    "bloom": causal(
        "Bloom", hidden_size=32, n_layer=2, n_head=4, vocab_size=WORDS, use_cache=False
    ),
    "falcon": causal(
        "Falcon",
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        vocab_size=WORDS,
        use_cache=False,
    ),
    "deberta": classifies("Deberta", problem_type="single_label_classification", **DISENTANGLED),
    "deberta_v2": classifies("DebertaV2", problem_type="single_label_classification", **DISENTANGLED),
    "deberta_masked": of_transformers("DebertaV2ForMaskedLM", "DebertaV2Config", of_words, **DISENTANGLED),
    "xlnet": classifies("XLNet", d_model=32, n_layer=2, n_head=4, d_inner=64, vocab_size=WORDS),
    "funnel": classifies(
        "Funnel", block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=64, vocab_size=WORDS
    ),
    "convbert": classifies("ConvBert", embedding_size=16, conv_kernel_size=3, **SMALL),
    "squeezebert": classifies("SqueezeBert", embedding_size=32, **SMALL),
    "xlm": classifies("XLM", emb_dim=32, n_layers=2, n_heads=4, n_words=WORDS, pad_index=0),
    "roformer": classifies("RoFormer", embedding_size=16, pad_token_id=0, **SMALL),
    "esm": classifies("Esm", pad_token_id=0, mask_token_id=1, **SMALL),
    "nystromformer": classifies("Nystromformer", num_landmarks=16, segment_means_seq_len=16, **SMALL),
    "bigbird": classifies("BigBird", attention_type="original_full", **SMALL),
    "wav2vec2": of_transformers(
        "Wav2Vec2ForSequenceClassification", "Wav2Vec2Config", of_waves, **WAVES
    ),
    "hubert": of_transformers("HubertForSequenceClassification", "HubertConfig", of_waves, **WAVES),
    "clip_classifier": of_transformers(
        "CLIPForImageClassification", "CLIPConfig", of_pictures(), vision_config=PATCHES
    ),
    "convnext_hf": sees("ConvNext", of_pictures(), hidden_sizes=[16, 32], depths=[1, 1], num_stages=2),
    "levit": sees(
        "Levit",
        of_pictures(64),
        image_size=64,
        hidden_sizes=[16, 32, 48],
        num_attention_heads=[2, 4, 6],
        key_dim=[8, 8, 8],
        depths=[1, 1, 1],
    ),
    "mobilevitv2": sees("MobileViTV2", of_pictures(64), image_size=64, width_multiplier=0.25),
    "focalnet": sees(
        "FocalNet", of_pictures(), image_size=32, embed_dim=16, hidden_sizes=[16, 32], depths=[1, 1],
        focal_levels=[1, 1], focal_windows=[3, 3],
    ),
    "mamba": causal("Mamba", state_size=4, time_step_rank=4, **CAUSAL),
    "mamba2": causal("Mamba2", state_size=4, num_heads=8, head_dim=8, n_groups=2, chunk_size=8, **CAUSAL),
    "rwkv": causal("Rwkv", attention_hidden_size=32, context_length=32, **CAUSAL),
    "recurrent_gemma": causal("RecurrentGemma", num_key_value_heads=1, lru_width=32, **CAUSAL),
    "mpt": causal("Mpt", d_model=32, n_heads=4, n_layers=2, vocab_size=WORDS, use_cache=False),
    "stablelm": causal("StableLm", **GROUPED),
    "xglm": causal(
        "XGLM", d_model=32, ffn_dim=64, num_layers=2, attention_heads=4, vocab_size=WORDS, use_cache=False
    ),
    "olmo2": causal("Olmo2", **GROUPED),
    "cohere": causal("Cohere", **GROUPED),
}

# Branches that meet again and again: a gradient has many claims on it.
TIMM = {"hrnet_w18_small": of_timm("hrnet_w18_small"), "res2next50": of_timm("res2next50")}

MORE = {**TORCHVISION, **TRANSFORMERS, **TIMM}

# Nets that are small, and steady at the usual rate.
QUICK = ["swin_v2", "maxvit", "lraspp", "mc3_18", "lstm_both_ways", *TIMM, *TRANSFORMERS]
