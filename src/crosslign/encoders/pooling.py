"""From token states to one vector a sentence (docs/training.md, docs/protocols.md)."""

from __future__ import annotations

from math import ceil, inf
from typing import Final

import torch
from torch import Tensor

from crosslign.errors import InputError

POOLINGS: Final = ("cls", "cls_before_mlp", "mean", "mean_no_special", "max", "last", "avg_first_last", "pooler")

MASKED_TOKENS: Final = "masked_tokens"
"""The states of masked tokens as they are, for masked language modelling: no pooling that a recipe may name."""

POOLING_KEYS: Final = {"cls": "cls_token", "cls_before_mlp": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "last": "lasttoken"}
"""Poolings that SentenceTransformer has too, by its own names."""


def resolve_layer(layer: int, blocks: int) -> int:
    """Return which block output a readout's layer means on a model with `blocks` blocks.

    Args:
        layer: 0 is the embedding output, i the output of block i, -1 the last block.
        blocks: blocks of the model at hand, L'.

    Returns:
        A layer in 0 … blocks: `layer` itself where the model has it. One beyond its blocks was chosen for a larger model, of L = 12
        blocks, or 24 for a layer above 12, and becomes ceil(layer * L' / L).

    Raises:
        InputError: the model has no such layer.
    """
    if layer <= blocks:
        return layer if layer >= 0 else blocks
    of = 12 if layer <= 12 else 24
    if blocks >= of or layer > of:
        raise InputError(
            f"there is no layer {layer}",
            where="layer",
            why=f"the encoder has {blocks} blocks",
            do="Use 0 to the number of blocks, or -1 for the last",
        )
    return ceil(layer * blocks / of)


def masked_mean(states: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of [n, t, d] states over the positions where the [n, t] mask is true; zero where there are none."""
    weights = mask.to(states.dtype).unsqueeze(-1)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1.0)


def pool(states: Tensor, mask: Tensor, special: Tensor, pooling: str) -> Tensor:
    """Pool the token states of one layer.

    Args:
        states: float [n, t, d].
        mask: bool [n, t], true at real tokens.
        special: bool [n, t], true at the tokens that the tokenizer adds around a sentence.
        pooling: `cls` and `cls_before_mlp` (the first position: a projection is a part, never in the encoder),
            `mean` (special tokens included), `mean_no_special`, `max`, or `last`: the last real token, which alone has read the whole
            sentence in a decoder.

    Returns:
        float [n, d]; padding never enters.
    """
    if pooling in ("cls", "cls_before_mlp"):
        return states[:, 0]
    if pooling == "mean":
        return masked_mean(states, mask)
    if pooling == "mean_no_special":
        return masked_mean(states, mask & ~special)
    if pooling == "max":
        return states.masked_fill(~mask.unsqueeze(-1), -inf).amax(1)
    if pooling == "last":
        return states[torch.arange(len(states), device=states.device), mask.sum(1) - 1]
    raise ValueError(f"pooling {pooling!r} is none of {POOLINGS}")
