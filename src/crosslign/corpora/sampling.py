"""Draws that depend on a seed and a name alone, never on the order in which rows arrive."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import xxhash
from numpy.typing import NDArray


def priorities(keys: Sequence[str], seed: int) -> NDArray[np.uint64]:
    """Return one pseudo-random uint64 a key: equal for equal (key, seed), whatever stands around it."""
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(key.encode("utf-8", "surrogatepass"), seed) for key in keys), np.uint64, len(keys))


def sample(keys: Sequence[str], size: int, seed: int) -> NDArray[np.int64]:
    """Return the positions, ascending, of `size` keys drawn without replacement; all where there are fewer.

    The keys of least priority are taken, so a smaller sample is part of every larger one of the same seed
    (PROTOCOLS A.2.2 asks this of the 10 k … 5 M series).
    """
    chosen = np.argsort(priorities(keys, seed), kind="stable")[:size]
    return np.sort(chosen)


class Lowest:
    """The least of many priorities that come batch by batch, in memory for a few times as many as are wanted.

    Args:
        size: how many are wanted, at least 1.

    Attributes:
        bound: no wanted priority is above it; it falls as batches come.
    """

    def __init__(self, size: int) -> None:
        self.size = max(size, 1)
        self.bound = np.uint64(np.iinfo(np.uint64).max)
        self._held = np.empty(0, np.uint64)

    def add(self, values: NDArray[np.uint64]) -> None:
        """Add priorities, shape [n]; those above the bound may be left out."""
        self._held = np.concatenate([self._held, values])
        if len(self._held) > 2 * self.size + 65_536:
            self.final()

    def final(self) -> np.uint64:
        """Return the greatest wanted priority of those that came."""
        if len(self._held) > self.size:
            self._held = np.partition(self._held, self.size - 1)[: self.size]
            self.bound = self._held.max()
        return self.bound


def generator(seed: int, *names: str) -> random.Random:
    """Return a generator of its own for one named thing (a row, a group)."""
    return random.Random(xxhash.xxh3_64_intdigest("\x1f".join(names).encode("utf-8", "surrogatepass"), seed))
