"""Dropout on a CPU, three times as fast as torch's: one 64-bit draw decides on four elements.

Torch draws a number of its serial generator per element there, which is a fifth of a small encoder's training step; and its
fused attention has no dropout on a CPU, so attention is written out here. Off the CPU all is
torch's own, or one with what is around it (`fused`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

NAME = "crosslign_attention"
PIECES = 1 << 16
NUMBERS = ("attention_dropout", "dropout_rate", "attention_dropout_prob")
"""Attributes by which layers of transformers hold the dropout of attention weights as a number."""


def dropout(values: Tensor, p: float) -> Tensor:
    """Set each element to zero with probability p, rounded to 1/65536, and scale the others by 1 / (1 - p).

    Draws come from torch's global generator.
    """
    count = values.numel()
    bits = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None).view(torch.int16)[:count]
    keep = bits.view(values.shape) >= round(p * PIECES) - PIECES // 2
    return values * keep.to(values.dtype).mul_(1.0 / (1.0 - p))


def probability(module: nn.Dropout) -> float:
    """Return with which probability a dropout layer drops elements now."""
    return module.p if module.training else 0.0


def dropped(values: Tensor, module: nn.Dropout) -> Tensor:
    """Drop elements as a dropout layer is set to."""
    return dropped_at(values, probability(module))


def dropped_at(values: Tensor, p: float) -> Tensor:
    """Drop elements with probability p: by `dropout` on a CPU, by torch's own kernel elsewhere."""
    if p <= 0.0:
        return values
    return dropout(values, p) if values.device.type == "cpu" else nn.functional.dropout(values, p)


class Dropout(nn.Dropout):
    """A dropout layer that uses `dropout` on a CPU."""

    def forward(self, values: Tensor) -> Tensor:
        """Drop elements in train mode."""
        if self.training and 0.0 < self.p < 1.0 and values.device.type == "cpu":
            return dropout(values, self.p)
        return super().forward(values)


def attention(query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, p: float, scaling: float) -> Tensor:
    """Return softmax(query keyᵀ scaling + mask) with dropout, times value.

    Args:
        query, key, value: [n, heads, t, d].
        attention_mask: bool [n, 1, t, t], true where attention may go, or None.
        p: probability of dropping a weight.
        scaling: factor of the scores.

    Returns:
        [n, t, heads, d].
    """
    scores = (query @ key.transpose(2, 3)).float() * scaling
    if attention_mask is not None:
        scores = scores.masked_fill(~attention_mask, float("-inf"))
    weights = dropout(scores.softmax(-1), p).to(value.dtype)
    return (weights @ value).transpose(1, 2).contiguous()


def _interface(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any) -> Any:
    """Take the place of transformers' `sdpa`: our own where it has no fast way, that one everywhere else."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    p, scaling = options.get("dropout", 0.0), options.get("scaling")
    plain = not getattr(module, "is_causal", False) and key.shape[1] == query.shape[1] and options.get("position_bias") is None
    masked = attention_mask is None or attention_mask.dtype == torch.bool
    if p > 0.0 and query.device.type == "cpu" and plain and masked:
        return attention(query, key, value, attention_mask, p, scaling or query.shape[-1] ** -0.5), None
    return sdpa_attention_forward(module, query, key, value, attention_mask, **options)


def _mask(*args: Any, **options: Any) -> Any:
    """Do what transformers' own function does, which asks a GPU whether a mask masks anything: batches without padding have none."""
    from transformers.masking_utils import sdpa_mask

    if options.get("attention_mask") is not None:
        options |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    return sdpa_mask(*args, **options)


def set_dropout(backbone: nn.Module, p: float) -> None:
    """Give every dropout of a model one probability: its layers, and the attention weights, whose probability some hold as a number."""
    for module in backbone.modules():
        if isinstance(module, nn.Dropout):
            module.p = p
        for name in NUMBERS:
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, p)


def use_fast_dropout(backbone: Any) -> None:
    """Put the dropout of this module into a transformers model, and its attention in the place of `sdpa`, where the model has that."""
    from transformers import AttentionInterface, AttentionMaskInterface

    for module in list(backbone.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, Dropout(child.p))
    if backbone.config._attn_implementation != "sdpa":
        return
    AttentionInterface.register(NAME, _interface)
    AttentionMaskInterface.register(NAME, _mask)
    backbone.set_attn_implementation(NAME)
