#!/usr/bin/env python3
"""The memory of a process that trains networks of torchvision and transformers, through thimble.torch and by PyTorch
itself: three steps of each, in a process of its own, from the moment where it has the module, its optimizer and a batch.

usage: process_memory.py [--smol FOLDER] [--markdown FILE] [NET ...]     SmolLM2-135M's files in FOLDER
       process_memory.py --phases NET     growth of the process by what it does
"""

import argparse
import json
import os
import subprocess
import sys

MIB = 1 << 20
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STEPS = 3


def field(name):
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name + ":"))


def count_anew():
    """VmHWM starts at what is resident now, which is returned."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as peak:
        peak.write("5")
    return field("VmRSS")


# ---- Networks: (module, loss, batch, optimizer) -------------------------------------------------------------------


def picture_net(name, rows, size=224):
    import torch
    import torchvision

    torch.manual_seed(1)
    model = torchvision.models.get_model(name, weights=None, num_classes=100)
    batch = (torch.randn(rows, 3, size, size), torch.randint(0, 100, (rows,)))
    return model, torch.nn.functional.cross_entropy, batch, torch.optim.AdamW(model.parameters(), 1e-4)


def text_net(kind, rows, length, **settings):
    import torch
    import transformers

    torch.manual_seed(1)
    config = getattr(transformers, kind + "Config")(**settings)
    of = "ForSequenceClassification" if kind == "Bert" else "LMHeadModel" if kind == "GPT2" else "ForCausalLM"
    model = getattr(transformers, kind + of)(config)
    model.config.use_cache = False
    tokens = torch.randint(0, config.vocab_size, (rows, length))
    labels = torch.randint(0, 2, (rows,)) if kind == "Bert" else tokens.clone()
    return model, None, {"input_ids": tokens, "labels": labels}, torch.optim.AdamW(model.parameters(), 1e-5)


def smol(folder, length):
    import peft
    import torch
    import transformers

    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model.config.use_cache = False
    model = peft.get_peft_model(model, peft.LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"]))
    tokens = torch.randint(0, 40000, (1, length))
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return model, None, {"input_ids": tokens, "labels": tokens.clone()}, torch.optim.AdamW(trained, 1e-4)


MINILM = dict(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
SMALL_LLAMA = dict(
    vocab_size=16384, hidden_size=384, num_hidden_layers=8, num_attention_heads=6, intermediate_size=1024
)
NETS = {
    "smollm2-135m, LoRA, 1 x 256": lambda folder: smol(folder, 256),
    "minilm-l6 by shape, 8 x 128": lambda _: text_net("Bert", 8, 128, **MINILM),
    "gpt2 of 6 layers, 2 x 256": lambda _: text_net("GPT2", 2, 256, n_layer=6, n_embd=384, n_head=6),
    "llama of 8 layers, 2 x 256": lambda _: text_net("Llama", 2, 256, **SMALL_LLAMA),
    "resnet18, 8 pictures": lambda _: picture_net("resnet18", 8),
    "resnet50, 4 pictures": lambda _: picture_net("resnet50", 4),
    "mobilenet_v3_large, 8 pictures": lambda _: picture_net("mobilenet_v3_large", 8),
    "efficientnet_b0, 4 pictures": lambda _: picture_net("efficientnet_b0", 4),
    "convnext_tiny, 2 pictures": lambda _: picture_net("convnext_tiny", 2),
    "vit_b_32, 4 pictures": lambda _: picture_net("vit_b_32", 4),
}


# ---- One process ---------------------------------------------------------------------------------------------------


def train_with_pytorch(model, loss, batch, optimizer):
    for _ in range(STEPS):
        optimizer.zero_grad()
        if loss is None:
            value = model(**batch).loss
        else:
            value = loss(model(batch[0]), batch[1])
        value.backward()
        optimizer.step()


def watch_phases():
    """Growth of the process at the end of each part of thimble.torch.train."""
    import thimble
    import thimble.torch as of_torch

    begun = field("VmRSS")

    def watched(owner, name, label):
        function = getattr(owner, name)

        def call(*given, **more):
            count_anew()
            try:
                return function(*given, **more)
            finally:
                peak, now = field("VmHWM") - begun, field("VmRSS") - begun
                print(f"| {label} | {peak / MIB:.0f} | {now / MIB:.0f} |", flush=True)

        setattr(owner, name, call)

    print("| part | its peak, MiB | behind it |\n|---|---:|---:|")
    watched(of_torch, "capture_apart", "export")
    watched(of_torch, "write_safetensors", "file")
    watched(of_torch.Check, "run", "check")
    watched(thimble.Plan, "__init__", "a plan")
    watched(thimble.Run, "__init__", "a run: arena, weights handed over")
    watched(thimble.Run, "train", "training")
    watched(of_torch.Handover, "take_back", "weights given back")


def one(name, share, folder, phases):
    import torch

    torch.set_num_threads(1)
    model, loss, batch, optimizer = NETS[name](folder)
    model.train()
    said = {}
    if share == "torch":
        before = count_anew()
        train_with_pytorch(model, loss, batch, optimizer)
    else:
        sys.path[:0] = [os.path.join(ROOT, "python")]
        import thimble
        import thimble.torch

        budget = int(share)
        if phases:
            watch_phases()
        before = count_anew()
        run = thimble.torch.train(
            model, loss, [batch] * STEPS, optimizer=optimizer, memory=budget, threads=1, allow="equivalent"
        )
        said = {"arena": run.result["measured_arena_bytes"]}
    print(json.dumps({"before": before, "peak": field("VmHWM"), **said}))


def sizes(name, folder):
    """Arenas of everything kept, and of half of that or the least above it."""
    sys.path[:0] = [os.path.join(ROOT, "python")]
    import thimble
    import thimble.torch

    model, loss, batch, optimizer = NETS[name](folder)

    def planned(**memory):
        return thimble.torch.plan(
            model.train(), loss, batch, optimizer=optimizer, threads=1, allow="equivalent", **memory
        ).bytes

    whole = planned()
    try:
        half = planned(memory=whole // 2)
    except thimble.DoesNotFit as error:
        half = error.needed
    print(json.dumps({"whole": whole, "half": half}))


def apart(name, what, folder):
    command = [sys.executable, os.path.abspath(__file__), "--one", name, what, "--smol", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"fault": (done.stderr.strip().splitlines() or ["?"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


HEAD = """| net | PyTorch: before, peak | growth | budget | before, peak | growth | of PyTorch's growth | of its peak |
|---|---:|---:|---:|---:|---:|---:|---:|
"""


def rows_of(name, folder):
    plain = apart(name, "torch", folder)
    bytes_of = apart(name, "sizes", folder)
    fault = plain.get("fault") or bytes_of.get("fault")
    if fault:
        return [f"| {name} | {fault} |"]
    rows = []
    for what in ("whole", "half"):
        budget = bytes_of[what]
        made = apart(name, str(budget), folder)
        if "fault" in made:
            rows.append(f"| {name} | | | {budget / MIB:.0f} | {made['fault']} |")
            continue
        theirs, ours = plain["peak"] - plain["before"], made["peak"] - made["before"]
        rows.append(
            f"| {name} | {plain['before'] / MIB:.0f}, {plain['peak'] / MIB:.0f} | {theirs / MIB:.0f} "
            f"| {budget / MIB:.0f} | {made['before'] / MIB:.0f}, {made['peak'] / MIB:.0f} | {ours / MIB:.0f} "
            f"| {ours / theirs:.2f} | {made['peak'] / plain['peak']:.2f} |"
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*")
    parser.add_argument("--smol", default="")
    parser.add_argument("--markdown")
    parser.add_argument("--phases")
    parser.add_argument("--budget", default=str(1 << 30))
    parser.add_argument("--one", nargs=2)
    asked = parser.parse_args()
    if asked.one:
        name, what = asked.one
        if what == "sizes":
            return sizes(name, asked.smol)
        return one(name, what, asked.smol, False)
    if asked.phases:
        name = next(name for name in NETS if name.startswith(asked.phases))
        return one(name, asked.budget, asked.smol, True)
    chosen = [name for name in NETS if not asked.nets or any(name.startswith(net) for net in asked.nets)]
    lines = []
    for name in chosen:
        if name.startswith("smollm2") and not asked.smol:
            continue
        lines += rows_of(name, asked.smol)
        print("\n".join(lines[-2:]), flush=True)
    if asked.markdown:
        with open(asked.markdown, "w", encoding="utf-8") as file:
            file.write(HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
