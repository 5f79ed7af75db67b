"""Fine-tunes a decoder's folder with Thimble and with PEFT, and compares what goes between them.

usage: fine_tuning.py [--program build/release/thimble] [--folder HF] [--length 512] [--steps 20] [CHECK ...]

codes     seven matrices of the first block: codes, scales and decoded numbers as bitsandbytes has them
logits    adapters of Thimble in PEFT: the log-probabilities of random labels
steps     adapters of PEFT in Thimble: the same steps of AdamW on the same tokens
merged    `thimble export --merged` beside merge_and_unload, in fp32 and bf16, and as transformers reads it
conv1d    the same of a tiny GPT-2, whose weights are [in, out]

Without --folder, a tiny Llama of random numbers in several shards. Exits 1 where a check is beyond its bound.
"""

import argparse
import glob
import json
import os
import sys
import tempfile

import parity  # first: it finds the package
import numpy
import torch
import torch.nn.functional as F
import transformers
from peft import LoraConfig, PeftModel, get_peft_model

MATRICES = [f"self_attn.{name}_proj" for name in "qkvo"] + [f"mlp.{name}_proj" for name in ("gate", "up", "down")]
MOST_LOGIT, MOST_STEP, MOST_ULP = 1e-5, 1e-6, 1
RANK, ALPHA, RATE = 16, 32, 1e-3
LORA = f"rank={RANK},alpha={ALPHA}"


class Bench:
    def __init__(self, args, home):
        self.program, self.length, self.steps, self.home = args.program, args.length, args.steps, home
        self.tools = parity.thimble_torch(args.program)
        self.base = args.folder or self.tiny()
        self.config = transformers.AutoConfig.from_pretrained(self.base)

    def tiny(self):
        torch.manual_seed(3)
        config = transformers.LlamaConfig(vocab_size=97, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                          num_key_value_heads=2, intermediate_size=128, max_position_embeddings=64)
        self.length = min(self.length, 24)
        folder = os.path.join(self.home, "tiny")
        transformers.LlamaForCausalLM(config).save_pretrained(folder, max_shard_size="80KB")
        return folder

    def path(self, *parts):
        return os.path.join(self.home, *parts)

    def module(self, dtype=torch.float32, folder=None):
        module = transformers.AutoModelForCausalLM.from_pretrained(folder or self.base, dtype=dtype,
                                                                   attn_implementation="eager")
        module.config.use_cache = False
        return module

    def data(self, name, tokens, targets):
        folder = self.path(name)
        for split in ("train", "test"):
            os.makedirs(os.path.join(folder, split), exist_ok=True)
            for field, rows in (("tokens", tokens), ("targets", targets)):
                numpy.save(os.path.join(folder, split, field + ".npy"), rows.to(torch.int32).contiguous().numpy())
        return ["--data", "npy", "--data-dir", folder]

    def train(self, out, data, *more, base=None):
        return json.loads(
            parity.run(self.program, "train", "hf:" + (base or self.base), "--json", "--losses", "--length",
                       self.length, "--batch", 1, "--threads", 2, "--no-eval", "--optimizer", "adamw",
                       "--weight-decay", 0.01, "--schedule", "constant", "--out", self.path(out), "--overwrite",
                       "--lora", LORA, *data, *more))

    def tokens(self, rows, seed):
        torch.manual_seed(seed)
        return torch.randint(0, self.config.vocab_size, (rows, self.length + 1))


def codes(bench):
    """Matrices that are not byte for byte those of bitsandbytes."""
    import bitsandbytes.functional as bnb

    tokens = bench.tokens(2, 1)
    data = bench.data("data", tokens[:, :-1], tokens[:, 1:])
    module = bench.module()
    read = bench.tools.read_safetensors
    wrong = []
    written = {}
    for kind, flags in (("nf4", []), ("nf4 coded", ["--coded"]), ("int8", [])):
        out = kind.replace(" ", "_")
        if kind != "nf4 coded":
            bench.train("run_" + out, data, "--steps", 1, "--frozen", kind)
        parity.run(bench.program, "export", bench.path("run_" + out.split("_")[0]), bench.path(out + ".safetensors"),
                   "--names", "transformers", *flags)
        written[kind] = read(bench.path(out + ".safetensors"))
    equal = lambda a, b: a.dtype == b.dtype and a.numel() == b.numel() and torch.equal(a.flatten(), b.flatten())
    for name in MATRICES:
        weight = module.model.layers[0].get_submodule(name).weight.data
        key = f"model.layers.0.{name}.weight"
        quantised, state = bnb.quantize_4bit(weight, quant_type="nf4", compress_statistics=True)
        parts = state.as_dict(packed=True)
        own = written["nf4 coded"]
        same = {
            "codes": equal(own[key], quantised),
            "absmax": equal(own[key + ".absmax"], parts["absmax"]),
            "nested": equal(own[key + ".nested_absmax"], parts["nested_absmax"]),
            "maps": equal(own[key + ".quant_map"], parts["quant_map"])
                    and equal(own[key + ".nested_quant_map"], parts["nested_quant_map"]),
            "offset": json.loads(bytes(own[key + ".quant_state.bitsandbytes__nf4"].tolist()))["nested_offset"]
                      == float(state.offset),
            "numbers": equal(written["nf4"][key], bnb.dequantize_4bit(quantised, state)),
        }
        rows, scales, _ = bnb.int8_vectorwise_quant(weight.half())
        same["int8"] = equal(written["int8"][key], (rows.float() * scales.view(-1, 1) * 7.874015718698502e-3))
        print(f"  {name:20} {tuple(weight.shape)!s:14} " + " ".join(f"{k} {'=' if v else 'APART'}" for k, v in same.items()),
              flush=True)
        wrong += [f"{name} {part}" for part, good in same.items() if not good]
    return len(wrong), 0


def trained_adapters(bench, steps=3):
    tokens = bench.tokens(max(2, steps), 2)
    data = bench.data("data", tokens[:, :-1], tokens[:, 1:])
    bench.train("adapted", data, "--steps", steps, "--lr", RATE)
    parity.run(bench.program, "export", bench.path("adapted"), bench.path("adapter"), "--adapters")
    return bench.path("adapter")


def logits(bench, asked=24):
    """The largest difference of log-probabilities at a rate of nought: summed over a row of four tokens, and of the mean
    over a row of the whole length. Beside it, how far PyTorch itself is from fp64: in large nets by more than the
    bound."""
    adapter = trained_adapters(bench)
    module = PeftModel.from_pretrained(bench.module(), adapter).eval()
    exact = PeftModel.from_pretrained(bench.module(torch.float64), adapter, autocast_adapter_dtype=False).eval()
    worst, bound, length = 0.0, MOST_LOGIT, bench.length
    for bench.length, rows in ((4, asked), (length, 4)):
        torch.manual_seed(5)
        tokens, targets = (torch.randint(0, bench.config.vocab_size, (rows, bench.length)) for _ in range(2))
        out = f"asked{bench.length}"
        result = bench.train(out, bench.data("data" + out, tokens, targets), "--steps", rows, "--lr", 0, "--weights",
                             adapter, "--export-batches", bench.path(out + ".batches"))
        apart, own, from_exact = 0.0, 0.0, 0.0
        weight = bench.length if bench.length == 4 else 1
        for step, path in enumerate(sorted(glob.glob(bench.path(out + ".batches", "*")))):
            fed = bench.tools.read_safetensors(path)
            losses = []
            for net in (module, exact):
                with torch.no_grad():
                    predicted = net(input_ids=fed["tokens"].long()).logits.double().flatten(0, 1)
                losses.append(F.cross_entropy(predicted, fed["targets"].long().flatten()).item())
            apart = max(apart, abs(result["losses"][step] - losses[0]) * weight)
            from_exact = max(from_exact, abs(result["losses"][step] - losses[1]) * weight)
            own = max(own, abs(losses[0] - losses[1]) * weight)
        print(f"  rows of {bench.length}: {apart:.1e} from PEFT, {from_exact:.1e} from fp64, PEFT {own:.1e}", flush=True)
        worst, bound = max(worst, apart), max(bound, 4 * own)
    return worst, bound


def adapted(bench):
    """A module of PEFT whose adapters add something."""
    torch.manual_seed(7)
    module = get_peft_model(bench.module(), LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules="all-linear",
                                                       task_type="CAUSAL_LM"))
    for name, parameter in module.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.02)
    return module


def steps(bench):
    """The largest difference of losses over the steps, relative to them."""
    module = adapted(bench)
    module.save_pretrained(bench.path("peft"))
    tokens = bench.tokens(bench.steps, 8)
    data = bench.data("taught", tokens[:, :-1], tokens[:, 1:])
    result = bench.train("taught_run", data, "--steps", bench.steps, "--lr", 1e-4, "--weights", bench.path("peft"),
                         "--export-batches", bench.path("taught_batches"))
    optimizer = torch.optim.AdamW([p for p in module.parameters() if p.requires_grad], 1e-4, weight_decay=0.01)
    worst = 0.0
    for step, path in enumerate(sorted(glob.glob(bench.path("taught_batches", "*")))):
        fed = bench.tools.read_safetensors(path)
        optimizer.zero_grad()
        predicted = module(input_ids=fed["tokens"].long()).logits.flatten(0, 1)
        loss = F.cross_entropy(predicted, fed["targets"].long().flatten())
        loss.backward()
        optimizer.step()
        worst = max(worst, abs(result["losses"][step] - loss.item()) / loss.item())
    parity.run(bench.program, "export", bench.path("taught_run"), bench.path("taught_adapter"), "--adapters")
    ours = bench.tools.read_safetensors(bench.path("taught_adapter", "adapter_model.safetensors"))
    apart = max((ours["base_model.model." + name.removeprefix("base_model.model.").replace(".default", "")] - tensor)
                .abs().max().item() for name, tensor in module.named_parameters() if tensor.requires_grad)
    print(f"  adapters apart by {apart:.1e} after {bench.steps} steps", flush=True)
    return worst, MOST_STEP


def steps_of_last_place(a, b):
    """The largest distance of two tensors in units of the last place of the larger number beside."""
    exponent = torch.frexp(torch.maximum(a.float().abs(), b.float().abs()))[1]
    digits = {torch.float32: 24, torch.bfloat16: 8}[a.dtype]
    return ((a.double() - b.double()).abs() / torch.ldexp(torch.ones_like(a, dtype=torch.float64), exponent - digits))


def merged(bench):
    """The largest difference from merge_and_unload in units of the last place."""
    worst = 0.0
    for dtype, name in ((torch.float32, "fp32"), (torch.bfloat16, "bf16")):
        base = bench.path("base_" + name)
        bench.module(dtype).save_pretrained(base, max_shard_size="200MB")
        tokens = bench.tokens(3, 2)
        data = bench.data("data", tokens[:, :-1], tokens[:, 1:])
        bench.train("run_" + name, data, "--steps", 3, "--lr", RATE, base=base)
        parity.run(bench.program, "export", bench.path("run_" + name), bench.path("adapter_" + name), "--adapters")
        parity.run(bench.program, "export", bench.path("run_" + name), bench.path("merged_" + name), "--merged")
        ours, loaded = transformers.AutoModelForCausalLM.from_pretrained(bench.path("merged_" + name), dtype="auto",
                                                                         output_loading_info=True)
        assert not loaded["missing_keys"] and not loaded["unexpected_keys"], loaded
        theirs = PeftModel.from_pretrained(bench.module(dtype, base), bench.path("adapter_" + name)).merge_and_unload()
        before = dict(bench.module(dtype, base).named_parameters())
        apart, most, changed = 0.0, 0, 0
        for key, tensor in theirs.named_parameters():
            own = ours.get_parameter(key)
            assert own.dtype == dtype, (key, own.dtype)
            distance = steps_of_last_place(own.data, tensor.data)
            apart = max(apart, distance.max().item())
            most += int((distance > 0).sum())
            changed += int((own.data != before[key].data).sum())
        files = len(glob.glob(bench.path("merged_" + name, "*.safetensors")))
        print(f"  {name}: {files} shards, {changed} numbers changed, {most} of them not PEFT's, by {apart:.2f} ulp at "
              "most", flush=True)
        assert changed > 0
        worst = max(worst, apart)
    return worst, MOST_ULP


def conv1d(bench):
    """The largest difference from merge_and_unload of a GPT-2 in units of the last place."""
    torch.manual_seed(3)
    width, length, words = 64, 24, 97
    config = transformers.GPT2Config(vocab_size=words, n_embd=width, n_layer=2, n_head=4, n_positions=length)
    base = bench.path("gpt2")
    transformers.GPT2LMHeadModel(config).save_pretrained(base)
    out, adapter, merged_folder = (bench.path(name) for name in ("gpt2_run", "gpt2_adapter", "gpt2_merged"))
    parity.run(bench.program, "train", "gpt", "--layers", 2, "--heads", 4, "--width", width, "--vocabulary", words,
               "--length", length, "--batch", 2, "--data", "noise", "--no-eval", "--steps", 3, "--lr", RATE, "--lora",
               LORA, "--weights", os.path.join(base, "model.safetensors"), "--out", out)
    parity.run(bench.program, "export", out, adapter, "--adapters")
    parity.run(bench.program, "export", out, merged_folder, "--merged")
    assert json.load(open(os.path.join(adapter, "adapter_config.json")))["fan_in_fan_out"] is True
    theirs = PeftModel.from_pretrained(transformers.GPT2LMHeadModel.from_pretrained(base), adapter).merge_and_unload()
    ours = transformers.GPT2LMHeadModel.from_pretrained(merged_folder)
    before = transformers.GPT2LMHeadModel.from_pretrained(base)
    apart, changed = 0.0, 0
    for key, tensor in theirs.named_parameters():
        apart = max(apart, steps_of_last_place(ours.get_parameter(key).data, tensor.data).max().item())
        changed += int((tensor.data != before.get_parameter(key).data).sum())
    assert changed > 0
    return apart, MOST_ULP


CHECKS = dict(codes=codes, logits=logits, steps=steps, merged=merged, conv1d=conv1d)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=str(parity.ROOT / "build" / "release" / "thimble"))
    parser.add_argument("--folder")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("checks", nargs="*", default=list(CHECKS))
    args = parser.parse_args()
    failed = []
    for name in args.checks:
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as home:
            found, bound = CHECKS[name](Bench(args, home))
        print(f"{name:8} {found:.2e} of {bound:.1e}  {'ok' if found <= bound else 'APART'}", flush=True)
        if found > bound:
            failed.append(name)
    if failed:
        print("failed:", " ".join(failed))
        sys.exit(1)


if __name__ == "__main__":
    main()
