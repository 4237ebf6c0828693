"""Are two sentences paraphrases, by the cosine of their vectors alone: PAWS-X for systems without a trained head."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crosslign.errors import InputError
from crosslign.options import Natural
from crosslign.tasks import SCORERS
from crosslign.tasks.data import TaskData
from crosslign.tasks.measures import RESAMPLES, Bootstrap, Measure
from crosslign.vectors import pair_cosines

METRICS = ("average_precision", "accuracy")


@SCORERS.register(version=2, gives={"average_precision": (), "accuracy": ()}, subsets_apart=True)
def pair_classification(task: TaskData, *, resamples: Natural = RESAMPLES, seed: Natural = 42) -> Iterator[Measure]:
    """Yield for each subset the average precision of the cosines, and the accuracy at the threshold that is best on the same pairs.

    The score of a gold link is 1 for a pair of equal meaning and 0 for any other. MTEB's pair classification names the same two
    figures `cosine_ap` and `cosine_accuracy`.

    Args:
        resamples: bootstrap resamples of the pairs for intervals, the threshold kept; 0 for none.
        seed: of the bootstrap.
    """
    data, bootstrap = task.only_corpus(), Bootstrap(task.name, resamples, seed)
    for subset in data.subsets:
        left, right, first, second, gold = data.linked(subset)
        if not np.isin(gold, (0.0, 1.0)).all():
            raise InputError("a pair's gold is neither 0 nor 1", where=f"task {task.name!r}, subset {subset!r}")
        same, n = gold == 1.0, len(gold)
        if not same.any() or same.all():
            reason = "no pairs" if not n else f"all pairs have the gold {int(gold[0])}"
            yield from (Measure(subset, metric, None, n, reason=reason) for metric in METRICS)
            continue
        cosines = pair_cosines(data.matrix, left.rows[first], right.rows[second]).astype(np.float64)
        drawn_over = bootstrap.over([left.clusters[at] for at in first])
        drawn = [average_precision(cosines, same, times) for times in drawn_over.counts(n)]
        value = float(average_precision(cosines, same, np.ones((1, n)))[0])
        yield Measure(subset, METRICS[0], value, n, resamples=np.concatenate(drawn) if drawn else None)
        threshold = best_accuracy_threshold(cosines, same)
        right_ones = (cosines >= threshold) == same
        resampled = drawn_over.mean(right_ones)
        value = float(right_ones.mean())
        yield Measure(subset, METRICS[1], value, n, threshold=threshold, threshold_from="same_gold", resamples=resampled)


def average_precision(cosines: np.ndarray, same: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the sum over thresholds of precision times the step in recall; pairs of equal cosine enter together.

    Args:
        cosines: [n].
        same: bool [n], the gold.
        times: [resamples, n], how often each pair counts.

    Returns:
        float64 [resamples]; NaN where a resample has no pair of equal meaning.
    """
    order = np.argsort(-cosines, kind="stable")
    ends = np.append(cosines[order][:-1] != cosines[order][1:], True)
    hits = np.cumsum((times * same)[:, order], axis=1)[:, ends]
    taken = np.cumsum(times[:, order], axis=1)[:, ends]
    precision = np.divide(hits, taken, out=np.zeros_like(hits), where=taken > 0)
    summed = (np.diff(hits, axis=1, prepend=0.0) * precision).sum(1)
    return np.asarray(np.divide(summed, hits[:, -1], out=np.full(len(hits), np.nan), where=hits[:, -1] > 0))


def best_accuracy_threshold(cosines: np.ndarray, same: np.ndarray) -> float:
    """Return the threshold with the highest accuracy, the highest of several; +inf if it is best to call no pair the same."""
    order = np.argsort(-cosines, kind="stable")
    ranked = cosines[order]
    gains = np.cumsum(np.where(same[order], 1, -1))
    gains[:-1][ranked[:-1] == ranked[1:]] = -len(ranked) - 1
    best = int(np.argmax(gains))
    if gains[best] <= 0:
        return float("inf")
    following = float(ranked[best + 1]) if best + 1 < len(ranked) else float(ranked[best])
    middle = following + (float(ranked[best]) - following) / 2
    return middle if middle > following else float(ranked[best])
