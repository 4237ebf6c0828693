"""Correlation of cosines with graded similarity: STS12-16, STS-B, SICK-R, STS17, STS22, WMT21 QE (PROTOCOLS B3-B5, B10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosslign.errors import InputError
from crosslign.tasks import SCORERS
from crosslign.tasks.data import LEFT, RIGHT, TaskData, members
from crosslign.tasks.measures import Bootstrap, Measure
from crosslign.vectors import pair_cosines

METRICS = ("spearman", "pearson")


@SCORERS.register(version=1)
def sts(task: TaskData, *, aggregation: Sequence[Literal["all", "wmean"]] = (), resamples: int = 1000, seed: int = 42) -> Iterator[Measure]:
    """Yield Spearman and Pearson correlation of each subset, and further aggregations of the task's named averages.

    The plain mean of the subsets is always made (as every named average is). `all` is one correlation over all their pairs together,
    `wmean` their mean weighted by numbers of pairs; both are records of the average's name with that protocol. Constant cosines or
    constant gold scores leave a correlation undefined.

    Args:
        aggregation: which of `all` and `wmean` to add.
        resamples: bootstrap resamples of the pairs for intervals; 0 for none.
        seed: of the bootstrap.
    """
    data = task.only_set()
    bootstrap = Bootstrap(task.name, resamples, seed)
    pairs: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for subset in data.subsets:
        left, right = data.items(subset, LEFT), data.items(subset, RIGHT)
        first, second, gold = data.links(subset, left, right)
        if np.isnan(gold).any():
            raise InputError("a pair has no gold score", where=f"task {task.name!r}, subset {subset!r}", do="Drop such pairs in the reader")
        pairs[subset] = pair_cosines(data.matrix, left.rows[first], right.rows[second]).astype(np.float64), gold
    made = {}
    for subset, (cosines, gold) in pairs.items():
        for metric in METRICS:
            made[subset, metric] = _measure(subset, metric, "", cosines, gold, bootstrap)
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
                yield _measure(name, metric, "all", cosines, gold, bootstrap)
            if "wmean" in aggregation:
                yield _weighted_mean(name, [made[subset, metric] for subset in wanted])


def correlation(system: np.ndarray, gold: np.ndarray, metric: str) -> np.ndarray:
    """Return correlations along the last axis, float64; NaN where one side is constant or there are fewer than two pairs.

    `spearman` is Pearson's on ranks, with average ranks for ties.
    """
    if system.shape[-1] < 2:
        return np.full(system.shape[:-1], np.nan)
    if metric == "spearman":
        system, gold = _ranks(system), _ranks(gold)
    constant = (np.ptp(system, axis=-1) == 0) | (np.ptp(gold, axis=-1) == 0)
    x, y = system - system.mean(-1, keepdims=True), gold - gold.mean(-1, keepdims=True)
    lengths = np.sqrt((x * x).sum(-1) * (y * y).sum(-1))
    out = np.full(np.shape(constant), np.nan)
    np.divide((x * y).sum(-1), lengths, out=out, where=~constant)
    return np.clip(out, -1.0, 1.0)


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks along the last axis, from 1, float64; ties share their mean. Arrow is loaded anyway, SciPy takes a second."""
    out = np.empty(values.shape)
    for row, ranks in zip(values.reshape(-1, values.shape[-1]), out.reshape(-1, values.shape[-1]), strict=True):
        given = pa.array(row)
        np.add(pc.rank(given, tiebreaker="min"), pc.rank(given, tiebreaker="max"), out=ranks)
    return out / 2


def _measure(subset: str, metric: str, protocol: str, cosines: np.ndarray, gold: np.ndarray, bootstrap: Bootstrap) -> Measure:
    n, value = len(gold), float(correlation(cosines, gold, metric))
    if np.isnan(value):
        reason = "fewer than two pairs" if n < 2 else f"all {'gold scores' if np.ptp(gold) == 0 else 'cosines'} are equal"
        return Measure(subset, metric, None, n, protocol=protocol, reason=reason)
    drawn = [correlation(cosines[draw], gold[draw], metric) for draw in bootstrap.draws(n, protocol)]
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
