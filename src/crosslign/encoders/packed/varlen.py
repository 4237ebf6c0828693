"""Attention over packed sentences on a GPU, with dropout: which kernel takes which of them.

Three ways were weighed for sentences of any length. `torch.nn.attention.varlen` has no dropout. A jagged tensor's attention has, but
it is a prototype and wraps the same kernel. `aten._flash_attention_forward`, which both call, is not public, yet its positional
arguments and its derivative are the same in torch 2.11 and 2.13: it is what is called here. It works on tiles of 128 tokens, so that
on sentences of forty nine tenths of its work are padding: those of up to 128 tokens go to `fused.attention`, where that works.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosslign.encoders.packed import fused
from crosslign.encoders.packed.packing import BLOCKS, Layout

Attention = Callable[[Tensor, int, float], Tensor]
"""Takes qkv [tokens, 3 * heads * d], the number of heads and the probability of dropout, gives states [tokens, heads * d]."""


def flash(qkv: Tensor, layout: Layout, heads: int, p: float) -> Tensor:
    """Return softmax(query keyᵀ / √d) value within each sentence, dropout included, by torch's flash attention.

    Args:
        qkv: [tokens, 3 * heads * d], query, key and value side by side, in half precision.
        layout: where the sentences lie.
        heads: number of heads.
        p: probability of dropping a weight.
    """
    size = qkv.shape[1] // 3 // heads
    query, key, value = qkv.view(-1, 3, heads, size).unbind(1)
    states: Tensor = torch.ops.aten._flash_attention_forward(
        query, key, value, layout.starts, layout.starts, layout.longest, layout.longest, p, False, False, scale=size**-0.5
    )[0]
    return states.reshape(len(qkv), heads * size)


def attention_of(lengths: NDArray[np.int64], device: torch.device, short: bool) -> Attention:
    """Return the attention of sentences of falling lengths.

    Args:
        lengths: int64 [n].
        device: where the states will be.
        short: whether `fused.attention` takes those up to the largest of `BLOCKS`; else all go to `flash`.
    """
    longer = int((lengths > BLOCKS[-1]).sum()) if short else len(lengths)
    if longer == 0 or longer == len(lengths):
        whole, kernel = Layout.of(lengths, device), flash if longer else fused.attention
        return lambda qkv, heads, p: kernel(qkv, whole, heads, p)
    first, rest = Layout.of(lengths[:longer], device), Layout.of(lengths[longer:], device)
    tokens = [int(lengths[:longer].sum()), int(lengths[longer:].sum())]

    def both(qkv: Tensor, heads: int, p: float) -> Tensor:
        head, tail = torch.split(qkv, tokens)
        return torch.cat([flash(head, first, heads, p), fused.attention(tail, rest, heads, p)])

    return both
