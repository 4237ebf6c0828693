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


def generator(seed: int, *names: str) -> random.Random:
    """Return a generator of its own for one named thing (a row, a group)."""
    return random.Random(xxhash.xxh3_64_intdigest("\x1f".join(names).encode("utf-8", "surrogatepass"), seed))
