"""Forward pass of BERT-like backbones in training without padding: the same function as transformers', with gradient.

Real tokens of a batch lie one behind another, so that products, norms and dropout see no padding. On a CPU attention takes sentences
of like length together, padded to the longest of them; so it does on a GPU in fp32, and in half precision `varlen` says how. In half
precision weights are cast once a pass and only products are in it; residuals, layer norms and softmax stay float32. On a GPU the
steps between the products are single kernels (`fused`) where these work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional

from crosslign.devices import sent
from crosslign.encoders.dropout import dropped, dropped_at, probability
from crosslign.encoders.packed import fused
from crosslign.encoders.packed.packing import TYPES, Packed, is_plain, products
from crosslign.encoders.packed.varlen import Attention, attention_of
from crosslign.errors import ResourceError

TRAINED = {"cpu": TYPES, "cuda": {**TYPES, "fp16": torch.float16}}
"""Types of the products by precision, by kind of device."""
AddNorm = Callable[[Tensor, Tensor, Tensor, nn.LayerNorm, float], tuple[Tensor, Tensor]]
Gelu = Callable[[Tensor, Tensor], Tensor]
FILLED = 64
"""Least number of tokens that a batch on a GPU is a multiple of."""
CASTS = 4
"""Shares of the blocks: the gradients of one share's weights come at once, and ranks sum them while the next share's are computed."""
LIKE = 0.8
"""Sentences share one attention while their length is at least this share of the longest's."""


def has_flash(dtype: torch.dtype, size: int, device: torch.device) -> bool:
    """Tell whether torch's flash attention takes heads of a size: half precision, on a GPU of 2020 (Ampere) or later."""
    if device.type != "cuda" or not torch.backends.cuda.is_flash_attention_available():
        return False
    if dtype not in fused.HALVES or size % 8 or size > 256:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def trains_packed(backbone: Any, precision: str, kernels: str = "on") -> bool:
    """Tell whether `PackedTraining` can take the place of a backbone: float32 weights, BERT's blocks; fp16 on a GPU alone.

    Args:
        backbone: a model of transformers.
        precision: of the matrix products.
        kernels: `off`, `auto` or `on`; on a GPU `off` leaves the backbone as it is.
    """
    weight = next(backbone.parameters())
    if weight.device.type == "cuda" and kernels == "off":
        return False
    known = TRAINED.get(weight.device.type, {})
    return precision in known and weight.dtype == torch.float32 and is_plain(backbone)


@dataclass(frozen=True)
class AttentionGroup:
    """Sentences that share one attention.

    Attributes:
        tokens: how many they have; each group's lie one behind another, the first group's first.
        places: int64 [n * t], where each token lies among the group's; padding points at token 0.
        bias: float32 [n, 1, t] of the scores, 0 at tokens and -inf at padding, or None where all have one length.
        taken: int64, which of the n * t places are real, or None for all.
        shape: (n, t).
    """

    tokens: int
    places: Tensor
    bias: Tensor | None
    taken: Tensor | None
    shape: tuple[int, int]


def group_by_length(lengths: list[int], device: torch.device | str = "cpu") -> list[AttentionGroup]:
    """Return the groups of sentences whose lengths fall, as they lie packed; their tensors on a device."""
    groups, first = [], 0
    while first < len(lengths):
        longest, last = lengths[first], first
        while last < len(lengths) and lengths[last] >= LIKE * longest:
            last += 1
        own = np.array(lengths[first:last])
        real = np.arange(longest) < own[:, None]
        places = np.where(real, (own.cumsum() - own)[:, None] + np.arange(longest), 0).reshape(-1)
        bias = taken = None
        if lengths[last - 1] < longest:
            bias = sent(torch.from_numpy(np.where(real, np.float32(0), np.float32(-np.inf))[:, None]), device)
            taken = sent(torch.from_numpy(real.reshape(-1).nonzero()[0]), device)
        groups.append(AttentionGroup(int(own.sum()), sent(torch.from_numpy(places), device), bias, taken, (last - first, longest)))
        first = last
    return groups


def _attention(qkv: Tensor, heads: int, p: float, groups: list[AttentionGroup]) -> Tensor:
    """Return softmax(query keyᵀ / √d) value within each sentence, [tokens, heads * d], of qkv [tokens, 3 * heads * d]."""
    width = qkv.shape[1] // 3
    size = width // heads
    outs = []
    for part, group in zip(torch.split(qkv, [group.tokens for group in groups]), groups, strict=True):
        n, t = group.shape
        own = part.index_select(0, group.places).view(n, t, 3, heads, size).permute(2, 0, 3, 1, 4)
        own = own.to(torch.float32, memory_format=torch.contiguous_format)  # of half precision one copy; `float` would need another
        query, key, value = own.reshape(3, n * heads, t, size).unbind(0)
        scores = torch.bmm(query * size**-0.5, key.transpose(1, 2))
        if group.bias is not None:  # added in place it costs one pass, and none in the backward pass
            scores.add_(group.bias.repeat_interleave(heads, 0))
        weights = dropped_at(scores.softmax(-1), p)
        states = torch.bmm(weights, value).view(n, heads, t, size).transpose(1, 2).reshape(n * t, width)
        outs.append(states if group.taken is None else states.index_select(0, group.taken))
    return torch.cat(outs).to(qkv.dtype)


def _add_norm(branch: Tensor, bias: Tensor, states: Tensor, norm: nn.LayerNorm, p: float) -> tuple[Tensor, Tensor]:
    """Do what `fused.add_norm` does, by torch's functions."""
    out = norm(dropped_at(branch.float() + bias, p) + states)
    return out, out.to(branch.dtype)


def _gelu(values: Tensor, bias: Tensor) -> Tensor:
    """Do what `fused.gelu` does, by torch's functions."""
    return functional.gelu(values.float() + bias).to(values.dtype)


class _Cast(Function):
    """Weights put one below another and cast, those of many blocks at once: a GPU's host starts two kernels in the place of hundreds."""

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, sizes: tuple[int, ...], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.sizes, ctx.like = sizes, tensors
        ctx.set_materialize_grads(False)
        joint, parts = _in_one(tensors, dtype)
        torch._foreach_copy_(parts, list(tensors))
        groups = list(_grouped(tensors, sizes))
        outs = torch.split(joint, [sum(one.numel() for one in group) for group in groups])
        return tuple(out.view(-1, *group[0].shape[1:]) for out, group in zip(outs, groups, strict=True))

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Tensor | None, ...]:
        pairs = list(zip(_grouped(ctx.like, ctx.sizes), slopes, strict=True))
        found = _in_one([one for group, slope in pairs if slope is not None for one in group])[1]
        given = [part for group, slope in pairs if slope is not None for part in torch.split(slope, [len(one) for one in group])]
        torch._foreach_copy_(found, given)
        rest = iter(found)
        return None, None, *(None if slope is None else next(rest) for group, slope in pairs for _ in group)


def _in_one(tensors: Sequence[Tensor], dtype: torch.dtype | None = None) -> tuple[Tensor, list[Tensor]]:
    """Return a tensor with room for all of some, of their type or another, and the part of each, of its shape."""
    sizes = [one.numel() for one in tensors]
    joint = tensors[0].new_empty(sum(sizes), dtype=dtype)
    return joint, [part.view(one.shape) for part, one in zip(torch.split(joint, sizes), tensors, strict=True)]


def _grouped(tensors: Sequence[Tensor], sizes: Sequence[int]) -> Iterator[Sequence[Tensor]]:
    """Yield the tensors in groups of these sizes."""
    first = 0
    for size in sizes:
        yield tensors[first : first + size]
        first += size


class PackedTraining(Packed):
    """A backbone's own function and parameters.

    Args:
        backbone: a model for which `trains_packed` is true; its mode and its dropout are followed.
        precision: `fp32`, `bf16` or, on a GPU, `fp16`, of the matrix products.
        blocks, lengths: see `Packed`.
        kernels: `auto` does without those of the project's kernels that a check on this GPU fails; with `on` that ends the training.

    Raises:
        ResourceError: with `on`, of the kernels that were checked one failed; raised by the first pass on a GPU.
    """

    def __init__(
        self,
        backbone: Any,
        precision: str,
        blocks: int | None = None,
        lengths: NDArray[np.int64] | None = None,
        kernels: str = "auto",
    ) -> None:
        super().__init__(backbone, blocks, lengths)
        self.kernels = kernels
        self.device = next(backbone.parameters()).device
        self.dtype = TRAINED[self.device.type][precision]
        self._cast: dict[tuple[nn.Linear, str], Tensor] = {}

    def filled(self, tokens: int) -> int:
        """Return, on a GPU, the next multiple of 64 or of a power of two from a 64th to a 32nd of the tokens: few sizes in a training.

        For a size that is new cuBLAS takes some 250 µs of the host to choose a kernel, for another 17 µs (H100, torch 2.11).
        """
        step = max(FILLED, 1 << (tokens.bit_length() - 6)) if self.device.type == "cuda" and tokens > FILLED else 1
        return -(-tokens // step) * step

    def _cast_all(self) -> None:
        """Cast the weights of all products; once where no gradient is wanted."""
        if not self.computed or (self._cast and not torch.is_grad_enabled()):
            return
        size = -(-len(self.computed) // CASTS)
        for first in range(0, len(self.computed), size):
            layers = self.computed[first : first + size]
            groups = [(group, name) for layer in layers for group in products(layer) for name in ("weight", "bias")]
            copied = [(group, name) for group, name in groups if len(group) > 1 or self.dtype != torch.float32]
            tensors = [getattr(linear, name) for group, name in copied for linear in group]
            joint = _Cast.apply(self.dtype, tuple(len(group) for group, _ in copied), *tensors)  # type: ignore[no-untyped-call]
            self._cast |= {(group[0], name): getattr(group[0], name) for group, name in groups}
            self._cast |= {(group[0], name): one for (group, name), one in zip(copied, joint, strict=True)}

    def _linear(self, values: Tensor, layer: nn.Linear) -> Tensor:
        """Return the outputs of layers with one input, side by side; the first names them."""
        return functional.linear(values.to(self.dtype), self._cast[layer, "weight"], self._cast[layer, "bias"])

    def _product(self, values: Tensor, layer: nn.Linear) -> Tensor:
        """Return a layer's output without its bias, of values that are in half precision."""
        return functional.linear(values, self._cast[layer, "weight"])

    def _layer(self, layer: Any, attention: Attention, states: Tensor) -> Tensor:
        own, output = layer.attention.self, layer.attention.output
        qkv = self._linear(states, own.query)
        inner = attention(qkv, int(own.num_attention_heads), probability(own.dropout))
        states = output.LayerNorm(dropped(self._linear(inner, output.dense), output.dropout) + states)
        inner = functional.gelu(self._linear(states, layer.intermediate.dense))
        return layer.output.LayerNorm(dropped(self._linear(inner, layer.output.dense), layer.output.dropout) + states)  # type: ignore[no-any-return]

    def _fused_layer(self, halves: list[Tensor], add_norm: AddNorm, gelu: Gelu, layer: Any, attention: Attention, states: Tensor) -> Tensor:
        """Do what `_layer` does by fused steps; `halves` hands each block's result in half precision on to the next."""
        own, output, wide = layer.attention.self, layer.attention.output, layer.intermediate.dense
        half = halves.pop() if halves else states.to(self.dtype)
        inner = attention(self._linear(half, own.query), int(own.num_attention_heads), probability(own.dropout))
        branch = self._product(inner, output.dense)
        states, half = add_norm(branch, output.dense.bias, states, output.LayerNorm, probability(output.dropout))
        inner = gelu(self._product(half, wide), wide.bias)
        output = layer.output
        branch = self._product(inner, output.dense)
        states, half = add_norm(branch, output.dense.bias, states, output.LayerNorm, probability(output.dropout))
        halves.append(half)
        return states

    def blocks(self, lengths: NDArray[np.int64]) -> Iterator[Callable[[Tensor], Tensor]]:
        """Yield the blocks for sentences of these lengths."""
        self._cast_all()
        config = self.backbone.config
        size = config.hidden_size // config.num_attention_heads
        if not has_flash(self.dtype, size, self.device):
            groups = group_by_length(lengths.tolist(), self.device)
            return (partial(self._layer, layer, partial(_attention, groups=groups)) for layer in self.computed)
        working = fused.working(self.device, self.dtype, config.num_attention_heads, size)
        if self.kernels == "on" and (failed := sorted(fused.CHECKS.keys() - working)):
            what, do = f"kernels cannot be used on this GPU: {', '.join(failed)}", "Set kernels: auto, or off; the log has the reason"
            raise ResourceError(what, where="kernels: on", do=do)
        attention = attention_of(lengths, self.device, "attention" in working and size in fused.SIZES)
        norm = fused.add_norm if "add_norm" in working else _add_norm
        gelu = fused.gelu if "gelu" in working else _gelu
        halves: list[Tensor] = []
        return (partial(self._fused_layer, halves, norm, gelu, layer, attention) for layer in self.computed)
