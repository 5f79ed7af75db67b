"""Writes tests/import/nets/fused: two layers of each architecture, without weights, for the table of nodes a layer.

usage: make_fused.py [--program build/release/thimble] [NAME ...]
"""

import argparse
import json
import tempfile

import parity  # first: it finds the package
import torch
import transformers

FOLDER = parity.ROOT / "tests" / "import" / "nets" / "fused"
TOKENS, LENGTH, WIDTH = 64, 16, 32
COMMON = dict(
    vocab_size=TOKENS,
    hidden_size=WIDTH,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=32,
    use_cache=False,
)
UNDROPPED = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def decoder(name, **more):
    config = getattr(transformers, name + "Config")(**{**COMMON, **more})
    return getattr(transformers, name + "ForCausalLM")(config)


def vit():
    return transformers.ViTForImageClassification(
        transformers.ViTConfig(
            hidden_size=WIDTH,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=48,
            image_size=16,
            patch_size=4,
            num_labels=10,
            **UNDROPPED,
        )
    )


def gpt2():
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=TOKENS,
            n_embd=WIDTH,
            n_layer=2,
            n_head=4,
            n_positions=32,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            use_cache=False,
        )
    )


NETS = {
    "llama": lambda: decoder("Llama", num_key_value_heads=2, tie_word_embeddings=False),
    "qwen2": lambda: decoder("Qwen2", num_key_value_heads=2),
    "qwen3": lambda: decoder("Qwen3", num_key_value_heads=2, head_dim=8),
    "mistral": lambda: decoder("Mistral", num_key_value_heads=2, sliding_window=None),
    "gemma": lambda: decoder("Gemma", num_key_value_heads=1, head_dim=8),
    "phi": lambda: decoder("Phi", resid_pdrop=0.0),
    "gpt2": gpt2,
    "bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig(**COMMON, **UNDROPPED)),
    "vit": vit,
}


def batch(name):
    if name == "vit":
        return dict(pixel_values=torch.randn(2, 3, 16, 16), labels=torch.randint(0, 10, (2,)))
    ids = torch.randint(0, TOKENS, (2, LENGTH))
    return dict(input_ids=ids, labels=ids.clone())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program")
    parser.add_argument("names", nargs="*", default=list(NETS))
    args = parser.parse_args()
    thimble_torch = parity.thimble_torch(args.program)
    for name in args.names:
        torch.manual_seed(1)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/{name}.json"
            thimble_torch.export(NETS[name](), None, batch(name), path, check=False)
            with open(path) as file:
                net = json.load(file)
        for node in net["nodes"]:
            del node["at"]
        items = []
        for key, value in net.items():
            text = json.dumps(value)
            if isinstance(value, list) and value:
                lines = ",\n".join(json.dumps(item, separators=(",", ":")) for item in value)
                text = f"[\n{lines}\n]"
            items.append(f'"{key}":{text}')
        (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(items) + "\n}\n")


if __name__ == "__main__":
    main()
