"""Which examples each step sees: a permutation per epoch, from seed and epoch alone."""

from __future__ import annotations

from collections.abc import Sequence
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
        groups: what the rows of one question share, where batches must hold whole questions: then as many questions go into
            a batch as fit if all were as large as the largest, at least one. None where each row stands alone.

    Attributes:
        units: rows, or questions; `units_per_batch` of them make a batch.
    """

    name: str
    rows: int
    batch: int
    seed: int
    lengths: NDArray[np.int64] | None = None
    groups: Sequence[str] | None = None
    _epoch: int = field(default=-1, init=False)
    _batches: Rows = field(default_factory=lambda: np.empty(0, np.int64), init=False)

    def __post_init__(self) -> None:
        """Find the questions, and how many of them make a batch."""
        self._questions: list[Rows] | None = None
        self.units, self.units_per_batch, self._unit_lengths = self.rows, self.batch, self.lengths
        if self.groups is not None:
            codes = np.unique(np.asarray(self.groups), return_inverse=True)[1]
            found = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
            self._questions, self.units = found, len(found)
            self.units_per_batch = max(1, self.batch // max(len(rows) for rows in found))
            if self.lengths is not None:
                self._unit_lengths = np.array([self.lengths[rows].max() for rows in found])

    @property
    def steps_per_epoch(self) -> int:
        """Batches of one epoch."""
        return ceil(self.units / self.units_per_batch)

    def _permutation(self, epoch: int) -> Rows:
        """Return an order of the rows, or of the questions."""
        draw = numpy_generator(self.seed, "order", self.name, epoch)
        order = draw.permutation(self.units)
        if self._unit_lengths is None:
            return order
        lengths, size = self._unit_lengths, self.units_per_batch
        windows = [order[i : i + WINDOW * size] for i in range(0, self.units, WINDOW * size)]
        order = np.concatenate([part[np.argsort(lengths[part], kind="stable")] for part in windows])
        full = self.units // size  # an incomplete batch stays last, so that its number finds every other batch
        blocks = order[: full * size].reshape(full, size)[draw.permutation(full)]
        return np.concatenate([blocks.reshape(-1), order[full * size :]])

    def at(self, step: int) -> Rows:
        """Return the row numbers of the batch at a step (from 0)."""
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._permutation(epoch)
        units = self._batches[place * self.units_per_batch : (place + 1) * self.units_per_batch]
        return units if self._questions is None else np.concatenate([self._questions[unit] for unit in units])
