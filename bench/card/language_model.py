"""A decoder of a public model's shape, trained: milliseconds of a step and bytes of its arena.

A folder as the Hub has it is written first: config.json of the shape, weights drawn at random in bf16. Rows train
it in bf16 on random tokens: all of it, with everything kept and in part of that memory, or with --lora adapters
of rank 16 beside frozen weights, within the budgets that torchtune's own table states.

usage: language_model.py --thimble PATH --shape qwen2.5-0.5b|llama-3.2-1b|llama-3.1-8b [--lora] [--device cuda]
                         [--steps N] [--calibrate SECONDS] [--work FOLDER]
"""
import argparse
import json
import pathlib
import random
import struct
import subprocess
import tempfile

COMMON = {"hidden_act": "silu", "torch_dtype": "bfloat16", "tie_word_embeddings": True, "attention_dropout": 0.0}
# Shape -> config.json, rows of a batch, tokens of a row.
SHAPES = {
    "qwen2.5-0.5b": ({**COMMON, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 896,
                      "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
                      "intermediate_size": 4864, "vocab_size": 151936, "rope_theta": 1000000.0,
                      "rms_norm_eps": 1e-6, "max_position_embeddings": 32768}, 4, 1024),
    "llama-3.2-1b": ({**COMMON, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
                      "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
                      "intermediate_size": 8192, "vocab_size": 128256, "rope_theta": 500000.0,
                      "rms_norm_eps": 1e-5, "max_position_embeddings": 131072}, 2, 2048),
    "llama-3.1-8b": ({**COMMON, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
                      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
                      "intermediate_size": 14336, "vocab_size": 128256, "rope_theta": 500000.0,
                      "tie_word_embeddings": False, "rms_norm_eps": 1e-5, "max_position_embeddings": 131072},
                     2, 2048),
    "tiny": ({**COMMON, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 64,
              "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
              "vocab_size": 512, "rope_theta": 1000000.0, "rms_norm_eps": 1e-6,
              "max_position_embeddings": 128}, 16, 128),
}
ADAPTERS = ["--lora", "rank=16,alpha=32"]
LORA = {"LoRA in 16.2 GiB": [*ADAPTERS, "--frozen", "bf16", "--memory", "16.2GiB"],
        "NF4 in 7.4 GiB": [*ADAPTERS, "--frozen", "nf4", "--memory", "7.4GiB"],
        "NF4 in 6 GiB": [*ADAPTERS, "--frozen", "nf4", "--memory", "6GiB"]}
CHUNK = 1 << 16  # numbers drawn once and repeated: values matter to nothing that is measured here


def tensors(config):
    """Names and shapes of the weights, as the Hub's files name them."""
    width, inner, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
    head = config.get("head_dim", width // heads)
    read, keys = heads * head, config["num_key_value_heads"] * head
    yield "model.embed_tokens.weight", (config["vocab_size"], width)
    yield "model.norm.weight", (width,)
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], width)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        for name, rows in (("q", read), ("k", keys), ("v", keys)):
            yield f"{at}self_attn.{name}_proj.weight", (rows, width)
            if config["model_type"] == "qwen2":
                yield f"{at}self_attn.{name}_proj.bias", (rows,)
        yield f"{at}self_attn.o_proj.weight", (width, read)
        yield f"{at}mlp.gate_proj.weight", (inner, width)
        yield f"{at}mlp.up_proj.weight", (inner, width)
        yield f"{at}mlp.down_proj.weight", (width, inner)
        yield f"{at}input_layernorm.weight", (width,)
        yield f"{at}post_attention_layernorm.weight", (width,)


def bf16(values):
    """The upper halves of fp32 numbers."""
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def write_folder(config, folder):
    draws = random.Random(1)
    drawn = bf16(draws.gauss(0, 0.02) for _ in range(CHUNK))
    header, end = {}, 0
    for name, shape in tensors(config):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + 2 * count]}
        end += 2 * count
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, entry in header.items():
            begin, stop = entry["data_offsets"]
            if name.endswith("norm.weight"):
                file.write(bf16([1.0]) * ((stop - begin) // 2))
                continue
            whole, rest = divmod(stop - begin, len(drawn))
            for _ in range(whole):
                file.write(drawn)
            file.write(drawn[:rest])


def asked(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit((done.stderr.strip() or done.stdout.strip())[-600:])
    return json.loads(done.stdout[done.stdout.index("{"):])


def rows_of_all(train):
    """(name, result) of rows that train every weight."""
    kept = train("kept", [])
    return [("kept", kept), ("8-bit state", train("8-bit-state", ["--state-bits", 8])),
            ("three quarters", train("three-quarters", ["--memory", kept["measured_arena_bytes"] * 3 // 4,
                                                        "--fit", "off"]))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--thimble", required=True)
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--lora", action="store_true", help="adapters alone are trained")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--calibrate", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--work", type=pathlib.Path)
    args = parser.parse_args()
    config, batch, length = SHAPES[args.shape]
    with tempfile.TemporaryDirectory(dir=args.work) as scratch:
        folder = pathlib.Path(scratch, args.shape)
        write_folder(config, folder)
        step = [f"hf:{folder}", "--batch", batch, "--length", length, "--precision", "bf16", "--optimizer", "adamw",
                "--device", args.device, "--json"]
        if args.calibrate:
            for frozen in ("bf16", "nf4") if args.lora else (None,):
                flags = [*ADAPTERS, "--frozen", frozen] if frozen else []
                asked([args.thimble, "calibrate", *step, *flags, "--seconds", args.calibrate])

        def train(name, flags):
            return asked([args.thimble, "train", *step, "--data", "noise", "--steps", args.steps, "--no-eval",
                          "--out", pathlib.Path(scratch, name.replace(" ", "-")), *flags])

        rows = [(name, train(name, flags)) for name, flags in LORA.items()] if args.lora else rows_of_all(train)
    figures = {}
    for name, result in rows:
        figures[f"{name} ms"] = round(result["step_ms"], 2)
        figures[f"{name} MiB"] = round(result["measured_arena_bytes"] / 2**20, 1)
        figures[f"{name} predicted ms"] = round(result["predicted_step_ms"], 2)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
