"""What scorers return, and bootstrap intervals over items."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

ThresholdFrom = Literal["dev", "train", "same_gold", "none"]


@dataclass(frozen=True)
class Measure:
    """One metric of one subset, before averages are made.

    Attributes:
        subset, metric, direction, protocol, n_items, threshold, threshold_from: as in `Record`.
        value: a fraction; None or NaN where it is undefined, and then `reason` says why.
        resamples: float64 [r], the metric on bootstrap resamples of the items, or None; NaN where a resample leaves it undefined.
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

    @property
    def defined(self) -> bool:
        """Whether there is a value."""
        return self.value is not None and not np.isnan(self.value)


@dataclass(frozen=True)
class Bootstrap:
    """Resamples of the items of one task.

    Attributes:
        task: task id; with the names given to each method it seeds that metric's own generator, so that no metric's draws depend on
            which others are computed.
        resamples: how many; 0 for none, and every method then returns None.
        seed: of all draws.
    """

    task: str
    resamples: int
    seed: int

    def generator(self, *names: str) -> np.random.Generator:
        """Return the generator of one metric."""
        return np.random.default_rng([self.seed, zlib.crc32("\x1f".join([self.task, *names]).encode())])

    def counts(self, counts: np.ndarray, *names: str) -> np.ndarray | None:
        """Return how often each kind of item occurs in each resample: int64 [resamples, kinds], from its count in the sample.

        Drawing kinds by a multinomial equals drawing items with replacement, and costs no more for more items.
        """
        total = int(counts.sum())
        if not self.resamples or not total:
            return None
        return self.generator(*names).multinomial(total, counts / total, size=self.resamples)

    def mean(self, values: np.ndarray, *names: str) -> np.ndarray | None:
        """Return the mean of one value an item in each resample: float64 [resamples]."""
        distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
        drawn = self.counts(counts, *names)
        if drawn is None:
            return None
        means: np.ndarray = drawn @ distinct / len(values)
        return means


def interval(resamples: np.ndarray | None) -> tuple[float | None, float | None]:
    """Return the 95 % percentile interval, or (None, None) where fewer than half of the resamples are defined."""
    if resamples is None:
        return None, None
    defined = resamples[~np.isnan(resamples)]
    if 2 * len(defined) < len(resamples):
        return None, None
    low, high = np.percentile(defined, [2.5, 97.5])
    return float(low), float(high)
