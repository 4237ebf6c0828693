"""Margin scores of mined pairs and the four ways to choose them (docs/protocols.md; LASER's mine_bitexts, restated)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from crosslign.errors import InputError
from crosslign.mining.lists import Neighbours
from crosslign.registry import nearest

Margin = Literal["ratio", "distance", "absolute"]
Retrieval = Literal["fwd", "bwd", "intersect", "max"]
MARGINS = ("ratio", "distance", "absolute")
RETRIEVALS = ("fwd", "bwd", "intersect", "max")
AT_ONCE = 8_192
"""Rows whose candidates are scored together, and pairs that are accepted together: fresh memory costs more than the sums."""
FEW = 256
"""Pairs of which no more than one in so many can be accepted at once are looked at one by one."""


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

    def take(self, at: np.ndarray | slice) -> Pairs:
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
        return Pairs(self.sources[order], self.targets[order], scores)


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


def neighbour_means(scores: np.ndarray) -> np.ndarray:
    """Return the mean of each row, float64."""
    total = scores[:, 0].astype(np.float64)
    for column in range(1, scores.shape[1]):  # a reduction over rows this short takes numpy several times as long
        total += scores[:, column]
    total /= scores.shape[1]
    return total


def candidate_scores(cosines: np.ndarray, indices: np.ndarray, own: np.ndarray, other: np.ndarray, margin: Margin) -> np.ndarray:
    """Return the margin scores of all candidates of some rows, float64 [n, k].

    Args:
        cosines, indices: of the candidates, [n, k].
        own, other: mean cosine of each of these rows [n], and of each row of the other side.
        margin: as for `margin_scores`.
    """
    means = other[indices]
    means += own[:, None]
    means /= 2
    return margin_scores(cosines.astype(np.float64), means, margin)


def _best(scores: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return of each row the candidate with the highest score, the lowest index of equal ones, and its score."""
    index, highest = indices[:, 0].copy(), scores[:, 0].copy()
    for column in range(1, scores.shape[1]):
        other, score = indices[:, column], scores[:, column]
        better = (score > highest) | ((score == highest) & (other < index))
        np.copyto(index, other, where=better)
        np.copyto(highest, score, where=better)
    return index, highest


def _best_of_all(
    cosines: np.ndarray, indices: np.ndarray, own: np.ndarray, other: np.ndarray, margin: Margin
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best candidate of each row and its margin score; means as in `candidate_scores`, `other` of the whole other side."""
    index, highest = np.empty(len(cosines), np.int64), np.empty(len(cosines))
    for start in range(0, len(cosines), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        scores = candidate_scores(cosines[rows], indices[rows], own[rows], other, margin)
        index[rows], highest[rows] = _best(scores, indices[rows])
    return index, highest


def _first_of_each(items: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return whether each position is the first of its item: bool, of the shape of `items`; `place` has room for a number an item."""
    positions = np.arange(len(items), dtype=place.dtype)
    place[items[::-1]] = positions[::-1]  # of several values for one place numpy keeps the last
    return np.asarray(place[items] == positions)


def _greedy(pairs: Pairs) -> Pairs:
    """Accept pairs from the best down, each side at most once; they are ranked.

    A pair that is the best left for its source and for its target is accepted whatever happens to the others: so of some thousand pairs
    all such ones are taken at once, with what they use, until few are left or a long chain of pairs gives way one by one; these are looked
    at in turn.
    """
    numbers = int(pairs.sources.max(initial=0)) + 1, int(pairs.targets.max(initial=0)) + 1
    used, places = [np.zeros(number, bool) for number in numbers], [np.empty(number, np.int32) for number in numbers]
    accepted = np.zeros(len(pairs), bool)
    for start in range(0, len(pairs), AT_ONCE):
        left = np.arange(start, min(start + AT_ONCE, len(pairs)))
        taken = len(left)
        while taken > len(left) // FEW:
            sides = pairs.sources[left], pairs.targets[left]
            free = ~(used[0][sides[0]] | used[1][sides[1]])
            left, sides = left[free], (sides[0][free], sides[1][free])
            best = _first_of_each(sides[0], places[0]) & _first_of_each(sides[1], places[1])
            accepted[left[best]] = True
            for side, items in zip(used, sides, strict=True):
                side[items[best]] = True
            taken = int(np.count_nonzero(best))
            left = left[~best]
        for position in left.tolist():
            source, target = pairs.sources[position], pairs.targets[position]
            if not used[0][source] and not used[1][target]:
                used[0][source] = used[1][target] = accepted[position] = True
    return pairs.take(accepted)


def check_ways(margin: str, retrieval: str = "max") -> None:
    """Check that pairs can be scored and chosen so.

    Raises:
        InputError: an unknown margin or retrieval.
    """
    for name, kind, allowed in ((margin, "margin", MARGINS), (retrieval, "retrieval", RETRIEVALS)):
        if name not in allowed:
            raise InputError(f"unknown {kind} {name!r}", why=nearest(name, list(allowed)))


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
    check_ways(margin, retrieval)
    near, f, b = neighbours, neighbour_means(neighbours.forward_scores), neighbour_means(neighbours.backward_scores)
    n, m = len(f), len(b)
    target, forward = _best_of_all(near.forward_scores, near.forward_indices, f, b, margin)
    source, backward = _best_of_all(near.backward_scores, near.backward_indices, b, f, margin)
    if retrieval == "fwd":
        return Pairs(np.arange(n), target, forward)
    if retrieval == "bwd":
        return Pairs(source, np.arange(m), backward)
    if retrieval == "intersect":
        mutual = source[target] == np.arange(n)
        return Pairs(np.arange(n)[mutual], target[mutual], forward[mutual])
    others = np.flatnonzero(target[source] != np.arange(m))  # a pair that is best both ways is there already
    pooled = Pairs(np.append(np.arange(n), source[others]), np.append(target, others), np.append(forward, backward[others]))
    ranked = pooled.ranked()
    return _greedy(ranked.take(slice(np.count_nonzero(ranked.scores > 0))))
