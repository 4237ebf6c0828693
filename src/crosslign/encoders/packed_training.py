"""Forward pass of BERT-like backbones in training, on a CPU, without padding: the same function as transformers', with gradient.

Real tokens of a batch lie one behind another, so that products, norms and dropout see no padding. Attention takes sentences of like
length together, padded to the longest of them. In bf16 weights are cast once a pass and only products are bf16; residuals, layer
norms and softmax stay float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from crosslign.encoders.dropout import dropout, dropped
from crosslign.encoders.packed import TYPES, is_plain
from crosslign.encoders.packing import Packed

LIKE = 0.8
"""Sentences share one attention while their length is at least this share of the longest's."""


def trains_packed(backbone: Any, precision: str) -> bool:
    """Tell whether `PackedTraining` can take the place of a backbone: on a CPU, float32 weights, BERT's blocks."""
    weight = next(backbone.parameters())
    return precision in TYPES and weight.device.type == "cpu" and weight.dtype == torch.float32 and is_plain(backbone)


@dataclass(frozen=True)
class Group:
    """Sentences that share one attention.

    Attributes:
        places: int64 [n * t], where each token lies among the packed ones; padding points at token 0.
        real: bool [n, t], or None where all have one length.
        taken: int64, which of the n * t places are real, or None for all.
        shape: (n, t).
    """

    places: Tensor
    real: Tensor | None
    taken: Tensor | None
    shape: tuple[int, int]


def group_by_length(lengths: list[int]) -> list[Group]:
    """Return the groups of sentences whose lengths fall, as they lie packed."""
    groups, first, start = [], 0, 0
    while first < len(lengths):
        longest, last = lengths[first], first
        while last < len(lengths) and lengths[last] >= LIKE * longest:
            last += 1
        own = torch.tensor(lengths[first:last])
        starts = start + own.cumsum(0) - own
        places = starts[:, None] + torch.arange(longest)
        real = torch.arange(longest) < own[:, None]
        equal = lengths[last - 1] == longest
        if not equal:
            places = places.where(real, 0)
        taken = None if equal else real.reshape(-1).nonzero().squeeze(1)
        groups.append(Group(places.reshape(-1), None if equal else real, taken, (last - first, longest)))
        first, start = last, start + int(own.sum())
    return groups


def _attention(qkv: Tensor, groups: list[Group], heads: int, p: float) -> Tensor:
    """Return softmax(query keyᵀ / √d) value within each sentence, [tokens, heads * d], of qkv [tokens, 3 * heads * d]."""
    width = qkv.shape[1] // 3
    size = width // heads
    outs = []
    for group in groups:
        n, t = group.shape
        own = qkv.index_select(0, group.places).view(n, t, 3, heads, size).permute(2, 0, 3, 1, 4).float()
        query, key, value = own.reshape(3, n * heads, t, size).unbind(0)
        scores = torch.bmm(query * size**-0.5, key.transpose(1, 2))
        if group.real is not None:
            scores = scores.view(n, heads, t, t).masked_fill(~group.real[:, None, None, :], float("-inf")).view(n * heads, t, t)
        weights = scores.softmax(-1)
        if p > 0.0:
            weights = dropout(weights, p)
        states = torch.bmm(weights, value).view(n, heads, t, size).transpose(1, 2).reshape(n * t, width)
        outs.append(states if group.taken is None else states.index_select(0, group.taken))
    return torch.cat(outs).to(qkv.dtype)


class PackedTraining(Packed):
    """A backbone's own function and parameters.

    Args:
        backbone: a model for which `trains_packed` is true; its mode and its dropout are followed.
        precision: `fp32` or `bf16`, of the matrix products.
        blocks: see `Packed`.
    """

    def __init__(self, backbone: Any, precision: str, blocks: int | None = None) -> None:
        super().__init__(backbone, blocks)
        self.dtype = TYPES[precision]

    def _linear(self, values: Tensor, *layers: nn.Linear) -> Tensor:
        """Return the outputs of layers with one input, side by side."""
        weight, bias = (torch.cat([getattr(layer, name) for layer in layers]) for name in ("weight", "bias"))
        return functional.linear(values.to(self.dtype), weight.to(self.dtype), bias.to(self.dtype))

    def _layer(self, layer: Any, groups: list[Group], states: Tensor) -> Tensor:
        own, output = layer.attention.self, layer.attention.output
        qkv = self._linear(states, own.query, own.key, own.value)
        inner = _attention(qkv, groups, int(own.num_attention_heads), own.dropout.p if own.dropout.training else 0.0)
        states = output.LayerNorm(dropped(self._linear(inner, output.dense), output.dropout) + states)
        inner = functional.gelu(self._linear(states, layer.intermediate.dense))
        return layer.output.LayerNorm(dropped(self._linear(inner, layer.output.dense), layer.output.dropout) + states)  # type: ignore[no-any-return]

    def blocks(self, lengths: Tensor) -> Iterator[Callable[[Tensor], Tensor]]:
        """Yield the blocks for sentences of these lengths."""
        groups = group_by_length(lengths.tolist())
        return (partial(self._layer, layer, groups) for layer in self.computed)
