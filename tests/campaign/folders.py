"""Folders of transformers take the bytes that `thimble plan` says from config.json alone.

usage: folders.py THIMBLE [--count 100] [--seconds 900] [--seed 1]
`--count` random decoders, each a folder of config.json and, for the run, random weights. Each has a random
length, batch, budget and way of training: everything, or adapters beside weights as stored, in bf16, int8 or
NF4. It is planned without its weights, then trained for two steps. Checked: training without weights is
refused. The arena measured in the run is the arena planned, and within the budget. The process takes no more
than planned. Published shapes (tests/shapes) have as many numbers as their authors say.
"""
import array
import json
import pathlib
import random
import shutil
import struct
import sys
import time

from parts import arguments_of, finish

NAMES = ["llama", "mistral", "qwen2", "qwen3", "smollm3", "gemma"]
WAYS = [  # of training
    [],
    ["--precision", "bf16", "--rounding", "stochastic", "--state-bits", "8"],
    ["--precision", "bf16", "--master"],
    ["--lora"],
    ["--lora", "--precision", "bf16"],
    ["--lora", "--frozen", "bf16"],
    ["--lora", "--precision", "bf16", "--frozen", "int8"],
    ["--lora", "--frozen", "nf4"],
    ["--lora", "--precision", "bf16", "--frozen", "nf4"],
]

SHAPES = {"smollm2-135m": 134_515_008, "qwen2.5-0.5b": 494_032_768, "qwen2.5-7b": 7_615_616_512,
          "llama-3.1-8b": 8_030_261_248, "llama-3.1-70b": 70_553_706_496}


def random_config(rng):
    kind = rng.choice(NAMES)
    groups = rng.choice([1, 1, 2, 3])
    heads = groups * rng.choice([1, 2, 4])
    size = rng.choice([8, 16, 32])
    config = {"model_type": kind, "num_hidden_layers": rng.randint(1, 4), "num_attention_heads": heads,
              "num_key_value_heads": groups, "hidden_size": heads * size,
              "intermediate_size": rng.choice([48, 100, 176, 256]), "vocab_size": rng.choice([97, 256, 1000]),
              "max_position_embeddings": 256, "rms_norm_eps": 1e-5}
    if kind in ("qwen3", "gemma") or rng.random() < 0.2:
        config["head_dim"] = rng.choice([8, 16])
    if kind in ("llama", "qwen2", "qwen3"):
        config["tie_word_embeddings"] = rng.random() < 0.5
    if kind == "llama" and rng.random() < 0.3:
        config["attention_bias"] = config["mlp_bias"] = True
    if kind == "gemma":
        config["pad_token_id"] = 0
    return config


def tensors_of(config):
    """Name -> shape, as transformers has them."""
    width, inner, words = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    heads, groups, kind = config["num_attention_heads"], config["num_key_value_heads"], config["model_type"]
    size = config.get("head_dim", 256 if kind == "gemma" else width // heads)
    biased = config.get("attention_bias", False)
    tensors = {"model.embed_tokens.weight": [words, width], "model.norm.weight": [width]}
    if not config.get("tie_word_embeddings", kind in ("gemma", "smollm3")):
        tensors["lm_head.weight"] = [words, width]
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        linear = {"self_attn.q_proj": (heads * size, width, biased or kind == "qwen2"),
                  "self_attn.k_proj": (groups * size, width, biased or kind == "qwen2"),
                  "self_attn.v_proj": (groups * size, width, biased or kind == "qwen2"),
                  "self_attn.o_proj": (width, heads * size, biased and kind != "qwen2"),
                  "mlp.gate_proj": (inner, width, config.get("mlp_bias", False)),
                  "mlp.up_proj": (inner, width, config.get("mlp_bias", False)),
                  "mlp.down_proj": (width, inner, config.get("mlp_bias", False))}
        for name, (out, into, bias) in linear.items():
            tensors[f"{at}{name}.weight"] = [out, into]
            if bias:
                tensors[f"{at}{name}.bias"] = [out]
        tensors[f"{at}input_layernorm.weight"] = tensors[f"{at}post_attention_layernorm.weight"] = [width]
        if kind == "qwen3":
            tensors[f"{at}self_attn.q_norm.weight"] = tensors[f"{at}self_attn.k_norm.weight"] = [size]
    return tensors


def write_weights(path, tensors, rng, bf16):
    """Random numbers around 0 with a deviation of 0.05, in float32 or bfloat16."""
    numbers = array.array("f", (rng.gauss(0, 0.05) for _ in range(4096)))
    if sys.byteorder != "little":
        numbers.byteswap()
    pool = numbers.tobytes()
    if bf16:
        pool = b"".join(pool[at + 2:at + 4] for at in range(0, len(pool), 4))
    header, blocks, at = {}, [], 0
    for name, shape in tensors.items():
        size = (2 if bf16 else 4) * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16" if bf16 else "F32", "shape": shape, "data_offsets": [at, at + size]}
        begin = 4 * rng.randrange(1024)
        blocks.append((pool[begin:] + pool * (size // len(pool) + 1))[:size])
        at += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blocks))


def random_words(rng):
    words = [*rng.choice(WAYS), "--length", str(rng.randint(4, 128)), "--batch", str(rng.randint(1, 6)),
             "--threads", "1", "--seed", str(rng.randint(1, 99))]
    if "--lora" in words:
        rank = rng.choice([1, 4, 8, 16])
        spec = f"rank={rank},alpha={2 * rank}" + rng.choice(["", ",rs", ",dropout=0.1", ",targets=q_proj+v_proj"])
        words.insert(words.index("--lora") + 1, spec)
    if "--state-bits" not in words and rng.random() < 0.3:
        words += ["--optimizer", rng.choice(["sgd", "adam", "adamw", "adafactor"])]
    if rng.random() < 0.2:
        words += ["--clip-norm", "1"]
    return words


def try_one(program, report, rng, number):
    folder = program.folder / "model"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    config = random_config(rng)
    (folder / "config.json").write_text(json.dumps(config))
    words = [str(folder), *random_words(rng)]
    kept = program.run(["plan", *words, "--planner", "keep_all", "--json"], seconds=120)
    if not report.check(kept.code == 0, f"folder {number}: {kept.ending()}; {kept.last_words()}",
                        program.command(words, "plan")):
        return False
    most = kept.json()["arena_bytes"]
    chosen = rng.choice(["all", "least", "between", "between", "between"])
    if chosen == "all":
        words += ["--planner", "keep_all"]
    elif chosen == "least":
        words += ["--memory", "least"]
    else:
        as_it_was = not {"--precision", "--frozen", "--state-bits"} & set(words)
        words += ["--memory", str(rng.randint(most * 2 // 3, most)), "--allow",
                  rng.choice(["exact", "equivalent"]) if as_it_was else "approximate"]
    # No plan depends on what else the machine does.
    words += ["--costs", "modelled", "--search-seconds", "0.2"]
    planned = program.run(["plan", *words, "--json"], seconds=120)
    command = program.command(words, "plan")
    if planned.code == 3 and chosen == "between":  # a budget below the least that there is
        words[words.index("--memory") + 1] = str(planned.json()["min_bytes"])
        planned = program.run(["plan", *words, "--json"], seconds=120)
        command = program.command(words, "plan")
    if not report.check(planned.code == 0, f"folder {number}: {planned.ending()}; {planned.last_words()}", command):
        return False
    plan = planned.json()
    runs = [*words, "--data", "noise", "--steps", "2", "--no-eval", "--save-every", "0", "--overwrite",
            "--out", str(program.folder / "out")]
    command = program.command(runs, "train")
    if number % 10 == 0:
        without = program.run(["train", *runs, "--json"], seconds=120)
        report.check(without.code == 2 and "model.safetensors" in without.err,
                     f"folder {number} without weights: {without.ending()}; {without.last_words()}", command)
    write_weights(folder / "model.safetensors", tensors_of(config), rng, rng.random() < 0.5)
    outcome = program.run(["train", *runs, "--json"], seconds=120)
    if not report.check(outcome.code == 0, f"folder {number}: {outcome.ending()}; {outcome.last_words()}", command):
        report.keep(folder)
        return False
    result = outcome.json()
    arena, measured = plan["arena_bytes"], result["measured_arena_bytes"]
    same = report.check(arena == measured == result["arena_bytes"],
                        f"folder {number}: {arena} bytes planned, {measured} measured", command)
    budget = plan.get("budget_bytes")
    same &= report.check(budget is None or arena <= budget, f"folder {number}: {arena} bytes in {budget}", command)
    took = result["rss_peak_bytes"]
    same &= report.check(took <= plan["process_bytes"],
                         f"folder {number}: the process took {took} bytes, {plan['process_bytes']} planned", command)
    return same


def plan_shapes(program, report):
    """Published shapes (tests/shapes): as many numbers as their authors say."""
    for name, numbers in SHAPES.items():
        words = [str(pathlib.Path(__file__).parents[1] / "shapes" / name), "--planner", "keep_all", "--costs", "modelled",
                 "--length", "64", "--json"]
        outcome = program.run(["plan", *words], seconds=120)
        command = program.command(words, "plan")
        if report.check(outcome.code == 0, f"{name}: {outcome.ending()}; {outcome.last_words()}", command):
            planned = outcome.json()["parameters"]
            report.check(planned == numbers, f"{name}: {planned} numbers are trained, not {numbers}", command)


def run(program, report, count=100, seconds=900, seed=1):
    until = time.monotonic() + seconds
    plan_shapes(program, report)
    tried = exact = 0
    for number in range(count):
        if time.monotonic() > until:
            report.skip(f"out of time after {number} of {count} folders")
            break
        tried += 1
        exact += bool(try_one(program, report, random.Random(f"folders {seed} {number}"), number))
    print(f"  planned = measured: {exact} of {tried}", flush=True)


if __name__ == "__main__":
    arguments = arguments_of(__doc__, count=100, seconds=900.0, seed=1)
    sys.exit(finish("folders", run, arguments))
