"""Batches gathered over all ranks, for losses under another trainer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from sentence_transformers.util import all_gather, get_world_size
from torch import Tensor, nn


def joined(columns: list[list[Any]]) -> tuple[list[list[Any]], list[int]]:
    """Return columns with the rows of all ranks, in the order of the ranks, and the number of rows of each rank."""
    found: list[Any] = [columns] * get_world_size()
    if len(found) > 1:
        dist.all_gather_object(found, columns)
    return [[value for rank in found for value in rank[at]] for at in range(len(columns))], [len(rank[0]) for rank in found]


def gathered(vectors: Tensor, counts: Sequence[int]) -> Tensor:
    """Return the rows of all ranks; gradient reaches this rank's own, times the ranks, since DDP takes the mean of the ranks' gradients.

    Heads, which DDP does not hold, get the gradient of the whole batch on every rank. `counts` are the rows of each rank.
    """
    if len(counts) == 1:
        return vectors
    padded = nn.functional.pad(vectors, (0, 0, 0, max(counts) - len(vectors)))
    if padded.requires_grad:
        padded.register_hook(lambda gradient: gradient * len(counts))  # type: ignore[no-untyped-call]
    every = all_gather(padded.contiguous()).chunk(len(counts))
    return torch.cat([rows[:count] for rows, count in zip(every, counts, strict=True)])
