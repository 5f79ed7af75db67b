"""Trains folders of transformers by hf:FOLDER and with PyTorch, from the same weights on the same tokens, and compares.

usage: decoders.py [--program build/release/thimble] [--steps 20] [NAME ...]

Tiny decoders of every type that hf: reads, saved in several shards. Prints the largest difference of losses, and that
of the weights that `thimble export --names transformers` writes; exits 1 where one is above 1e-5 or 1e-4.
"""

import argparse
import glob
import json
import os
import sys
import tempfile

import parity  # first: it finds the package
import torch
import torch.nn.functional as F
import transformers

TOKENS, LENGTH, ROWS = 97, 12, 3
MOST_LOSS, MOST_WEIGHT = 1e-5, 1e-4
COMMON = dict(
    vocab_size=TOKENS,
    hidden_size=32,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=48,
    max_position_embeddings=64,
    use_cache=False,
)
LLAMA3 = dict(
    rope_type="llama3",
    rope_theta=500000.0,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=16,
)
NETS = {
    "llama": ("Llama", {}),
    "tied": ("Llama", dict(tie_word_embeddings=True)),
    "llama3": ("Llama", dict(rope_parameters=LLAMA3)),
    "linear": ("Llama", dict(rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0))),
    "biased": ("Llama", dict(attention_bias=True, mlp_bias=True)),
    "mistral": ("Mistral", dict(sliding_window=None)),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", dict(head_dim=16)),
    "smollm3": ("SmolLM3", dict(pad_token_id=None)),
    "gemma": ("Gemma", dict(head_dim=16, num_key_value_heads=1)),
}


def compare(name, program, steps, folder):
    tools = parity.thimble_torch(program)
    torch.manual_seed(3)
    kind, more = NETS[name]
    config = getattr(transformers, kind + "Config")(**{**COMMON, **more})
    module = getattr(transformers, kind + "ForCausalLM")(config)
    for key, tensor in module.named_parameters():
        if "norm" in key:
            torch.nn.init.normal_(tensor, tensor.mean().item(), 0.2)
    saved = os.path.join(folder, "net")
    module.save_pretrained(saved, max_shard_size="40KB")
    tokens = torch.randint(0, TOKENS, (8 * ROWS, LENGTH + 1), dtype=torch.int32)
    os.makedirs(os.path.join(folder, "train"))
    for field, part in (("tokens", tokens[:, :-1]), ("targets", tokens[:, 1:])):
        parity.numpy.save(os.path.join(folder, "train", field + ".npy"), part.contiguous().numpy())
    out = os.path.join(folder, "run")
    result = json.loads(
        parity.run(program, "train", "hf:" + saved, "--json", "--losses", "--length", LENGTH, "--batch", ROWS, "--data",
                   "npy", "--data-dir", folder, "--steps", steps, "--optimizer", "sgd", "--momentum", 0.9,
                   "--weight-decay", 0, "--lr", 0.01, "--schedule", "constant", "--threads", 2, "--no-eval", "--out",
                   out, "--export-batches", out + ".batches")
    )
    parity.run(program, "export", out, out + ".safetensors", "--names", "transformers")
    optimizer = torch.optim.SGD(module.parameters(), 0.01, momentum=0.9)
    worst = 0.0
    for step, path in enumerate(sorted(glob.glob(os.path.join(out + ".batches", "*")))):
        fed = tools.read_safetensors(path)
        optimizer.zero_grad()
        logits = module(input_ids=fed["tokens"].long()).logits
        loss = F.cross_entropy(logits.flatten(0, 1), fed["targets"].long().flatten())
        loss.backward()
        optimizer.step()
        worst = max(worst, abs(result["losses"][step] - loss.item()))
    written = tools.read_safetensors(out + ".safetensors")
    own = module.state_dict()
    missing = [key for key in own if key not in written]
    apart = max((written[key] - own[key]).abs().max().item() for key in own if key in written)
    return worst, apart, missing, len(glob.glob(os.path.join(saved, "*.safetensors")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=str(parity.ROOT / "build" / "release" / "thimble"))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("nets", nargs="*", default=list(NETS))
    args = parser.parse_args()
    failed = []
    for name in args.nets:
        with tempfile.TemporaryDirectory() as folder:
            try:
                worst, apart, missing, shards = compare(name, args.program, args.steps, folder)
            except Exception as error:
                print(f"{name:10} FAILED {type(error).__name__}: {error}", flush=True)
                failed.append(name)
                continue
        good = worst <= MOST_LOSS and apart <= MOST_WEIGHT and not missing
        print(f"{name:10} loss {worst:.1e}  weights {apart:.1e}  shards {shards}  {'ok' if good else 'APART'}"
              f"{' missing ' + ' '.join(missing) if missing else ''}", flush=True)
        if not good:
            failed.append(name)
    if failed:
        print("failed:", " ".join(failed))
        sys.exit(1)


if __name__ == "__main__":
    main()
