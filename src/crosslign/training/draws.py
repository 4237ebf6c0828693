"""Random draws of a training, and which examples each step sees: functions of the seed, of what is drawn, and of the step alone.

A run that was killed at any step needs no saved generator to go on as if nothing had happened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

WINDOW = 64
"""Batches among which rows are sorted by length, when they are grouped by length."""

RowNumbers = NDArray[np.int64]


def derive(seed: int, *names: str | int) -> int:
    """Return a 63-bit seed for one purpose, such as `derive(42, "order", "verses", 3)`."""
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def numpy_generator(seed: int, *names: str | int) -> np.random.Generator:
    """Return NumPy's generator for one purpose."""
    return np.random.Generator(np.random.PCG64(derive(seed, *names)))


def torch_generator(seed: int, *names: str | int) -> torch.Generator:
    """Return a CPU generator of torch for one purpose."""
    return torch.Generator().manual_seed(derive(seed, *names))


def seed_device(device: torch.device, seed: int) -> None:
    """Seed the generators that operations on a device draw from, its own and the CPU's.

    `torch.manual_seed` does that for every kind of device that could be there, which takes a millisecond.
    """
    if device.type not in ("cpu", "cuda"):
        torch.manual_seed(seed)
        return
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)


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
        tokens: budget of a batch, its rows times the tokens of its longest one; needs `lengths`. Then all rows are sorted by
            length, those of equal length in random order, and cut into batches of at most `batch` rows within the budget (at
            least one), the same cuts in every epoch; the batches are shuffled.

    Attributes:
        steps_per_epoch: batches of one epoch.
    """

    name: str
    rows: int
    batch: int
    seed: int
    lengths: NDArray[np.int64] | None = None
    groups: Sequence[str] | None = None
    tokens: int | None = None
    _epoch: int = field(default=-1, init=False)
    _order: NDArray[np.signedinteger] = field(default_factory=lambda: np.empty(0, np.int64), init=False)
    _starts: RowNumbers = field(default_factory=lambda: np.empty(0, np.int64), init=False)

    def __post_init__(self) -> None:
        """Find the units that batches are made of, rows or questions, and where batches begin."""
        self._questions: list[RowNumbers] | None = None
        self._units, self._unit_lengths, size = self.rows, self.lengths, self.batch
        self._unit_rows = np.ones(0, np.int64)
        if self.groups is not None:
            codes = np.unique(np.asarray(self.groups), return_inverse=True)[1]
            found = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
            self._questions, self._units = found, len(found)
            self._unit_rows = np.fromiter((len(rows) for rows in found), np.int64, len(found))
            size = max(1, self.batch // int(self._unit_rows.max()))
            if self.lengths is not None:
                self._unit_lengths = np.array([self.lengths[rows].max() for rows in found])
        self._size, self._cuts = size, np.arange(0, self._units, size, dtype=np.int64)
        if self.tokens is not None and self._unit_lengths is not None:
            self._cuts = self._cuts_by_tokens(self.tokens, self._unit_lengths)
        self.steps_per_epoch = len(self._cuts)

    def _cuts_by_tokens(self, budget: int, lengths: NDArray[np.int64]) -> RowNumbers:
        """Return where batches begin in the units sorted by length and rows; equal in all epochs, whose ties alone differ."""
        order = np.lexsort((self._unit_rows, lengths)) if len(self._unit_rows) else np.argsort(lengths, kind="stable")
        sizes = self._unit_rows[order] if len(self._unit_rows) else np.ones(len(order), np.int64)
        longest, starts, start = lengths[order], [], 0
        while start < len(order):
            starts.append(start)
            rows = np.cumsum(sizes[start : start + self.batch])
            fits = (rows <= self.batch) & (rows * longest[start : start + self.batch] <= budget)
            start += max(1, len(fits) if fits.all() else int(fits.argmin()))
        return np.array(starts, dtype=np.int64)

    def _begin(self, epoch: int) -> None:
        """Draw the epoch's order of the units, and where its batches begin."""
        draw = numpy_generator(self.seed, "order", self.name, epoch)
        width = np.int32 if self._units < 1 << 31 else np.int64  # half of the memory, the same draws
        order: NDArray[np.signedinteger] = np.arange(self._units, dtype=width)
        draw.shuffle(order)
        self._epoch, self._order, self._starts = epoch, order, np.append(self._cuts, self._units)
        if self._unit_lengths is None:
            return
        if self.tokens is None:
            self._order = self._by_windows(order, self._unit_lengths, draw)
            return
        keys = [self._unit_lengths[order]]
        if len(self._unit_rows):
            keys.insert(0, self._unit_rows[order])
        batches = np.split(order[np.lexsort(keys)], self._cuts[1:])
        batches = [batches[i] for i in draw.permutation(len(batches))]
        self._order = np.concatenate(batches)
        self._starts = np.cumsum([0, *(len(batch) for batch in batches)])

    def _by_windows(
        self, order: NDArray[np.signedinteger], lengths: NDArray[np.int64], draw: np.random.Generator
    ) -> NDArray[np.signedinteger]:
        size = self._size
        windows = [order[i : i + WINDOW * size] for i in range(0, self._units, WINDOW * size)]
        order = np.concatenate([part[np.argsort(lengths[part], kind="stable")] for part in windows])
        full = self._units // size  # an incomplete batch stays last, so that its number finds every other batch
        blocks = order[: full * size].reshape(full, size)[draw.permutation(full)]
        return np.concatenate([blocks.reshape(-1), order[full * size :]])

    def at(self, step: int) -> RowNumbers:
        """Return the row numbers of the batch at a step (from 0)."""
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._begin(epoch)
        units = self._order[self._starts[place] : self._starts[place + 1]].astype(np.int64)
        return units if self._questions is None else np.concatenate([self._questions[unit] for unit in units])
