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
FEW = 256
"""So many pairs, or so small a share of them, are looked at one by one."""


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
        order = np.argsort(-self.scores)
        scores = self.scores[order]
        equal = scores[1:] == scores[:-1]
        # Sorting by one key is several times faster than by three, and few scores are equal.
        tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        among = order[tied]
        order[tied] = among[np.lexsort((self.targets[among], self.sources[among], -scores[tied]))]
        return self.take(order)


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

    def scored(cosines: np.ndarray, own: np.ndarray, other: np.ndarray, indices: np.ndarray) -> np.ndarray:
        means = other[indices]  # in place from here: fresh memory of this size costs more than the sums
        means += own[:, None]
        means /= 2
        return margin_scores(cosines, means, margin)

    return scored(forward, f, b, neighbours.forward_indices), scored(backward, b, f, neighbours.backward_indices)


def _best(scores: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return of each row the candidate with the highest score, the lowest index of equal ones, and its score."""
    index, highest = indices[:, 0].copy(), scores[:, 0].copy()
    for column in range(1, scores.shape[1]):  # a reduction over rows this short takes numpy ten times as long
        other, score = indices[:, column], scores[:, column]
        better = (score > highest) | ((score == highest) & (other < index))
        np.copyto(index, other, where=better)
        np.copyto(highest, score, where=better)
    return index, highest


def _first_of_each(items: np.ndarray, number: int) -> np.ndarray:
    """Return whether each position is the first of its item: bool, of the shape of `items`; `number` is beyond the largest item."""
    positions = np.arange(len(items))
    first = np.empty(number, dtype=np.int64)
    first[items[::-1]] = positions[::-1]  # of several values for one place numpy keeps the last
    return np.asarray(first[items] == positions)


def _greedy(pairs: Pairs) -> Pairs:
    """Accept pairs from the best down, each side at most once.

    A pair that is the best left for its source and for its target is accepted whatever happens to the others: so all such pairs are taken
    at once, with what they use, until few are left or a long chain of pairs gives way one by one; these are looked at in turn.
    """
    numbers = int(pairs.sources.max()) + 1, int(pairs.targets.max()) + 1
    used = [np.zeros(number, dtype=bool) for number in numbers]
    accepted, left = np.zeros(len(pairs), dtype=bool), np.arange(len(pairs))
    taken = len(left)
    while len(left) > FEW and taken > len(left) // FEW:
        sides = pairs.sources[left], pairs.targets[left]
        best = np.logical_and(*(_first_of_each(items, number) for items, number in zip(sides, numbers, strict=True)))
        accepted[left[best]] = True
        for side, items in zip(used, sides, strict=True):
            side[items[best]] = True
        taken = int(best.sum())
        left = left[~(used[0][sides[0]] | used[1][sides[1]])]
    for position in left.tolist():
        source, target = pairs.sources[position], pairs.targets[position]
        if not used[0][source] and not used[1][target]:
            used[0][source] = used[1][target] = accepted[position] = True
    return pairs.take(accepted)


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
    others = np.flatnonzero(target[source] != np.arange(m))  # a pair that is best both ways is there already
    pooled = Pairs(np.append(np.arange(n), source[others]), np.append(target, others), np.append(forward, backward[others]))
    chosen = _greedy(pooled.ranked())
    return chosen.take(chosen.scores > 0)
