"""Which examples each step sees: a permutation per epoch, from seed and epoch alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

import numpy as np
from numpy.typing import NDArray

from crosslign.training.seeds import numpy_generator

WINDOW = 64
"""Batches among which rows are sorted by length, when they are grouped by length."""

Rows = NDArray[np.int64]


@dataclass
class Order:
    """Batches of one training set.

    Args:
        name: id of the training set; two sets of one run have their own orders.
        rows: number of examples.
        batch: examples a step; the last batch of an epoch may be smaller, and is kept.
        seed: seed of the run.
        lengths: tokens of each example, to put examples of like length into one batch (windows of `WINDOW` batches are
            sorted, and the batches shuffled); None for plain permutations.
    """

    name: str
    rows: int
    batch: int
    seed: int
    lengths: NDArray[np.int64] | None = None
    _epoch: int = field(default=-1, init=False)
    _batches: Rows = field(default_factory=lambda: np.empty(0, np.int64), init=False)

    @property
    def steps_per_epoch(self) -> int:
        """Batches of one epoch."""
        return ceil(self.rows / self.batch)

    def _permutation(self, epoch: int) -> Rows:
        draw = numpy_generator(self.seed, "order", self.name, epoch)
        order = draw.permutation(self.rows)
        if self.lengths is None:
            return order
        window = WINDOW * self.batch
        windows = [order[i : i + window] for i in range(0, self.rows, window)]
        order = np.concatenate([part[np.argsort(self.lengths[part], kind="stable")] for part in windows])
        full = self.rows // self.batch  # an incomplete batch stays last, so that `batch` finds every other by its number
        blocks = order[: full * self.batch].reshape(full, self.batch)[draw.permutation(full)]
        return np.concatenate([blocks.reshape(-1), order[full * self.batch :]])

    def at(self, step: int) -> Rows:
        """Return the row numbers of the batch at a step (from 0)."""
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._permutation(epoch)
        return self._batches[place * self.batch : (place + 1) * self.batch]
