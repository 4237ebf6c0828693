"""What scorers return, and bootstrap intervals over items."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from crosslign.tasks.records import ROUNDING, ThresholdFrom
from crosslign.vectors import blocks

RESAMPLES = 10_000
"""Resamples of a scorer: with 1,000, p-values near 0.05 depend on the seed (their standard error is 0.007 there, of 10,000 0.002)."""
_CHUNK = 1 << 21
"""Counts that are held as float64 at once."""
_KEPT = 1 << 24
"""Counts of all resamples, a byte each, up to which these are kept: a hundred languages of a thousand items each have the same ones."""
MOST = 8192
"""Units that are drawn one by one. More are drawn in BUNDLES bundles of units picked at random, alike for every system: the interval is as
wide but for a share of 1 / sqrt(2 BUNDLES), 1 %, and a set of half a million sentences takes a second."""
BUNDLES = 4096
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

    Draws depend on the task and the number of units, never on a system's outcomes: resample i of two systems holds the same items, so
    that their difference can be tested in pairs (`crosslign.reporting.significance`). Nor do they depend on the subset, metric, protocol
    or direction: resample i of two languages with the same items in translation (XNLI, FLORES) holds the same items, and the interval of
    their average is as wide as it must be. Subsets of equal size that share nothing lose nothing by that: which positions are drawn says
    nothing of their outcomes.

    A unit is an item, or all items of a cluster where the set has some (`over`): questions of one paragraph, sentences of one document.

    Args:
        task: task id; with the number of units it seeds a generator.
        resamples: how many; 0 for none, and every method then returns None.
        seed: of all draws.
        clusters: int32 cluster of each item, from 0 without gaps, as bytes; empty where each item is a unit of its own.
    """

    task: str
    resamples: int
    seed: int
    clusters: bytes = b""

    def over(self, clusters: Sequence[str | None]) -> Bootstrap:
        """Return the same for items of these clusters, in their order; an item without one is a unit of its own."""
        if not any(clusters):
            return replace(self, clusters=b"")
        number: dict[object, int] = {}
        codes = [number.setdefault(cluster if cluster else at, len(number)) for at, cluster in enumerate(clusters)]
        return replace(self, clusters=np.array(codes, dtype=np.int32).tobytes())

    def _unit_of(self, n: int) -> np.ndarray:
        """Return the unit of each item, as many as are drawn from: int [n]."""
        units = np.frombuffer(self.clusters, np.int32) if self.clusters else np.arange(n, dtype=np.int32)
        number = int(units.max(initial=-1)) + 1
        return units if number <= MOST else _bundles(self.seed, number)[units]

    def _drawn(self, number: int) -> Iterator[np.ndarray]:
        kept = self.resamples * number <= _KEPT
        return (
            iter(_kept_counts(self.task, self.resamples, self.seed, number))
            if kept
            else _counts(self.task, self.resamples, self.seed, number)
        )

    def counts(self, n: int) -> Iterator[np.ndarray]:
        """Yield blocks of resamples of n items as how often each item is drawn: float64 [block, n]."""
        if self.resamples and n:
            units = self._unit_of(n)
            for drawn in self._drawn(int(units.max()) + 1):
                for at in blocks(len(drawn), max(1, _CHUNK // n)):
                    yield drawn[at][:, units].astype(np.float64)

    def means(self, values: np.ndarray) -> np.ndarray | None:
        """Return the means of several values an item in each resample.

        Args:
            values: [n, c]; items of parallel subsets stand in the same order.

        Returns:
            float64 [resamples, c], or None.
        """
        values = np.asarray(values, dtype=np.float64)
        if not self.resamples or not len(values):
            return None
        units = self._unit_of(len(values))
        number = int(units.max()) + 1
        sums, sizes = np.zeros((number, values.shape[1])), np.bincount(units, minlength=number).astype(np.float64)
        np.add.at(sums, units, values)
        parts = []
        for drawn in self._drawn(number):
            for at in blocks(len(drawn), max(1, _CHUNK // number)):
                times = drawn[at].astype(np.float64)
                parts.append((times @ sums) / (times @ sizes)[:, None])
        return np.concatenate(parts)

    def mean(self, values: np.ndarray) -> np.ndarray | None:
        """Return the mean of one value an item in each resample: float64 [resamples]."""
        found = self.means(np.asarray(values)[:, None])
        return None if found is None else found[:, 0]


@lru_cache(maxsize=4)
def _bundles(seed: int, number: int) -> np.ndarray:
    """Return the bundle of each of many units: int32, as many in each as can be."""
    return (np.random.default_rng([seed, number]).permutation(number) % BUNDLES).astype(np.int32)


def _counts(task: str, resamples: int, seed: int, number: int) -> Iterator[np.ndarray]:
    """Yield blocks of resamples as how often each of so many units is drawn: uint8 [block, number]."""
    # The number of units is part of the seed: with one seed alone, draws from two numbers of them would rise and fall together.
    rng = np.random.default_rng([seed, zlib.crc32(task.encode()), number])
    for block in blocks(resamples if number else 0, max(1, _CHUNK // max(1, number))):
        rows = block.stop - block.start
        draw = rng.integers(0, number, (rows, number), dtype=np.int32)
        draw += (np.arange(rows, dtype=np.int32) * number)[:, None]
        yield np.bincount(draw.ravel(), minlength=rows * number).reshape(rows, number).astype(np.uint8)


@lru_cache(maxsize=6)
def _kept_counts(task: str, resamples: int, seed: int, number: int) -> tuple[np.ndarray, ...]:
    found = tuple(_counts(task, resamples, seed, number))
    for block in found:
        block.flags.writeable = False
    return found


def summed(times: np.ndarray, classes: np.ndarray, number: int) -> np.ndarray:
    """Return the sums of columns [r, q] by their class; classes from `number` on are left out: float64 [r, number]."""
    from scipy.sparse import csr_array  # its import takes 0.2 s, and tables need none of it

    kept = np.flatnonzero(classes < number)
    member_of = csr_array((np.ones(len(kept)), (classes[kept], kept)), shape=(number, times.shape[1]))
    return np.ascontiguousarray((member_of @ times.T).T)


def nearest_item_scores(gold: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return accuracy and the F1, precision and recall of classes weighted by their gold frequency, as MTEB does for BUCC.

    Args:
        gold, predicted: int64 [q], corpus index of each query's partner and of its nearest neighbour.
    """
    return {metric: float(values[0]) for metric, values in _item_scores(gold, predicted, np.ones((1, len(gold)))).items()}


def resampled_item_scores(gold: np.ndarray, predicted: np.ndarray, bootstrap: Bootstrap) -> dict[str, np.ndarray]:
    """Return the same on resamples of the queries: float64 [r] each; nothing where there are no resamples."""
    found = [_item_scores(gold, predicted, times) for times in bootstrap.counts(len(gold))]
    return {metric: np.concatenate([block[metric] for block in found]) for metric in found[0]} if found else {}


def _item_scores(gold: np.ndarray, predicted: np.ndarray, times: np.ndarray) -> dict[str, np.ndarray]:
    """Return the scores of queries that count so many times in each resample, float64 [r, q]: float64 [r] each."""
    items, own = np.unique(gold, return_inverse=True)
    place = np.searchsorted(items, predicted).clip(max=len(items) - 1)
    found = np.where(items[place] == predicted, place, len(items))  # an item that is nobody's partner has no weight
    support, chosen = summed(times, own, len(items)), summed(times, found, len(items))
    hits = summed(times, np.where(found == own, own, len(items)), len(items))
    queries = times.sum(1)

    def weighted(above: np.ndarray, below: np.ndarray) -> np.ndarray:
        shares = above / np.maximum(below, 1.0)  # of counts: where there are none below, there are none above
        return np.asarray((support * shares).sum(1) / queries)

    return {
        "accuracy": hits.sum(1) / queries,
        "weighted_f1": weighted(2.0 * hits, chosen + support),
        "weighted_precision": weighted(hits, chosen),
        "weighted_recall": weighted(hits, support),
    }


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
