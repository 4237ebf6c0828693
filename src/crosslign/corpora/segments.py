"""Sorted keys in numpy arrays, added batch by batch: 16 to 24 bytes a key where a dictionary takes a hundred."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class SortedKeys:
    """A multimap from keys to int64 values, kept as few sorted arrays that merge as they grow.

    An addition is merged with its neighbour once it is as large, so there are O(log n) arrays and each key
    is moved O(log n) times.

    Args:
        dtype: of the keys, such as uint64 or S16.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self._segments: list[tuple[NDArray[Any], NDArray[np.int64]]] = []

    def add(self, keys: NDArray[Any], values: NDArray[np.int64]) -> None:
        """Add keys (shape [n], any order, repeats allowed) with one value each."""
        if not len(keys):
            return
        self._segments.append(_sorted(keys.astype(self.dtype, copy=False), values))
        while len(self._segments) > 1 and len(self._segments[-2][0]) <= 2 * len(self._segments[-1][0]):
            (last, last_values), (before, before_values) = self._segments.pop(), self._segments.pop()
            self._segments.append(_sorted(np.concatenate([before, last]), np.concatenate([before_values, last_values])))

    def __len__(self) -> int:
        return sum(len(keys) for keys, _ in self._segments)

    def parts(self) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
        """Yield all keys with their values, in a few arrays."""
        yield from self._segments

    def find(self, keys: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (positions in `keys`, values), one pair a match, in no order that may be relied on."""
        positions, values = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for stored, stored_values in self._segments:
            left = np.searchsorted(stored, keys)
            matched = np.flatnonzero(stored[np.minimum(left, len(stored) - 1)] == keys)
            left = left[matched]
            counts = np.searchsorted(stored, keys[matched], "right") - left
            within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            positions.append(np.repeat(matched, counts))
            values.append(stored_values[np.repeat(left, counts) + within])
        return np.concatenate(positions), np.concatenate(values)


def _sorted(keys: NDArray[Any], values: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    order = np.argsort(keys, kind="stable")
    return keys[order], values[order]
