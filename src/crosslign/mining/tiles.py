"""Candidates from low-precision tiles, with a proof that none of the best is missed.

An entry of a tile is t, the accumulated product of two copies, rounded to the tile's type, and |t + shift - score| <= bound (`copies`).
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

from crosslign.mining.copies import UNIT_ROUNDOFF
from crosslign.mining.ranking import EMPTY, key_scores, listed_scores, merge, order_in_groups, ranks_in_groups, to_keys
from crosslign.mining.side import Side, exact_scores
from crosslign.mining.sizes import SIZES
from crosslign.vectors import blocks

WIDTH = 16
"""Entries of a tile that share one maximum."""
PENDING = 1 << 22
PENDING_PER_NEIGHBOUR = 2
"""Candidates that wait for re-scoring before they are re-scored early: at least so many, and so many for each place of the best lists."""


class BoundExceededError(Exception):
    """A device's product differs from the exact one by more than the proven bound."""


class Direction:
    """Running best lists of the rows of one side, fed by tiles.

    Args:
        own, other: the side whose rows have the lists, and the one that they search.
        bounds: float64 [n], see `copies.error_bounds`.
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
