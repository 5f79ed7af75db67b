"""Fine-tunes a folder with PEFT and PyTorch on the batches of a run of Thimble, and tests it on the same records.

usage: finetune_peer.py FOLDER --prepared FOLDER --batches FOLDER --start ADAPTER [--base bf16|nf4] [--steps 200]

BATCHES is what `thimble train --export-batches` wrote. PREPARED, the folder that `thimble finetune` names, has the records
held out. START is an adapter of PEFT that both begin with (`--weights`). The result is a line of JSON: losses, held-out loss
before and after, seconds, the process's peak.
"""

import argparse
import glob
import json
import os
import pathlib
import resource
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import transformers  # noqa: E402
from peft import PeftModel  # noqa: E402
from safetensors.torch import load_file  # noqa: E402


def loaded(folder, base):
    """nf4: numbers that bitsandbytes rounds each matrix to, multiplied by PyTorch. With bitsandbytes' own layers for
    CPUs (0.50) and bf16 activations the same steps went up, from a loss of 3.5 to 8 after 156."""
    module = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    if base == "nf4":
        import bitsandbytes.functional as bnb
        for name, layer in module.named_modules():
            if isinstance(layer, torch.nn.Linear) and name != "lm_head":
                coded, state = bnb.quantize_4bit(layer.weight.data.float(), quant_type="nf4", compress_statistics=True)
                layer.weight.data = bnb.dequantize_4bit(coded, state).to(torch.bfloat16)
    return module


def loss_of(module, tokens, targets, reduction="mean"):
    hidden = module.get_base_model().model(input_ids=tokens, use_cache=False).last_hidden_state
    counts = targets >= 0  # the head of those alone: the others have no loss
    logits = module.get_base_model().lm_head(hidden[counts]).float()
    return F.cross_entropy(logits, targets[counts], reduction=reduction)


def tested(module, records, rows=4):
    total, count = 0.0, 0
    with torch.no_grad():
        for first in range(0, len(records), rows):
            some = records[first:first + rows]
            longest = max(len(tokens) for tokens, _ in some)
            tokens, targets = torch.zeros(len(some), longest, dtype=torch.long), torch.full((len(some), longest), -1)
            for row, (ids, wanted) in enumerate(some):
                tokens[row, :len(ids)], targets[row, :len(ids)] = torch.tensor(ids), torch.tensor(wanted)
            total += loss_of(module, tokens, targets, "sum").item()
            count += int((targets >= 0).sum())
    return total / count


def held_out(prepared):
    from thimble.finetune.documents import read_documents
    for document in read_documents(os.path.join(prepared, "test.documents")):
        ids, counted = list(document.tokens), document.counted
        yield ids, [ids[i + 1] if i + 1 < len(ids) and counted[i + 1] else -1 for i in range(len(ids))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    for name in ("prepared", "batches", "start"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--base", choices=("bf16", "nf4"), default="bf16")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    module = PeftModel.from_pretrained(loaded(args.folder, args.base), args.start, is_trainable=True)
    records = list(held_out(args.prepared))
    result = {"base": args.base, "before": tested(module.eval(), records), "losses": []}
    module.train()
    trained = [p for p in module.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, args.lr, weight_decay=0.01)
    began, seen = time.monotonic(), 0
    for path in sorted(glob.glob(os.path.join(args.batches, "*.safetensors")))[:args.steps]:
        fed = load_file(path)
        optimizer.zero_grad()
        loss = loss_of(module, fed["tokens"].long(), fed["targets"].long())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        result["losses"].append(loss.item())
        seen += fed["tokens"].numel()
        print(len(result["losses"]), loss.item(), file=sys.stderr, flush=True)
    result["seconds"] = time.monotonic() - began
    result["tokens_per_second"] = seen / result["seconds"]
    result["after"] = tested(module.eval(), records)
    result["peak_bytes"] = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(result))


if __name__ == "__main__":
    main()
