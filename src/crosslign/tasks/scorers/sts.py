"""Correlation of cosines with graded similarity: STS12-16, STS-B, SICK-R, STS17, STS22, WMT21 QE (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np

from crosslign.errors import InputError
from crosslign.options import Natural, Schema
from crosslign.tasks import SCORERS
from crosslign.tasks.data import TaskData, members
from crosslign.tasks.measures import RESAMPLES, Bootstrap, Measure, summed
from crosslign.vectors import pair_cosines

METRICS = ("spearman", "pearson")
Pairs = tuple[np.ndarray, np.ndarray, list[str | None]]
"""Cosines, grades and clusters of the pairs of a subset."""


@SCORERS.register(version=2, gives={"spearman": (("", "{aggregation}"),), "pearson": (("", "{aggregation}"),)}, subsets_apart=True)
def sts(
    task: TaskData,
    *,
    aggregation: Annotated[Sequence[Literal["all", "wmean"]], Schema(uniqueItems=True)] = (),
    resamples: Natural = RESAMPLES,
    seed: Natural = 42,
) -> Iterator[Measure]:
    """Yield Spearman and Pearson correlation of each subset, and further aggregations of the task's named averages.

    The plain mean of the subsets is always made (as every named average is). `all` is one correlation over all their pairs together,
    `wmean` their mean weighted by numbers of pairs; both are records of the average's name with that protocol. Constant cosines or
    constant gold scores leave a correlation undefined.

    Args:
        aggregation: which of `all` and `wmean` to add.
        resamples: bootstrap resamples of the pairs for intervals; 0 for none.
        seed: of the bootstrap.
    """
    data = task.only_corpus()
    bootstrap = Bootstrap(task.name, resamples, seed)
    pairs: dict[str, Pairs] = {}
    for subset in data.subsets:
        left, right, first, second, gold = data.linked(subset)
        if np.isnan(gold).any():
            raise InputError(
                "a pair has no gold score", where=f"task {task.name!r}, subset {subset!r}", do="Remove such pairs in the reader"
            )
        cosines = pair_cosines(data.matrix, left.rows[first], right.rows[second]).astype(np.float64)
        pairs[subset] = cosines, gold, [left.clusters[at] for at in first]
    made = {}
    for subset, (cosines, gold, clusters) in pairs.items():
        for metric in METRICS:
            made[subset, metric] = _measure(subset, metric, "", cosines, gold, bootstrap.over(clusters))
    yield from made.values()
    for name in task.averages:
        wanted = members(task.averages, name, list(pairs))
        for metric in METRICS:
            if not set(wanted) <= set(pairs):
                missing = next(subset for subset in wanted if subset not in pairs)
                yield from (Measure(name, metric, None, 0, protocol=kind, reason=f"no subset {missing!r}") for kind in aggregation)
                continue
            if "all" in aggregation:
                cosines, gold = (np.concatenate([pairs[subset][side] for subset in wanted]) for side in (0, 1))
                clusters = [cluster and f"{subset}:{cluster}" for subset in wanted for cluster in pairs[subset][2]]
                yield _measure(name, metric, "all", cosines, gold, bootstrap.over(clusters))
            if "wmean" in aggregation:
                yield _weighted_mean(name, [made[subset, metric] for subset in wanted])


def correlation(system: np.ndarray, gold: np.ndarray, metric: str, times: np.ndarray | None = None) -> np.ndarray:
    """Return correlations, of all pairs or of resamples of them; NaN where one side is constant or there are fewer than two pairs.

    `spearman` is Pearson's on ranks, with average ranks for ties; a pair that is drawn several times ties with itself, so that ranks
    follow from how often each value is drawn, without sorting a resample.

    Args:
        system, gold: [n].
        metric: `spearman` or `pearson`.
        times: [r, n], how often each pair counts; each once by default.

    Returns:
        float64 [r]; a single value where each pair counts once.
    """
    if times is None:
        return np.asarray(correlation(system, gold, metric, np.ones((1, len(gold))))[0])
    if len(gold) < 2:
        return np.full(len(times), np.nan)
    sides, constant = [], np.zeros(len(times), dtype=bool)
    for values in (system, gold):
        _, value_of = np.unique(values, return_inverse=True)
        drawn = summed(times, value_of, int(value_of.max()) + 1)
        constant |= (drawn > 0).sum(1) < 2
        ranks = np.cumsum(drawn, axis=1) - (drawn - 1) / 2
        sides.append(ranks[:, value_of] if metric == "spearman" else np.broadcast_to(values - values.mean(), times.shape))
    total = times.sum(1, keepdims=True)
    x, y = (side - (times * side).sum(1, keepdims=True) / total for side in sides)
    lengths = np.sqrt((times * x * x).sum(1) * (times * y * y).sum(1))
    out = np.full(len(times), np.nan)
    np.divide((times * x * y).sum(1), lengths, out=out, where=~constant)
    return np.asarray(np.clip(out, -1.0, 1.0))


def _measure(subset: str, metric: str, protocol: str, cosines: np.ndarray, gold: np.ndarray, bootstrap: Bootstrap) -> Measure:
    n, value = len(gold), float(correlation(cosines, gold, metric))
    if np.isnan(value):
        reason = "fewer than two pairs" if n < 2 else f"all {'gold scores' if np.ptp(gold) == 0 else 'cosines'} are equal"
        return Measure(subset, metric, None, n, protocol=protocol, reason=reason)
    drawn = [correlation(cosines, gold, metric, times) for times in bootstrap.counts(n)]
    return Measure(subset, metric, value, n, protocol=protocol, resamples=np.concatenate(drawn) if drawn else None)


def _weighted_mean(name: str, parts: Sequence[Measure]) -> Measure:
    n, metric = sum(part.n_items for part in parts), parts[0].metric
    bad = next((part for part in parts if not part.defined), None)
    if bad is not None:
        return Measure(name, metric, None, n, protocol="wmean", reason=f"{bad.subset}: {bad.reason}")
    weights = [part.n_items for part in parts]
    value = float(np.average([part.value for part in parts], weights=weights))
    drawn = [part.resamples for part in parts if part.resamples is not None]
    resamples = np.average(drawn, axis=0, weights=weights) if len(drawn) == len(parts) else None
    return Measure(name, metric, value, n, protocol="wmean", resamples=resamples)
