"""Mined candidates of one split of one language pair, judged against its gold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosslign.mining.dedup import Dedup, Unified, unify
from crosslign.mining.knn import neighbours
from crosslign.mining.lists import Neighbours, State
from crosslign.mining.margin import Margin, Retrieval, mine
from crosslign.tasks.data import EncodedCorpus, Machine
from crosslign.threads import torch_threads
from crosslign.vectors import blocks

AT_ONCE = 65_536
"""Rows whose neighbours are looked at together."""


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
    def of(cls, data: EncodedCorpus, subset: str) -> Split:
        """Read a split from its evaluation corpus."""
        left, right, sources, targets, _ = data.linked(subset)
        return cls(left.rows, right.rows, sources, targets)

    def is_gold(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return whether each pair of items is a gold pair: bool [p]."""
        order = np.argsort(self.sources, kind="stable")
        gold = self.targets[order]
        starts = np.append(0, np.cumsum(np.bincount(self.sources, minlength=len(self.left_rows))))
        at, end, found = starts[sources], starts[sources + 1], np.zeros(len(sources), bool)
        left = np.flatnonzero(at < end)
        while len(left):  # once for each gold pair of the source that has the most, mostly one
            found[left] |= gold[at[left]] == targets[left]
            at[left] += 1
            left = left[at[left] < end[left]]
        return found


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


@dataclass(frozen=True)
class EqualSentences:
    """Which items of one side have equal sentences.

    Attributes:
        sentence: int64 [n], number of each item's sentence, in the order of their first items.
        items: int64 [n], items by sentence, each sentence's rising.
        starts: int64 [sentences + 1], where those of each begin.
    """

    sentence: np.ndarray
    items: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> EqualSentences:
        """Group items by the rows of their texts."""
        _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
        sentence = np.argsort(np.argsort(first))[inverse]
        starts = np.append(0, np.cumsum(np.bincount(sentence)))
        return cls(sentence, np.argsort(sentence, kind="stable"), starts)

    def expanded(self, sentences: np.ndarray, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best items of each row, of equal scores the first, from its best sentences: int64 and float32 [rows, k].

        Args:
            sentences: int64 [rows, c], numbers of sentences, best first.
            scores: float32 [rows, c].
            k: capped at the number of items.
        """
        k, none = min(k, len(self.items)), len(self.items)
        places = self.starts[:-1, None] + np.arange(k)
        copies = np.where(places < self.starts[1:, None], self.items[np.minimum(places, none - 1)], none)
        found, values = np.empty((len(sentences), k), np.int64), np.empty((len(sentences), k), np.float32)
        for at in blocks(len(sentences), AT_ONCE):
            items = copies[sentences[at]].reshape(len(sentences[at]), -1)
            own = np.where(items < none, np.repeat(scores[at], k, axis=1), -np.inf)
            order = np.lexsort((items, -own), axis=1)[:, :k]
            found[at], values[at] = np.take_along_axis(items, order, 1), np.take_along_axis(own, order, 1)
        return found, values


def search(data: EncodedCorpus, split: Split, k: int, machine: Machine, name: str) -> Neighbours:
    """Find the nearest neighbours of a split's distinct sentences.

    Args:
        data: the evaluation corpus.
        split: of the set.
        k: neighbours of each sentence.
        machine: what the search may use.
        name: tells what it keeps from what the task's other searches keep.
    """
    sides = (EqualSentences.of(rows) for rows in (split.left_rows, split.right_rows))
    left, right = (rows[side.items[side.starts[:-1]]] for rows, side in zip((split.left_rows, split.right_rows), sides, strict=True))
    state = State(machine.work / name) if machine.work else None
    with torch_threads(machine.threads):
        return neighbours(data.matrix, data.matrix, k, source_rows=left, target_rows=right, device=list(machine.devices), state=state)


def of_items(near: Neighbours, split: Split, k: int) -> Neighbours:
    """Return the nearest neighbours of all items, equal sentences apart, from those of the distinct sentences.

    The k nearest items of a sentence are copies of its k nearest sentences: a sentence that is not among these has k others before it,
    by cosine or, of equal cosines, by the place of their first copy; and so has each of its copies.
    """
    left, right = EqualSentences.of(split.left_rows), EqualSentences.of(split.right_rows)
    forward = right.expanded(near.forward_indices, near.forward_scores, k)
    backward = left.expanded(near.backward_indices, near.backward_scores, k)
    return Neighbours(*(part[left.sentence] for part in forward), *(part[right.sentence] for part in backward))


def judge(split: Split, left: Unified, right: Unified, near: Neighbours, margin: Margin, retrieval: Retrieval) -> Mined:
    """Choose pairs among nearest neighbours and compare them with the gold pairs."""
    pairs = mine(near, margin, retrieval).ranked()
    pairs = pairs.take(left.reachable[pairs.sources] & right.reachable[pairs.targets])
    sources, targets = left.items[pairs.sources], right.items[pairs.targets]
    correct = split.is_gold(sources, targets)
    reach = np.isin(split.sources, left.items[left.reachable]) & np.isin(split.targets, right.items[right.reachable])
    return Mined(split, left, right, near, sources, targets, pairs.scores, correct, float(reach.mean()) if len(reach) else 0.0)


def unify_split(split: Split, dedup: Dedup) -> tuple[Unified, Unified]:
    """Collapse equal sentences of both sides, or do not."""
    return unify(split.left_rows.tolist(), dedup), unify(split.right_rows.tolist(), dedup)
