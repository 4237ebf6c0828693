"""Arithmetic that losses share: unit vectors, cosines, and log-sums over what a mask keeps (PROTOCOLS A0.4, A0.5)."""

from __future__ import annotations

from typing import Final

from torch import Tensor
from torch.nn.functional import normalize

MASKED: Final = -1e30
"""Score of what a mask leaves out: exp of it is 0, and unlike −inf it lets no NaN into the gradient of an empty row."""


def widened(values: Tensor) -> Tensor:
    """Return values of half precision as float32, and float32 or float64 as they are: losses are never computed in less."""
    return values.float() if values.element_size() < 4 else values


def unit(vectors: Tensor) -> Tensor:
    """Return the rows of [..., d] at length 1, in float32 at least; a zero row stays zero."""
    return normalize(widened(vectors), dim=-1)


def cosines(a: Tensor, b: Tensor) -> Tensor:
    """Return the cosines [n, m] of the rows of a [n, d] and b [m, d]."""
    return unit(a) @ unit(b).T


def kept_logsumexp(scores: Tensor, keep: Tensor) -> Tensor:
    """Return log Σ exp over the scores [n, m] of each row that `keep` [n, m] marks.

    A row where nothing is kept gives about −1e30, and no gradient.
    """
    return scores.masked_fill(~keep, MASKED).logsumexp(1)


def mean_of(values: Tensor) -> float:
    """Return the mean as a plain number for the log; 0 of nothing."""
    return float(values.detach().float().mean()) if values.numel() else 0.0
