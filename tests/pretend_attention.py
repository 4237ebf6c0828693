"""Flash attention of the pretend device: what torch's kernels for GPUs give over packed sentences, by plain products."""

from __future__ import annotations

from itertools import pairwise

import torch


def _check(tensors, starts):
    """Refuse what the kernels refuse, or read wrongly."""
    if len({tensor.device for tensor in (*tensors, *starts)}) > 1:
        raise RuntimeError("Expected all tensors to be on the same device: flash attention")
    if any(tensor.dtype not in (torch.bfloat16, torch.float16) or tensor.dtype != tensors[0].dtype for tensor in tensors):
        raise RuntimeError("FlashAttention only support fp16 and bf16 data type")
    if any(places.dtype != torch.int32 for places in starts):
        raise RuntimeError("cu_seqlens_q must have dtype int32")


def _sentences(query, key, starts, scale, seed, dropout):
    """Yield of each sentence its place, the weights of its tokens, float32 [heads, t, t], their sums' logarithms, and dropout's factors."""
    draw, bounds = torch.Generator().manual_seed(seed), starts.tolist()
    for first, last in pairwise(bounds):
        at = slice(first, last)
        scores = torch.einsum("qhd,khd->hqk", query[at].float(), key[at].float()) * scale
        factors = (torch.rand(scores.shape, generator=draw) >= dropout).float() / (1 - dropout)
        yield at, scores.softmax(-1), scores.logsumexp(-1), factors


def forward(wrap, draw_seed, query, key, value, starts, key_starts, longest, key_longest, dropout, causal, *rest, scale=None, **options):
    """Take the place of `aten._flash_attention_forward`, for sentences that attend to themselves, wholly."""
    _check((query, key, value), (starts, key_starts))
    if causal or any(rest) or any(option is not None for option in options.values()):
        raise NotImplementedError("the pretend device has no such attention")
    seed = draw_seed()
    states, sums = torch.empty_like(query._held), torch.empty(query.shape[1], query.shape[0])
    held = query._held, key._held, starts._held
    for at, weights, logarithms, factors in _sentences(*held, scale or query.shape[-1] ** -0.5, seed, dropout):
        states[at] = torch.einsum("hqk,khd->qhd", (weights * factors).to(value.dtype), value._held[at])
        sums[:, at] = logarithms
    return tuple(map(wrap, (states, sums, torch.tensor([seed, 0]), torch.empty(0), torch.empty(0))))


def backward(
    wrap, slope, query, key, value, out, sums, starts, key_starts, longest, key_longest, dropout, causal, seed, *rest, scale=None, **_
):
    """Take the place of `aten._flash_attention_backward`."""
    _check((slope, query, key, value), (starts, key_starts))
    scale = scale or query.shape[-1] ** -0.5
    gradients = [torch.empty_like(tensor._held) for tensor in (query, key, value)]
    held = query._held, key._held, starts._held
    for at, weights, _, factors in _sentences(*held, scale, int(seed._held[0]), dropout):
        own = slope._held[at].float()
        gradients[2][at] = torch.einsum("hqk,qhd->khd", weights * factors, own).to(value.dtype)
        of_weights = torch.einsum("qhd,khd->hqk", own, value._held[at].float()) * factors
        of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) * scale
        gradients[0][at] = torch.einsum("hqk,khd->qhd", of_scores, key._held[at].float()).to(query.dtype)
        gradients[1][at] = torch.einsum("hqk,qhd->khd", of_scores, query._held[at].float()).to(key.dtype)
    return tuple(map(wrap, gradients))
