"""Batches gathered over all ranks, for losses under another trainer."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


def _ranks() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def joined(columns: list[list[Any]]) -> list[list[Any]]:
    """Return columns with the rows of all ranks, in the order of the ranks."""
    if _ranks() == 1:
        return columns
    found: list[Any] = [None] * _ranks()
    dist.all_gather_object(found, columns)
    return [[value for rank in found for value in rank[at]] for at in range(len(columns))]


def gathered(vectors: Tensor) -> Tensor:
    """Return the rows of all ranks; gradient reaches this rank's own, times the ranks, since DDP takes the mean of the ranks' gradients.

    Heads, which DDP does not hold, get the gradient of the whole batch on every rank.
    """
    if _ranks() == 1:
        return vectors
    counts = torch.zeros(_ranks(), dtype=torch.int64, device=vectors.device)
    counts[dist.get_rank()] = len(vectors)
    dist.all_reduce(counts)
    found = [vectors.new_zeros(int(count), vectors.shape[1]) for count in counts]
    padded = nn.functional.pad(vectors.detach(), (0, 0, 0, int(counts.max()) - len(vectors)))
    every = [torch.empty_like(padded) for _ in counts]
    dist.all_gather(every, padded.contiguous())
    found = [rows[: int(count)] for rows, count in zip(every, counts, strict=True)]
    own = vectors.view_as(vectors)
    if own.requires_grad:
        own.register_hook(lambda gradient: gradient * _ranks())  # type: ignore[no-untyped-call]
    found[dist.get_rank()] = own
    return torch.cat(found)
