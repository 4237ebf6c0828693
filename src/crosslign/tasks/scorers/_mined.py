"""Mined candidates of one split of one language pair, judged against its gold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosslign.mining import Neighbours, Unified, mine, neighbours, unify
from crosslign.mining.dedup import Dedup
from crosslign.mining.margin import Margin, Retrieval
from crosslign.tasks.data import LEFT, RIGHT, TextSet


@dataclass(frozen=True)
class Split:
    """One split of one language pair.

    Attributes:
        left_rows, right_rows: int64, text row of each item; equal sentences share one.
        sources, targets: int64 [gold], gold pairs as positions of items.
    """

    left_rows: np.ndarray
    right_rows: np.ndarray
    sources: np.ndarray
    targets: np.ndarray

    @classmethod
    def of(cls, data: TextSet, subset: str) -> Split:
        """Read a split from its text set."""
        left, right = data.items(subset, LEFT), data.items(subset, RIGHT)
        sources, targets, _ = data.links(subset, left, right)
        return cls(left.rows, right.rows, sources, targets)

    def codes(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return one number for each pair of items."""
        return np.asarray(sources * max(1, len(self.right_rows)) + targets)


@dataclass(frozen=True)
class Mined:
    """Candidates of a split, best first.

    Attributes:
        split: what was mined.
        left, right: its sentences as mining saw them.
        neighbours: nearest neighbours of these sentences.
        sources, targets: int64 [c], candidates as positions of items; those that lead back to no item are left out.
        scores: float64 [c].
        correct: bool [c].
        recall_cap: share of the gold pairs that can be reached.
    """

    split: Split
    left: Unified
    right: Unified
    neighbours: Neighbours
    sources: np.ndarray
    targets: np.ndarray
    scores: np.ndarray
    correct: np.ndarray
    recall_cap: float

    @property
    def gold_size(self) -> int:
        """Number of gold pairs, reachable or not."""
        return len(self.split.sources)


def search(data: TextSet, split: Split, left: Unified, right: Unified, k: int) -> Neighbours:
    """Find the nearest neighbours of a split's sentences."""
    return neighbours(data.matrix, data.matrix, k, source_rows=split.left_rows[left.items], target_rows=split.right_rows[right.items])


def judge(split: Split, left: Unified, right: Unified, near: Neighbours, margin: Margin, retrieval: Retrieval) -> Mined:
    """Choose pairs among nearest neighbours and compare them with the gold pairs."""
    pairs = mine(near, margin, retrieval).ranked()
    pairs = pairs.take(left.reachable[pairs.sources] & right.reachable[pairs.targets])
    sources, targets = left.items[pairs.sources], right.items[pairs.targets]
    correct = np.isin(split.codes(sources, targets), split.codes(split.sources, split.targets))
    reach = np.isin(split.sources, left.items[left.reachable]) & np.isin(split.targets, right.items[right.reachable])
    return Mined(split, left, right, near, sources, targets, pairs.scores, correct, float(reach.mean()) if len(reach) else 0.0)


def unify_split(split: Split, dedup: Dedup) -> tuple[Unified, Unified]:
    """Collapse equal sentences of both sides, or do not."""
    return unify(split.left_rows.tolist(), dedup), unify(split.right_rows.tolist(), dedup)


def nearest_item_scores(gold: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return accuracy and the F1, precision and recall of classes weighted by their gold frequency, as MTEB does for BUCC (B1.9).

    Args:
        gold, predicted: int64 [q], corpus index of each query's partner and of its nearest neighbour.
    """
    n = int(max(gold.max(), predicted.max())) + 1
    support, chosen = np.bincount(gold, minlength=n), np.bincount(predicted, minlength=n)
    hits = np.bincount(gold[gold == predicted], minlength=n)
    weight = support / len(gold)
    precision = np.divide(hits, chosen, out=np.zeros(n), where=chosen > 0)
    recall = np.divide(hits, support, out=np.zeros(n), where=support > 0)
    f1 = np.divide(2.0 * hits, chosen + support, out=np.zeros(n), where=chosen + support > 0)
    return {
        "accuracy": float(hits.sum() / len(gold)),
        "weighted_f1": float(weight @ f1),
        "weighted_precision": float(weight @ precision),
        "weighted_recall": float(weight @ recall),
    }
