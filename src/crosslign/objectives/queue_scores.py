"""The log-sum over a queue's keys and its gradient, block by block, so that no matrix of all scores is ever held."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd import Function

from crosslign.objectives.contract import MASKED

BLOCK: Final = 8192
"""Keys of a block: at 1024 queries its scores take 32 MiB."""


class _LogSumExp(Function):
    """The gradient, the softmax-weighted mean of the keys over τ, is computed in the forward pass.

    So the graph holds no view of the queue, which is written to before the backward pass.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, temperature: float) -> Tensor:
        peak = queries.new_full((len(queries), 1), MASKED)
        total, weighted = torch.zeros_like(peak), torch.zeros_like(queries)
        for block in torch.split(keys, BLOCK):
            stored = block.to(queries.dtype)
            scores = queries @ stored.T / temperature
            higher = torch.maximum(peak, scores.amax(1, keepdim=True))
            rescale, weights = (peak - higher).exp(), (scores - higher).exp()
            total = total * rescale + weights.sum(1, keepdim=True)
            weighted = weighted * rescale + weights @ stored
            peak = higher
        ctx.save_for_backward(weighted / (total * temperature))
        return (peak + total.log()).squeeze(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return gradients[0].unsqueeze(1) * slope, None, None


def queue_logsumexp(queries: Tensor, keys: Tensor, temperature: float) -> Tensor:
    """Return log Σ_k exp(q·key_k/τ) for every query.

    Args:
        queries: [n, d], float32 or float64; the result is differentiable in them alone.
        keys: [K, d] of any floating type; none at all give −1e30.
        temperature: τ > 0.

    Returns:
        [n], of the queries' type.
    """
    if not len(keys):
        return queries.new_full((len(queries),), MASKED)
    return _LogSumExp.apply(queries, keys, temperature)  # type: ignore[no-any-return,no-untyped-call]
