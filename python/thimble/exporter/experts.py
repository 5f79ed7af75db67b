"""Mixtures of experts while a module is traced: every expert computes every token, and what a token was not sent to
counts zero times. Gradients are exact. Products take as long as all experts do, and a step keeps an inner tensor
[tokens, experts * inner].

    shares[t, e] = the router's weight of expert e for token t, 0 where it is not chosen
    y = sum over e of shares[:, e] * down_e(gate(up_e(x)))        two products of all experts' weights at once
"""

from __future__ import annotations

import contextlib
import sys
from unittest import mock

import torch
import torch.nn.functional as F


def all_at_once():
    """Experts of transformers (`use_experts_implementation`), whichever way their configuration names."""
    moe = sys.modules.get("transformers.integrations.moe")
    if moe is None or not hasattr(moe, "ExpertsInterface"):
        return contextlib.nullcontext()
    return mock.patch.object(moe.ExpertsInterface, "get_interface", lambda *_, **__: _experts)


def _experts(self, hidden_states, top_k_index, top_k_weights):
    experts, width = self.num_experts, hidden_states.shape[-1]
    tokens = hidden_states.shape[0]
    zeros = torch.zeros(tokens, experts, dtype=top_k_weights.dtype, device=top_k_weights.device)
    shares = zeros.scatter_add(1, top_k_index, top_k_weights)
    up = self.gate_up_proj if self.has_gate else self.up_proj
    made = _with_all(hidden_states, up, self.is_transposed).view(tokens, experts, -1)
    if self.has_bias:
        made = made + (self.gate_up_proj_bias if self.has_gate else self.up_proj_bias)
    made = self._apply_gate(made) if self.has_gate else self.act_fn(made)
    down = self.down_proj if self.is_transposed else self.down_proj.transpose(1, 2)  # [E, inner, width]
    if self.has_post_expert_norm:
        each = torch.matmul(made.transpose(0, 1), down).transpose(0, 1)
        if self.has_bias:
            each = each + self.down_proj_bias
        return (self.post_expert_norm(each) * shares.unsqueeze(-1)).sum(1)
    weighed = (made * shares.unsqueeze(-1)).reshape(tokens, -1)
    result = torch.matmul(weighed, down.reshape(-1, width))
    return result + torch.matmul(shares, self.down_proj_bias) if self.has_bias else result


def _with_all(x, weights, transposed):
    """x with the matrices of all experts, side by side."""
    if transposed:  # [E, width, inner]
        return torch.matmul(x, weights.permute(1, 0, 2).reshape(x.shape[-1], -1))
    return F.linear(x, weights.reshape(-1, x.shape[-1]))
