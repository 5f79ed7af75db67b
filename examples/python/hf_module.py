"""A module of transformers, made small: it gives its loss by itself, so that loss=None."""
import torch
import transformers

import thimble.torch

torch.manual_seed(0)
config = transformers.GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2,
                                 resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
model = transformers.GPT2LMHeadModel(config)
model.config.use_cache = False
model.train()


def batch(rows=8):
    """Texts that count upwards: what follows is known."""
    first = torch.randint(0, 64, (rows, 1))
    tokens = (first + torch.arange(32)) % 64
    return {"input_ids": tokens, "labels": tokens}


batches = [batch() for _ in range(20)]
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
run = thimble.torch.train(model, None, batches, optimizer=optimizer, epochs=4)
with torch.no_grad():
    loss = model(**batch()).loss.item()
print(f"loss {loss:.3f}")
assert loss < 2.5
