"""Margin scores of mined pairs and the four ways to choose them (PROTOCOLS B1.2; LASER's mine_bitexts, restated)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from crosslign.errors import InputError
from crosslign.mining.knn import Neighbours
from crosslign.registry import nearest

Margin = Literal["ratio", "distance", "absolute"]
Retrieval = Literal["fwd", "bwd", "intersect", "max"]
MARGINS = ("ratio", "distance", "absolute")
RETRIEVALS = ("fwd", "bwd", "intersect", "max")


@dataclass(frozen=True)
class Pairs:
    """Mined pairs.

    Attributes:
        sources, targets: int64 [p], indices of the two sides.
        scores: float64 [p], margin scores.
    """

    sources: np.ndarray
    targets: np.ndarray
    scores: np.ndarray

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, at: np.ndarray) -> Pairs:
        """Return the pairs at these positions, or where a mask is true."""
        return Pairs(self.sources[at], self.targets[at], self.scores[at])

    def ranked(self) -> Pairs:
        """Return the pairs by score from high to low, then by source, then by target."""
        return self.take(np.lexsort((self.targets, self.sources, -self.scores)))


def margin_scores(cosines: np.ndarray, means: np.ndarray, margin: Margin) -> np.ndarray:
    """Return margin scores: cosine / mean (`ratio`), cosine - mean (`distance`) or the cosine itself (`absolute`).

    Args:
        cosines: cosines of pairs.
        means: half the sum of the two sides' mean cosines to their neighbours, of the same shape.
        margin: which one. A ratio to a mean of exactly 0 has no value and scores -inf.
    """
    if margin == "absolute":
        return cosines
    out = np.full_like(cosines, -np.inf)
    if margin == "distance":
        np.subtract(cosines, means, out=out)
    else:
        np.divide(cosines, means, out=out, where=means != 0)
    return out


def _scored(neighbours: Neighbours, margin: Margin) -> tuple[np.ndarray, np.ndarray]:
    """Return the margin scores of all forward [n, k] and all backward [m, k'] candidates, float64."""
    forward, backward = neighbours.forward_scores.astype(np.float64), neighbours.backward_scores.astype(np.float64)
    f, b = forward.mean(1), backward.mean(1)
    return (
        margin_scores(forward, (f[:, None] + b[neighbours.forward_indices]) / 2, margin),
        margin_scores(backward, (b[:, None] + f[neighbours.backward_indices]) / 2, margin),
    )


def _best(scores: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return of each row the candidate with the highest score, the lowest index of equal ones, and its score."""
    highest = scores.max(1)
    index = np.where(scores == highest[:, None], indices, np.iinfo(np.int64).max).min(1)
    return index, highest


def _greedy(pairs: Pairs) -> Pairs:
    """Accept pairs from the best down, each side at most once."""
    used_sources, used_targets = bytearray(int(pairs.sources.max()) + 1), bytearray(int(pairs.targets.max()) + 1)
    accepted = []
    for position, (source, target) in enumerate(zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True)):
        if not used_sources[source] and not used_targets[target]:
            used_sources[source] = used_targets[target] = 1
            accepted.append(position)
    return pairs.take(np.array(accepted, dtype=np.int64))


def mine(neighbours: Neighbours, margin: Margin = "ratio", retrieval: Retrieval = "max") -> Pairs:
    """Choose pairs among the nearest neighbours.

    Args:
        neighbours: k nearest neighbours in both directions; a row's mean is taken over all its k.
        margin: `ratio`, `distance` or `absolute`.
        retrieval: `fwd`: the best target of each source, in the order of sources; `bwd`: the best source of each target, in the order of
            targets; `intersect`: pairs that are best both ways, in the order of sources; `max`: the best of both ways together,
            accepted from the highest score down with each sentence used once, scores above 0 only, in that order.

    Raises:
        InputError: an unknown margin or retrieval.
    """
    for name, kind, allowed in ((margin, "margin", MARGINS), (retrieval, "retrieval", RETRIEVALS)):
        if name not in allowed:
            raise InputError(f"unknown {kind} {name!r}", why=nearest(name, list(allowed)))
    forward_scores, backward_scores = _scored(neighbours, margin)
    n, m = len(forward_scores), len(backward_scores)
    target, forward = _best(forward_scores, neighbours.forward_indices)
    source, backward = _best(backward_scores, neighbours.backward_indices)
    if retrieval == "fwd":
        return Pairs(np.arange(n), target, forward)
    if retrieval == "bwd":
        return Pairs(source, np.arange(m), backward)
    if retrieval == "intersect":
        mutual = source[target] == np.arange(n)
        return Pairs(np.arange(n)[mutual], target[mutual], forward[mutual])
    pooled = Pairs(np.concatenate([np.arange(n), source]), np.concatenate([target, np.arange(m)]), np.concatenate([forward, backward]))
    chosen = _greedy(pooled.ranked())
    return chosen.take(chosen.scores > 0)
