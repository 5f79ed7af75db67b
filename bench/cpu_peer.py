"""PyTorch's side of cpu.py: one process trains one net for some steps and prints a line of JSON; or writes the
network files that Thimble trains.

usage: cpu_peer.py train NET eager|compile fp32|bf16|pure-bf16 THREADS STEPS
       cpu_peer.py export NET,... FOLDER

Memory is the peak of the resident set above what it was when everything was imported and nothing built.
"""
import json
import os
import pathlib
import statistics
import sys
import time
import warnings

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parents[1]
FUSED = os.environ.get("FUSED_ADAMW") == "1"


def adamw(model):
    import torch

    weights = [p for p in model.parameters() if p.requires_grad]
    return torch.optim.AdamW(weights, 1e-4, fused=FUSED)


def sgd(model, nesterov=False, decay=0.0):
    import torch

    return torch.optim.SGD(model.parameters(), 0.01, 0.9, weight_decay=decay, nesterov=nesterov)


def images(count, size, classes, channels_last):
    import torch

    x = torch.randn(count, 3, size, size)
    if channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    return x, torch.randint(0, classes, (count,))


def tokens(rows, length, vocabulary):
    import torch

    ids = torch.randint(0, vocabulary, (rows, length))
    return {"input_ids": ids, "labels": ids.clone()}


# Each: the model, its loss (None: the model gives it), a batch and an optimizer.
def wrn(channels_last=True):
    import torch
    import torch.nn.functional as F

    sys.path.insert(0, str(ROOT / "bench"))
    from wrn_peer import WideResNet

    model = WideResNet(28, 2)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    return model, F.cross_entropy, images(100, 32, 10, channels_last), sgd(model, True, 5e-4)


def resnet50(channels_last=True):
    import torch
    import torch.nn.functional as F
    import torchvision

    model = torchvision.models.resnet50()
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    return model, F.cross_entropy, images(8, 224, 1000, channels_last), sgd(model)


def vit(channels_last=True):
    import torch.nn.functional as F
    import torchvision

    model = torchvision.models.VisionTransformer(224, 16, 12, 3, 192, 768)
    return model, F.cross_entropy, images(8, 224, 1000, False), adamw(model)


def gpt2(channels_last=True):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
    model = GPT2LMHeadModel(config)
    return model, None, tokens(2, 256, config.vocab_size), adamw(model)


def smollm2(channels_last=True):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=576, num_hidden_layers=30, num_attention_heads=9,
                         num_key_value_heads=3, intermediate_size=1536, vocab_size=49152,
                         tie_word_embeddings=True, use_cache=False, max_position_embeddings=2048)
    model = LlamaForCausalLM(config)
    length = int(os.environ.get("SMOLLM2_LENGTH", 512))
    return model, None, tokens(1, length, config.vocab_size), adamw(model)


def lora(channels_last=True):
    import peft

    model, loss, batch, _ = smollm2()
    adapters = peft.LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear",
                               task_type="CAUSAL_LM")
    model = peft.get_peft_model(model, adapters)
    return model, loss, batch, adamw(model)


def lstm(channels_last=True):
    import torch
    import torch.nn.functional as F

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(50, 512, 2, batch_first=True)
            self.out = torch.nn.Linear(512, 10)

        def forward(self, x):
            return self.out(self.lstm(x)[0][:, -1])

    model = Classifier()
    batch = torch.randn(16, 256, 50), torch.randint(0, 10, (16,))
    return model, F.cross_entropy, batch, sgd(model)


NETS = {net.__name__: net for net in (wrn, resnet50, vit, gpt2, smollm2, lora, lstm)}


def resident(what):
    for line in open("/proc/self/status"):
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    return 0.0


def train(net, mode, precision, threads, steps):
    import torch

    torch.set_num_threads(threads)
    if net in ("gpt2", "smollm2", "lora"):
        import transformers.models.gpt2.modeling_gpt2
        import transformers.models.llama.modeling_llama
    if net == "lora":
        import peft
    if net in ("resnet50", "vit"):
        import torchvision
    torch.manual_seed(1)
    idle = resident("VmRSS")
    model, loss, batch, optimizer = NETS[net]()
    model.train()
    if precision == "pure-bf16":
        model.to(torch.bfloat16)
    forward = torch.compile(model) if mode == "compile" else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            value = forward(**batch).loss if loss is None else loss(forward(batch[0]), batch[1])
        value.backward()
        optimizer.step()
        return float(value)

    for _ in range(2):
        step()
    try:  # what compiling took is not what a step takes
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    print(json.dumps({"times_ms": times, "median_ms": statistics.median(times),
                      "mib": resident("VmHWM") - idle}))


def export(nets, folder):
    sys.path[:0] = [str(ROOT / "python")]
    # The exporter alone: it needs no library of Thimble's.
    import importlib.util

    package = importlib.util.module_from_spec(importlib.util.spec_from_loader("thimble", None))
    package.__path__ = [str(ROOT / "python" / "thimble")]
    sys.modules["thimble"] = package
    import thimble.torch
    import torch

    for net in nets:
        torch.manual_seed(1)
        model, loss, batch, optimizer = NETS[net](channels_last=False)
        path = os.path.join(folder, net + ".json")
        thimble.torch.export(model.train(), loss, batch, path, optimizer, check=False)
        print("wrote", path, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "export":
        export(sys.argv[2].split(","), sys.argv[3])
    else:
        train(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))
