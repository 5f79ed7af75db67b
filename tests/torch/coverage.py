"""Every architecture of transformers (tiny configurations) and of timm (the smallest of each family): whether it trains
as PyTorch trains it, is refused, or cannot be said, each in a process of its own with a time limit.

usage: THIMBLE_LIBRARY=build/release/lib/libthimble.so.0 coverage.py [--out FOLDER] [--export] [--limit SECONDS]
                                                         [--markdown FILE] [NAME ...]

A run leaves a line a net in FOLDER/results.jsonl, and goes on from there. `--export`: the graph alone is read, and
nothing is trained. A NAME is `causal`, `timm`, `causal:llama`.
"""

import argparse
import collections
import contextlib
import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import signal
import sys
import time
import warnings

import make_nets  # first: it finds the package
import torch

HERE = pathlib.Path(__file__).parent
ROWS, LENGTH, WORDS, STEPS = 4, 16, 99, 3
# One net trains as PyTorch, where every tensor's update is as close as border.py asks.
RATE = 1e-3

# By task: the list of transformers' that names its models, and what a batch is.
TASKS = {
    "causal": ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "words"),
    "masked": ("MODEL_FOR_MASKED_LM_MAPPING_NAMES", "words"),
    "seq2seq": ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", "words"),
    "rows": ("MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES", "rows"),
    "pictures": ("MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES", "pictures"),
    "sounds": ("MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES", "sounds"),
}

# Settings by the names that configurations have for them, in the first value that a net can be made with.
_FEW = dict(
    vocab_size=WORDS, hidden_size=32, d_model=32, n_embd=32, dim=32, emb_dim=32, embedding_size=32, word_embed_proj_dim=32,
    num_hidden_layers=2, n_layer=2, n_layers=2, num_layers=2, encoder_layers=2, decoder_layers=2, num_decoder_layers=2,
    num_encoder_layers=2, num_attention_heads=4, n_head=4, n_heads=4, num_heads=4, encoder_attention_heads=4,
    decoder_attention_heads=4, num_key_value_heads=2, intermediate_size=48, d_ff=48, ffn_dim=48, n_inner=48,
    encoder_ffn_dim=48, decoder_ffn_dim=48, d_kv=8, moe_intermediate_size=24, shared_expert_intermediate_size=24,
    max_position_embeddings=64, n_positions=64, max_sequence_length=64, head_dim=8, num_experts=4, num_local_experts=4,
    n_routed_experts=4, moe_num_experts=4, num_experts_per_tok=2, num_experts_per_token=2, moe_k=2, n_group=1,
    topk_group=1, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, state_size=8,
    mamba_d_state=8, mamba_n_heads=4, mamba_d_head=16, ffn_hidden_size=48, image_size=32, patch_size=8,
    hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 1, 1], sliding_window=8, first_k_dense_replace=1,
)
_NONE = dict(
    pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, attention_dropout=0.0, hidden_dropout=0.0,
    dropout=0.0,
)


@dataclasses.dataclass(frozen=True)
class Net:
    """make() gives the module, its loss and a function that makes a batch."""

    task: str
    name: str
    make: object

    @property
    def key(self):
        return f"{self.task}:{self.name}"


def nets():
    return [*of_transformers(), *of_timm()]


# ---- transformers --------------------------------------------------------------------------------


def of_transformers():
    from transformers.models.auto import modeling_auto

    found, seen = [], set()
    for task, (table, kind) in TASKS.items():
        for model_type, names in getattr(modeling_auto, table).items():
            if task == "rows" and model_type in seen:
                continue
            seen.add(model_type)
            name = names[0] if isinstance(names, (tuple, list)) else names
            found.append(Net(task, model_type, lambda t=model_type, n=name, k=kind: _transformer(t, n, k)))
    return found


def _transformer(model_type, name, kind):
    import transformers

    config_of = transformers.models.auto.configuration_auto.CONFIG_MAPPING[model_type]
    first = None
    for settings in _tries(config_of):
        try:
            torch.manual_seed(3)
            config = config_of(**settings)
            for part in _parts(config):
                part._experts_implementation = "eager"  # others have no fp64, by which instability is told
                for key, value in list(vars(part).items()):
                    if ("drop" in key or "jitter" in key) and isinstance(value, float):
                        setattr(part, key, 0.0)
            module = getattr(transformers, name)(config).train()
            if sum(p.numel() for p in module.parameters()) > 30e6:
                raise ValueError("it stays large")
            batch = _batch(kind, config)
            module(**batch()).loss.backward()
            module.zero_grad()
            return module, None, batch
        except Exception as error:
            first = first or error
    raise first


def _parts(config):
    yield config
    for key, value in vars(config).items():
        if isinstance(value, type(config).__mro__[-2]) or hasattr(value, "to_dict"):
            yield value


def _tries(config_of):
    """Smaller and smaller sets of settings."""
    import transformers

    usual = config_of()

    def few(of, without=()):
        return {k: v for k, v in _FEW.items() if getattr(of, k, None) is not None and k not in without and _like(v, getattr(of, k))}

    for without in ((), ("head_dim",), ("hidden_sizes", "depths"), ("head_dim", "intermediate_size"), ("hidden_size", "dim", "d_model")):
        made = few(usual, without)
        for key, kind in getattr(config_of, "sub_configs", {}).items():
            sub = getattr(usual, key, None)
            if isinstance(sub, transformers.PretrainedConfig):
                made[key] = few(sub, without)
        yield {**made, **_NONE}
    yield {}


def _like(value, usual):
    if isinstance(value, list):
        return isinstance(usual, (list, tuple)) and len(usual) == len(value)
    return isinstance(usual, int) and not isinstance(usual, bool) and usual > value


def _batch(kind, config):
    text = getattr(config, "text_config", config)
    words = min(WORDS, getattr(text, "vocab_size", None) or WORDS)

    def ids():
        made = torch.randint(3, words, (ROWS, LENGTH))
        made[:, -1] = 2  # the end of a sentence, where a classifier looks for it
        return made

    def size():
        side = getattr(getattr(config, "vision_config", config), "image_size", 32) or 32
        return side if isinstance(side, int) else side[0]

    def make():
        if kind == "words":
            made = ids()
            return {"input_ids": made, "labels": made.clone()}
        if kind == "rows":
            return {"input_ids": ids(), "labels": torch.randint(0, 2, (ROWS,))}
        if kind == "pictures":
            channels = getattr(config, "num_channels", 3) or 3
            return {"pixel_values": torch.randn(ROWS, channels, size(), size()), "labels": torch.randint(0, 2, (ROWS,))}
        return {"input_values": torch.randn(ROWS, 1600), "labels": torch.randint(0, 2, (ROWS,))}

    return make


# ---- timm ----------------------------------------------------------------------------------------

_SMALLER = ("atto", "femto", "pico", "nano", "xxt", "xxs", "xx_small", "tiny", "mini", "xs", "_t", "small", "_s", "18", "b0", "base")


def of_timm():
    import timm

    found = []
    for family in timm.list_modules():
        names = [n for n in timm.list_models(module=family) if "." not in n]
        if names:
            name = min(names, key=lambda n: (next((i for i, s in enumerate(_SMALLER) if s in n), 99), len(n), n))
            found.append(Net("timm", family, lambda n=name: _timm(n)))
    return found


def _timm(name):
    import timm

    first = None
    for settings, size in (({"img_size": 64}, 64), ({}, 64), ({"img_size": 128}, 128), ({}, 128), ({}, None)):
        try:
            torch.manual_seed(3)
            module = timm.create_model(name, num_classes=7, **settings).train()
            side = size or module.pretrained_cfg["input_size"][-1]
            channels = module.pretrained_cfg["input_size"][0]

            def batch():
                return torch.randn(ROWS, channels, side, side), torch.randint(0, 7, (ROWS,))

            x, y = batch()
            torch.nn.functional.cross_entropy(module(x), y).backward()
            module.zero_grad()
            return module, torch.nn.functional.cross_entropy, batch
        except Exception as error:
            first = first or error
    raise first


# ---- One of them ---------------------------------------------------------------------------------


def judged(net, export_alone):
    """(what came of it, a sentence)"""
    spec = importlib.util.spec_from_file_location("border_of_modules", HERE / "border.py")
    border = importlib.util.module_from_spec(spec)
    sys.modules["border_of_modules"] = border
    spec.loader.exec_module(border)
    import thimble.torch

    try:
        torch.manual_seed(3)
        net.make()
    except Exception as error:
        return "not made", f"{type(error).__name__}: {error}"

    def make():
        torch.manual_seed(3)
        module, loss, batch = net.make()
        torch.manual_seed(5)
        return module, loss, [batch() for _ in range(STEPS)]

    refusals = (thimble.torch.CannotExport, thimble.UserError)
    if export_alone:
        module, loss, batches = make()
        try:
            thimble.torch.capture(module, loss, batches[0])
        except refusals as error:
            return "refused", str(error)
        return "exported", ""
    case = border.border.Case("", make, optimizer=lambda m: torch.optim.SGD(m.parameters(), RATE, momentum=0.9))
    judge = border.Judge(case)
    try:
        ours = border.by_thimble(case)
    except refusals as error:
        return "refused", str(error)
    try:
        return "trains", f"{judge.distance(ours):.1e}"
    except border.Silent as silent:
        exact, worst = judge.exact, 0.0
        for one, other in zip(judge.theirs.losses, exact.losses):
            worst = max(worst, abs(one - other))
        return ("unstable" if worst > 1e-5 else "differs"), f"{silent} (PyTorch from its own fp64: {worst:.1e})"


def in_child(net, limit, export_alone):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        warnings.simplefilter("ignore")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(limit)
        try:
            said = judged(net, export_alone)
        except BaseException as error:
            said = ("failed", f"{type(error).__name__}: {error}")
        with os.fdopen(writing, "w") as pipe:
            json.dump([said[0], " ".join(said[1].split())[:2000]], pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else ["over time", f"after {limit} s, or out of memory"]


# ---- All of them ---------------------------------------------------------------------------------


def reason_of(sentence):
    """The op or the cause of a refusal, without places and numbers."""
    ops = re.findall(r"((?:aten|transformers|torchvision)::[\w.]+|getitem): (.*?)(?= \(|$| aten::)", sentence)
    if ops:
        return f"{ops[0][0]}: {ops[0][1][:70]}"
    return re.sub(r"[\d.]+", "#", sentence)[:90]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="/tmp/coverage")
    parser.add_argument("--export", action="store_true")
    parser.add_argument("--limit", type=int, default=240)
    parser.add_argument("--markdown")
    parser.add_argument("--again", help="nets with that result are tried again")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    torch.set_num_threads(1)
    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, "exports.jsonl" if args.export else "results.jsonl")
    done = {}
    with contextlib.suppress(FileNotFoundError):
        for line in open(path, encoding="utf-8"):
            entry = json.loads(line)
            done[entry["net"]] = entry
    chosen = [n for n in nets() if not args.names or {n.key, n.task} & set(args.names)]
    with open(path, "a", encoding="utf-8") as file:
        for net in chosen:
            before = done.get(net.key)
            if before is not None and (args.again is None or args.again not in (before["result"], "all")):
                continue
            begun = time.monotonic()
            result, said = in_child(net, args.limit, args.export)
            done[net.key] = {"net": net.key, "result": result, "said": said, "seconds": round(time.monotonic() - begun, 1)}
            file.write(json.dumps(done[net.key]) + "\n")
            file.flush()
            print(f"{net.key:40} {result:10} {said[:140]}", flush=True)
    entries = [done[n.key] for n in chosen if n.key in done]
    print(summary(entries))
    if args.markdown:
        with open(args.markdown, "w", encoding="utf-8") as file:
            file.write(as_markdown(entries))


def counts(entries):
    return collections.Counter(entry["result"] for entry in entries)


def summary(entries):
    lines = []
    for task in dict.fromkeys(e["net"].partition(":")[0] for e in entries):
        of = [e for e in entries if e["net"].startswith(task + ":")]
        lines.append(f"{task}: {len(of)}: " + ", ".join(f"{n} {result}" for result, n in counts(of).most_common()))
    reasons = collections.Counter(reason_of(e["said"]) for e in entries if e["result"] == "refused")
    lines += [f"{n:4} {reason}" for reason, n in reasons.most_common(40)]
    return "\n".join(lines)


HEAD = """# Architectures that train

Every architecture of transformers {transformers} in a tiny configuration and the smallest net of each family of timm {timm}, trained for {steps} steps of SGD with
momentum beside PyTorch {torch}. `trains`: every tensor's update is PyTorch's within 1e-4 of it, or as close to fp64 as eight times PyTorch's own. `unstable`:
PyTorch itself parts from its fp64, so that nothing is said. `not made`: this script's small settings make no net of it that PyTorch can train.

`make test-coverage MARKDOWN=docs/results/coverage.md` prints it (hours; it goes on where it stopped).

| task | nets | train | unstable | refused | differ | not made | over time |
|---|---:|---:|---:|---:|---:|---:|---:|
"""


def as_markdown(entries):
    import timm
    import transformers

    text = HEAD.format(transformers=transformers.__version__, timm=timm.__version__, torch=torch.__version__.partition("+")[0], steps=STEPS)
    for task in dict.fromkeys(e["net"].partition(":")[0] for e in entries):
        of = counts([e for e in entries if e["net"].startswith(task + ":")])
        other = of["failed"] + of["differs"]
        text += f"| {task} | {sum(of.values())} | {of['trains']} | {of['unstable']} | {of['refused']} | {other} | {of['not made']} | {of['over time']} |\n"
    text += "\n| net | result | |\n|---|---|---|\n"
    for entry in entries:
        if entry["result"] != "trains":
            said = entry["said"][:160].replace("|", "\\|").replace("](", "]\\(")
            text += f"| {entry['net']} | {entry['result']} | {said} |\n"
    text += "\nAll others train: " + ", ".join(e["net"] for e in entries if e["result"] == "trains") + ".\n"
    return text


if __name__ == "__main__":
    main()
