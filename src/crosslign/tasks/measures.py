"""What scorers return, and bootstrap intervals over items."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from crosslign.tasks.records import ROUNDING
from crosslign.vectors import blocks

ThresholdFrom = Literal["dev", "train", "same_gold", "none"]


_CHUNK = 1 << 22
"""Items that are drawn at once."""
_KEPT = 1 << 20
"""Items of all resamples up to which these are kept: a hundred languages of a thousand items each draw the same ones."""
ONE_SIDED = 0.025
"""Share of the resamples that each end of a 95 % interval leaves out."""


@dataclass(frozen=True)
class Measure:
    """One metric of one subset, before averages are made.

    Attributes:
        subset, metric, direction, protocol, n_items, threshold, threshold_from: as in `Record`.
        value: a fraction; None or NaN where it is undefined, and then `reason` says why.
        resamples: float64 [r], the metric on bootstrap resamples of the items, or None; NaN where a resample leaves it undefined.
        collapsed: why the value means nothing although it is defined, such as one prediction for all items.
        note: what else a table is to say of the value, such as the sentence that was found.
    """

    subset: str
    metric: str
    value: float | None
    n_items: int
    direction: str = ""
    protocol: str = ""
    threshold: float | None = None
    threshold_from: ThresholdFrom = "none"
    reason: str = ""
    resamples: np.ndarray | None = None
    collapsed: str = ""
    note: str = ""

    @property
    def defined(self) -> bool:
        """Whether there is a value."""
        return self.value is not None and not np.isnan(self.value)


@dataclass(frozen=True)
class Bootstrap:
    """Resamples of the items of one task.

    Draws depend on the task, the names and the number of items, never on a system's outcomes: resample i of two systems holds the same
    items, so that their difference can be tested in pairs (`crosslign.reporting.significance`). Nor do they depend on the subset:
    resample i of two languages with the same items in translation (XNLI, FLORES) holds the same items, and the interval of their average
    is as wide as it must be. Subsets of equal size that share nothing lose nothing by that: which positions are drawn says nothing of
    their outcomes.

    Args:
        task: task id; with the names given to each method, such as protocol and direction, and the number of items, it seeds a generator,
            so that no metric's draws depend on which others are computed.
        resamples: how many; 0 for none, and every method then returns None.
        seed: of all draws.
    """

    task: str
    resamples: int
    seed: int

    def draws(self, n: int, *names: str) -> Iterator[np.ndarray]:
        """Yield blocks of resamples of n items: int32 [block, n], positions drawn with replacement."""
        return iter(_kept_draws(self, n, names)) if self._is_kept(n) else _draws(self, n, names)

    def counts(self, n: int, *names: str) -> Iterator[np.ndarray]:
        """Yield the same blocks as how often each item is drawn: float64 [block, n]."""
        return iter(_kept_counts(self, n, names)) if self._is_kept(n) else map(_counts, _draws(self, n, names))

    def _is_kept(self, n: int) -> bool:
        return self.resamples * n <= _KEPT

    def means(self, values: np.ndarray, *names: str) -> np.ndarray | None:
        """Return the means of several values an item in each resample.

        Args:
            values: [n, c]; items of parallel subsets stand in the same order.
            names: of the draws, never the subset.

        Returns:
            float64 [resamples, c], or None.
        """
        n, values = len(values), np.asarray(values, dtype=np.float64)
        parts = [times @ values for times in self.counts(n, *names)]
        return np.concatenate(parts) / n if parts else None

    def mean(self, values: np.ndarray, *names: str) -> np.ndarray | None:
        """Return the mean of one value an item in each resample: float64 [resamples]."""
        found = self.means(np.asarray(values)[:, None], *names)
        return None if found is None else found[:, 0]


def _draws(bootstrap: Bootstrap, n: int, names: tuple[str, ...]) -> Iterator[np.ndarray]:
    # The number of items is part of the seed: with one seed alone, draws from two numbers of items would rise and fall together.
    rng = np.random.default_rng([bootstrap.seed, zlib.crc32("\x1f".join([bootstrap.task, *names]).encode()), n])
    for block in blocks(bootstrap.resamples if n else 0, max(1, _CHUNK // max(1, n))):
        yield rng.integers(0, n, (block.stop - block.start, n), dtype=np.int32)


def _counts(draw: np.ndarray) -> np.ndarray:
    resamples, n = draw.shape
    rows = np.arange(resamples, dtype=np.int64)[:, None] * n
    return np.bincount((draw + rows).ravel(), minlength=resamples * n).reshape(resamples, n).astype(np.float64)


def _kept(made: Iterable[np.ndarray]) -> tuple[np.ndarray, ...]:
    found = tuple(made)
    for block in found:
        block.flags.writeable = False
    return found


@lru_cache(maxsize=12)
def _kept_draws(bootstrap: Bootstrap, n: int, names: tuple[str, ...]) -> tuple[np.ndarray, ...]:
    return _kept(_draws(bootstrap, n, names))


@lru_cache(maxsize=12)
def _kept_counts(bootstrap: Bootstrap, n: int, names: tuple[str, ...]) -> tuple[np.ndarray, ...]:
    return _kept(map(_counts, _draws(bootstrap, n, names)))


def centred(resamples: np.ndarray | None, value: float, most: float = 1.0) -> np.ndarray | None:
    """Return resamples of a score in 0 ... `most`, shifted so that their mean is its value.

    What is drawn twice makes a maximum, or a share among few, look better than it is: the resamples of a purity or a weighted F1 lie above
    the score, and their interval might leave it out.
    """
    return None if resamples is None else np.clip(resamples + (value - np.nanmean(resamples)), 0.0, most)


def interval(resamples: np.ndarray | None, share_of: int = 0) -> tuple[float | None, float | None]:
    """Return the 95 % percentile interval, or (None, None) where fewer than half of the resamples are defined.

    Args:
        resamples: values on bootstrap resamples, or None.
        share_of: number of items that the score is a share of, in 0 ... 1; 0 for any other score. Where all items are right, or all
            wrong, they are so in every resample, and these would claim certainty: the interval then ends where the exact one of a share
            does (Clopper and Pearson, 1934), at 0.025^(1/n) below 1, or as far above 0.
    """
    if resamples is None:
        return None, None
    defined = resamples[~np.isnan(resamples)]
    if 2 * len(defined) < len(resamples):
        return None, None
    low, high = (float(end) for end in np.quantile(defined, [ONE_SIDED, 1 - ONE_SIDED]))
    if share_of and np.ptp(defined) < ROUNDING and min(abs(low), abs(1 - low)) < ROUNDING:
        least = float(ONE_SIDED ** (1 / share_of))
        return (0.0, 1 - least) if low < ROUNDING else (least, 1.0)
    return low, high
