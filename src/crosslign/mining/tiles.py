"""Candidates from low-precision tiles, with a proof that none of the best is missed.

The order of candidates is: higher score first, then lower index, as one int64 key; running best lists are made of such keys.

An entry of a tile is t, the accumulated product of two copies, rounded to the tile's type, and |t + shift - score| <= bound (`side`).
Hence

- if floor is the k-th best score of a row so far, a pair that is as good has t >= floor - shift - bound, and, as rounding is monotone,
  its tile entry is at least this number rounded to the tile's type: entries below that threshold are dropped, all others are candidates;
- the k-th largest entry of a row, less half a unit of its last place, less bound, plus shift, is a floor even before anything is re-scored.

Candidates are re-scored exactly. Each re-scored pair checks the bound; should a device break it, `BoundExceededError` makes the caller
start again in a more precise type.
"""

from __future__ import annotations

import torch
from torch import Tensor

from crosslign.mining.side import SIZES, UNIT_ROUNDOFF, Side, exact_scores
from crosslign.vectors import blocks

WIDTH = 16
"""Entries of a tile that share one maximum."""
PENDING = 1 << 22
PENDING_PER_NEIGHBOUR = 2
"""Candidates that wait for re-scoring before they are re-scored early: at least so many, and so many for each place of the best lists."""
EMPTY = torch.iinfo(torch.int64).min
_INDEX_BITS, _INDEX_MASK, _MAGNITUDE = 32, 0xFFFFFFFF, 0x7FFFFFFF


def to_keys(scores: Tensor, indices: Tensor) -> Tensor:
    """Return int64 keys of which the larger one is the better candidate.

    Args:
        scores: float32, no NaN and no -0.0.
        indices: int64 in [0, 2^32); of equal scores the lower index has the larger key. Broadcast against `scores`.
    """
    bits = scores.contiguous().view(torch.int32)
    # The bits of negative floats count downwards; turning their magnitude makes integer order equal float order.
    ordered = torch.where(bits < 0, bits ^ _MAGNITUDE, bits).long()
    return (ordered << _INDEX_BITS) + (_INDEX_MASK - indices)


def key_scores(keys: Tensor) -> Tensor:
    """Return the float32 scores of keys; an `EMPTY` key gives -inf."""
    ordered = (keys >> _INDEX_BITS).int()
    scores = torch.where(ordered < 0, ordered ^ _MAGNITUDE, ordered).view(torch.float32)
    return scores.masked_fill(keys == EMPTY, -torch.inf)


def key_indices(keys: Tensor) -> Tensor:
    """Return the int64 indices of keys."""
    return _INDEX_MASK - (keys & _INDEX_MASK)


def listed_scores(lists: Tensor, indices: Tensor) -> Tensor:
    """Return the score that each index has in its list of keys, -inf where it does not stand there: int64 [n, k] and [n] to float32 [n]."""
    found = key_indices(lists) == indices[:, None]
    return key_scores(lists).masked_fill(~found, -torch.inf).amax(1)


def ranks_in_groups(groups: Tensor) -> Tensor:
    """Return each element's position within its group; `groups` int64 [n], equal groups adjacent."""
    if not len(groups):
        return groups
    _, counts = torch.unique_consecutive(groups, return_counts=True)
    starts = counts.cumsum(0) - counts
    # Where the length is given, a GPU need not be waited for.
    return torch.arange(len(groups), device=groups.device) - torch.repeat_interleave(starts, counts, output_size=len(groups))


def order_in_groups(groups: Tensor, values: Tensor) -> Tensor:
    """Return the order that sorts by group, then by value from large to small."""
    by_value = values.argsort(descending=True, stable=True)
    return by_value[groups[by_value].argsort(stable=True)]


def merge(best: Tensor, groups: Tensor, keys: Tensor) -> None:
    """Enter candidates into running best lists, in place.

    Args:
        best: int64 [n, k], keys from large to small, `EMPTY` where there is none yet.
        groups: int64 [c], the list that each candidate belongs to; from small to large.
        keys: int64 [c], no key twice in a group.
    """
    if not len(groups):
        return
    k = best.shape[1]
    rank = ranks_in_groups(groups)
    if int(rank.max()) >= k:  # only the best k of a group can enter
        keys = keys[order_in_groups(groups, keys)]
    kept = rank < k
    touched, row = torch.unique_consecutive(groups, return_inverse=True)
    fresh = torch.full((len(touched), k), EMPTY, device=best.device)
    fresh[row[kept], rank[kept]] = keys[kept]
    best[touched] = torch.cat([best[touched], fresh], 1).topk(k).values


class BoundExceededError(Exception):
    """A device's product differs from the exact one by more than the proven bound."""


class Direction:
    """Running best lists of the rows of one side, fed by tiles.

    Args:
        own, other: the side whose rows have the lists, and the one that they search.
        bounds: float64 [n], see `side.error_bounds`.
        shift: what a tile's entries lack to the cosines.
        k: length of the lists; 0 where nobody wants them: no entry of a tile is a candidate then.
        dtype: type of the tiles.
        first: number of the first row within `own`.
        lists: int64 [rows of `other`, any], their own best lists: a pair that stands there has its exact score and is not scored again.

    Attributes:
        best: int64 [n, k], keys of what is scored exactly so far, best first.
    """

    def __init__(
        self,
        own: Side,
        other: Side,
        bounds: Tensor,
        shift: float,
        k: int,
        dtype: torch.dtype,
        first: int = 0,
        lists: Tensor | None = None,
    ) -> None:
        self._own, self._other, self._first, self._lists = own, other, first, lists
        n, device = len(bounds), bounds.device
        self.k, self.dtype, self.bounds, self.shift = k, dtype, bounds, shift
        self.best = torch.full((n, k), EMPTY, device=device)
        self._largest = torch.full((n, k), -torch.inf, dtype=dtype, device=device)
        self._floor = torch.full((n,), -torch.inf, dtype=torch.float64, device=device)
        # No threshold is as low as an entry of -inf, which is padding.
        self._lowest = torch.finfo(dtype).min
        self.thresholds = torch.full((n,), self._lowest if k else torch.inf, dtype=dtype, device=device)
        self._pending: list[tuple[Tensor, Tensor, Tensor]] = []
        self._pruned = 0
        self._sizes = SIZES[device.type]

    def _raise(self, at: slice, floors: Tensor) -> None:
        self._floor[at] = torch.maximum(self._floor[at], floors)
        self.thresholds[at] = (self._floor[at] - self.shift - self.bounds[at]).to(self.dtype).clamp_(min=self._lowest)

    def see_maxima(self, at: slice, maxima: Tensor) -> None:
        """Raise the floors of some rows by maxima of disjoint blocks of a new tile: [rows, blocks]."""
        if not self.k:
            return
        # Maxima of larger blocks, at least four for each place of a list, give nearly the same floor, for a small part of the selection.
        number, fold = maxima.shape[1], 1
        while number // (4 * fold) >= 4 * self.k:
            fold *= 4
        whole = number - number % fold
        folded = maxima[:, :whole].view(len(maxima), fold, -1).amax(1)
        largest = torch.cat([self._largest[at], folded, maxima[:, whole:]], 1).topk(self.k, 1).values
        self._largest[at] = largest
        last = largest[:, -1].double()
        self._raise(at, last + self.shift - torch.where(last.isinf(), 0.0, last.abs() * UNIT_ROUNDOFF[self.dtype] + self.bounds[at]))

    def propose(self, rows: Tensor, others: Tensor, entries: Tensor) -> None:
        """Keep candidate pairs (own row, row of the other side, tile entry) until they are re-scored."""
        self._pending.append((rows, others, entries))

    def enter(self, at: slice, keys: Tensor) -> None:
        """Enter exact keys of a dense block: int64 [rows, candidates]."""
        if not self.k:
            return
        self.best[at] = torch.cat([self.best[at], keys], 1).topk(self.k, 1).values
        self._raise(at, key_scores(self.best[at, -1]).double())

    def crowded(self) -> bool:
        """Tell whether so many candidates wait that they should be re-scored now; drops those that fell below their thresholds."""
        waiting = sum(len(rows) for rows, _, _ in self._pending)
        limit = max(PENDING, PENDING_PER_NEIGHBOUR * self.best.numel())
        if waiting <= 2 * self._pruned + limit // 4:
            return False
        self._pending = [self._take()]
        self._pruned = len(self._pending[0][0])
        return self._pruned > limit

    def _take(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return what waits, without those that fell below their thresholds."""
        rows, others, entries = (torch.cat(parts) for parts in zip(*self._pending, strict=True))
        self._pending = []
        kept = _where(entries >= self.thresholds[rows])
        return rows[kept], others[kept], entries[kept]

    def resolve(self) -> None:
        """Re-score what waits and enter it."""
        if not self.k or not self._pending:
            return
        rows, others, entries = self._take()
        order = order_in_groups(rows, entries)
        rows, others, entries = rows[order], others[order], entries[order]
        # The k largest entries of each row are nearly always the answer; once they are exact, few others can still be better.
        leads = ranks_in_groups(rows) < self.k
        leading, following = _where(leads), _where(~leads)
        self._score(rows[leading], others[leading], entries[leading])
        open_ = following[_where(entries[following] >= self.thresholds[rows[following]])]
        self._score(rows[open_], others[open_], entries[open_])
        self._pruned = 0

    def _score(self, rows: Tensor, others: Tensor, entries: Tensor) -> None:
        scores = torch.full((len(rows),), -torch.inf, device=rows.device)
        if self._lists is not None:
            for at in blocks(len(rows), max(1, self._sizes.looked_up // self._lists.shape[1])):
                scores[at] = listed_scores(self._lists[others[at]], rows[at])
        missing = _where(scores.isneginf())
        for at in blocks(len(missing), self._sizes.scored):
            pairs = missing[at]
            scores[pairs] = exact_scores(self._own.grid(rows[pairs] + self._first), self._other.grid(others[pairs]))
        wide = entries.double()
        if ((wide + self.shift - scores.double()).abs() > self.bounds[rows] + wide.abs() * UNIT_ROUNDOFF[self.dtype]).any():
            raise BoundExceededError
        merge(self.best, rows, to_keys(scores, others))
        self._raise(slice(None), key_scores(self.best[:, -1]).double())


def _where(mask: Tensor) -> Tensor:
    # One wait for the device; a mask as an index makes it wait for each tensor that is indexed.
    return mask.nonzero()[:, 0]
