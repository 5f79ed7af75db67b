"""Losses of Thimble and of transformers' GPT2LMHeadModel, step by step, from the same weights on the
same tokens; then Thimble's weights back in transformers, beside those that PyTorch trained.

usage: gpt2_twin.py --thimble build/release/thimble [--model gpt:layers=2,heads=2,width=64]
                    [--steps 10] [--batch 4] [--length 64] [--device cpu] [--precision fp32]
transformers writes the file that Thimble starts from, and reads the one that it exports. Fails (exit
1) when a loss or the final loss of the exported weights differs by more than --tolerance, relatively.
Needs torch and transformers.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel


def config_of(model, length):
    if model == "gpt2-124m":
        sizes = {"layers": 12, "heads": 12, "width": 768, "vocabulary": 50257}
        places = 1024
    else:
        sizes = {"layers": 6, "heads": 6, "width": 384, "vocabulary": 256}
        for setting in model.partition(":")[2].split(","):
            name, _, value = setting.partition("=")
            if name in sizes:
                sizes[name] = int(value)
        places = length
    return GPT2Config(vocab_size=sizes["vocabulary"], n_positions=places, n_embd=sizes["width"],
                      n_layer=sizes["layers"], n_head=sizes["heads"], resid_pdrop=0, embd_pdrop=0,
                      attn_pdrop=0, bos_token_id=None, eos_token_id=None)


def read_batch(path):
    from safetensors.numpy import load_file
    batch = load_file(path)
    return (torch.from_numpy(batch["tokens"].astype(np.int64)),
            torch.from_numpy(batch["targets"].astype(np.int64)))


def loss_of(net, tokens, targets):
    logits = net(tokens).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(),
                                             ignore_index=-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--thimble", default="build/release/thimble")
    parser.add_argument("--model", default="gpt:layers=2,heads=2,width=64,vocabulary=256")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--lr", type=float, default=1e-3)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(2)
    config = config_of(arguments.model, arguments.length)
    net = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        net.save_pretrained(folder / "start", safe_serialization=True)
        # nanoGPT's format: numbers of 16 bits.
        count = arguments.batch * arguments.steps * arguments.length * 2 + 1000
        stream = np.random.default_rng(2).integers(0, min(config.vocab_size, 65536), count)
        (folder / "data").mkdir()
        for split in ("train", "val"):
            stream.astype(np.uint16).tofile(folder / "data" / f"{split}.bin")
        (folder / "data/tokens.json").write_text(
            json.dumps({"vocabulary": config.vocab_size, "by": "bytes"}))
        command = [arguments.thimble, "train", arguments.model, "--length", arguments.length,
                   "--batch", arguments.batch, "--steps", arguments.steps, "--data", "tokens",
                   "--data-dir", folder / "data", "--weights", folder / "start/model.safetensors",
                   "--optimizer", "adamw", "--lr", arguments.lr, "--schedule", "constant",
                   "--weight-decay", 0.1, "--decay-on", "matrices", "--clip-norm", 1,
                   "--device", arguments.device, "--precision", arguments.precision,
                   "--export-batches", folder / "batches", "--out", folder / "run", "--no-eval",
                   "--losses", "--json"]
        if arguments.device == "cuda":
            command += ["--tf32", "off"]
        else:
            command += ["--threads", 2]
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        ours = json.loads(result.stdout)["losses"]

        matrices = [p for p in net.parameters() if p.dim() >= 2]
        vectors = [p for p in net.parameters() if p.dim() < 2]
        optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                                       {"params": vectors, "weight_decay": 0.0}],
                                      lr=arguments.lr)
        worst = 0
        for step, path in enumerate(sorted((folder / "batches").iterdir())):
            tokens, targets = read_batch(path)
            loss = loss_of(net, tokens, targets)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            difference = abs(ours[step] - loss.item()) / loss.item()
            worst = max(worst, difference)
            print(f"step {step}: Thimble {ours[step]:.6f}, transformers {loss.item():.6f} "
                  f"({difference:.1e})")

        (folder / "back").mkdir()
        subprocess.run([arguments.thimble, "export", folder / "run",
                        folder / "back/model.safetensors", "--names", "transformers"], check=True)
        config.save_pretrained(folder / "back")
        back = GPT2LMHeadModel.from_pretrained(folder / "back").float().eval()
        with torch.no_grad():
            theirs = loss_of(net.eval(), tokens, targets).item()
            mine = loss_of(back, tokens, targets).item()
        difference = abs(theirs - mine) / theirs
        worst = max(worst, difference)
        print(f"after them: exported weights {mine:.6f}, trained by PyTorch {theirs:.6f} "
              f"({difference:.1e})")
    print(f"largest difference {worst:.1e}")
    sys.exit(0 if worst <= arguments.tolerance else 1)


if __name__ == "__main__":
    main()
