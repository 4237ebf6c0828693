"""Forward pass of BERT-like backbones on a CPU without padding: the same function as transformers', in half the time.

Real tokens of a batch lie one behind another; sentences of equal length share one attention without mask. Weights are cast and put
into oneDNN's own layout once, query, key and value as one matrix, and GELU belongs to its product. In bf16 only matrix products are
bf16: residuals, layer norms and softmax stay float32, which keeps cosines to full float32 near 0.99995.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from crosslign.devices import computed_in
from crosslign.encoders.packed.packing import TYPES, Packed, is_plain, products

WRITTEN_OUT = 96
"""Up to this length attention is two batched products around a softmax; the fused kernel wins on longer sentences only."""

Group = tuple[int, int, int]
"""First token, number of sentences and length of sentences of equal length."""


def supported(backbone: nn.Module, precision: str) -> bool:
    """Tell whether the packed pass can take the place of `backbone` in a precision: on a CPU, with oneDNN's kernels for it."""
    weight = next(backbone.parameters())
    if precision not in TYPES or weight.device.type != "cpu" or weight.dtype != torch.float32 or not is_plain(backbone):
        return False
    ready = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")  # type: ignore[no-untyped-call]
    return ready and computed_in(precision, "cpu") == precision


def _linear(dtype: torch.dtype, tokens: int, parts: Sequence[nn.Linear], gelu: bool = False) -> Callable[[Tensor], Tensor]:
    """Return the product of one or several layers with the same input, their outputs side by side."""
    weight = torch.cat([part.weight.detach() for part in parts]).to(dtype)
    bias = torch.cat([part.bias.detach() for part in parts]).to(dtype)
    laid = torch.ops.mkldnn._reorder_linear_weight(weight, tokens)
    after, kind = ("gelu", "none") if gelu else ("none", "")
    return lambda values: torch.ops.mkldnn._linear_pointwise(values, laid, bias, after, [], kind)


def _groups(lengths: Tensor) -> list[Group]:
    """Return the runs of equal numbers in `lengths`, int64 [n]."""
    values, counts = torch.unique_consecutive(lengths, return_counts=True)
    groups, start = [], 0
    for length, count in zip(values.tolist(), counts.tolist(), strict=True):
        groups.append((start, count, length))
        start += count * length
    return groups


def _attention(qkv: Tensor, groups: Sequence[Group], heads: int) -> Tensor:
    """Return softmax(query keyᵀ / √d) value within each sentence.

    Args:
        qkv: [tokens, 3 * heads * d]: query, key and value side by side.
        groups: sentences, as they lie in `qkv`.
        heads: number of heads.

    Returns:
        [tokens, heads * d], of the type of `qkv`; scores and softmax are float32.
    """
    width = qkv.shape[1] // 3
    size = width // heads
    out = torch.empty(len(qkv), width, dtype=qkv.dtype)
    for start, count, length in groups:
        end = start + count * length
        parts = qkv[start:end].view(count, length, 3, heads, size).permute(2, 0, 3, 1, 4)
        if length <= WRITTEN_OUT:
            query, key, value = parts.reshape(3, count * heads, length, size)
            scores = torch.bmm(query.float(), key.float().transpose(1, 2)).mul_(size**-0.5)
            states = torch.bmm(scores.softmax(-1).to(value.dtype), value).view(count, heads, length, size)
        else:
            states = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        out[start:end].view(count, length, heads, size).copy_(states.transpose(1, 2))
    return out


class _Layer:
    """One block, its weights laid out for oneDNN; `states` are float32 [tokens, d] in and out."""

    def __init__(self, layer: Any, dtype: torch.dtype, tokens: int) -> None:
        qkv, attended, widened, narrowed = products(layer)
        self.dtype = dtype
        self.heads = int(layer.attention.self.num_attention_heads)
        self.qkv = _linear(dtype, tokens, qkv)
        self.attended = _linear(dtype, tokens, attended)
        self.widened = _linear(dtype, tokens, widened, gelu=True)
        self.narrowed = _linear(dtype, tokens, narrowed)
        self.norms = layer.attention.output.LayerNorm, layer.output.LayerNorm

    def __call__(self, states: Tensor, groups: Sequence[Group]) -> Tensor:
        inner = _attention(self.qkv(states.to(self.dtype)), groups, self.heads)
        states = self.norms[0](self.attended(inner).float().add_(states))
        inner = self.widened(states.to(self.dtype))
        return self.norms[1](self.narrowed(inner).float().add_(states))  # type: ignore[no-any-return]


class PackedBackbone(Packed):
    """A copy of the function of a backbone in eval mode.

    Args:
        backbone: a model for which `supported` is true; later changes of its matrices do not reach the copy.
        precision: `fp32` or `bf16`.
        tokens: tokens of a usual batch; a hint for the layout.
        blocks: see `Packed`.
    """

    def __init__(self, backbone: Any, precision: str, tokens: int = 2048, blocks: int | None = None) -> None:
        super().__init__(backbone, blocks)
        self.layers = [_Layer(layer, TYPES[precision], tokens) for layer in self.computed]

    def blocks(self, lengths: NDArray[np.int64]) -> Iterator[Callable[[Tensor], Tensor]]:
        """Yield the blocks for sentences of these lengths."""
        groups = _groups(torch.from_numpy(lengths))
        return (partial(layer, groups=groups) for layer in self.layers)
