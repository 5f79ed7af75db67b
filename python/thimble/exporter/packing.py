"""Several documents in a row of tokens: whether the module keeps them apart."""

from __future__ import annotations

import torch

from . import eager
from .values import CannotExport

_CLOSE = 1e-5  # of the largest logit: rounding, where other tokens are in the same products


def check_documents(model, batch) -> None:
    """CannotExport where positions begin again within a row, and tokens before that place reach those behind it."""
    ids, positions = batch.get("input_ids"), batch.get("position_ids")
    if ids is None or positions is None or positions.shape != ids.shape or ids.ndim != 2:
        return
    begins = (positions[:, 1:] < positions[:, :-1]).nonzero()
    if not len(begins):
        return
    row, at = begins[0].tolist()
    at += 1
    one = {name: tensor[row : row + 1] for name, tensor in batch.items()}
    counted = torch.ones_like(one["input_ids"], dtype=torch.bool)
    counted[:, :at] = False
    for name, none in (("attention_mask", 0), ("labels", -100)):
        if name in one and one[name].shape == counted.shape:
            counted &= one[name] != none
    other = one["input_ids"].clone()
    other[:, :at] = ids.max() + ids.min() - other[:, :at]  # other tokens, of those that are there
    with eager.as_exported(), torch.no_grad():
        here, there = (_logits(model, {**one, "input_ids": tokens}) for tokens in (one["input_ids"], other))
    if here is None or here.shape[:2] != counted.shape or not counted.any():
        return
    reached = (here - there).abs().amax(-1)[counted.to(here.device)].max().item()
    if reached > _CLOSE * here.abs().max().item():
        raise CannotExport(
            f"'position_ids' begin again in row {row} at {at}, as of documents packed into a row, and tokens in front "
            f"of that place reach those behind it (by {reached:.1e} of a logit); set model.config.use_cache = False "
            "and leave attention_mask out, or give one of [rows, 1, tokens, tokens] that keeps documents apart"
        )


def _logits(model, batch):
    first = next(model.parameters(), None)
    output = model(**{n: t if first is None else t.to(first.device) for n, t in batch.items()})
    return output.get("logits") if hasattr(output, "get") else None
