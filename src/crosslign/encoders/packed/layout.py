"""Where sentences lie that are packed one behind another, for kernels of attention on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosslign.encoders.tokens import sent

BLOCKS = (32, 64, 128)
"""Tile lengths of the kernel for short sentences: each goes to the smallest that holds it."""


@dataclass(frozen=True)
class Layout:
    """Sentences of falling length.

    Attributes:
        starts: int32 [n + 1], the first token of each, and the number of all.
        longest: tokens of the first.
        classes: first sentence, number of sentences and tile length of those that share one, up to the largest of `BLOCKS`.
    """

    starts: Tensor
    longest: int
    classes: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, lengths: NDArray[np.int64], device: torch.device) -> Layout:
        """Lay out sentences of falling lengths, int64 [n ≥ 1]; what a kernel needs goes to its device."""
        starts = np.concatenate([[0], lengths.cumsum()])
        bounds = [int((lengths > block).sum()) for block in (*reversed(BLOCKS), 0)]
        pairs = zip(reversed(BLOCKS), pairwise(bounds), strict=True)
        classes = tuple((first, last - first, block) for block, (first, last) in pairs if last > first)
        return cls(sent(torch.from_numpy(starts.astype(np.int32)), device), int(lengths[0]), classes)
