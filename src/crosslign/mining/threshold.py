"""Extraction by a score threshold, and the threshold with the best F1 (docs/protocols.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Ties = Literal["group", "prefix"]


@dataclass(frozen=True)
class Extraction:
    """What keeping all candidates with score >= threshold gives.

    Attributes:
        f1, precision, recall: fractions; recall is over all gold pairs, reachable or not. 0 where nothing is extracted.
        threshold: lowest score that is kept; +inf keeps nothing.
        extracted: number of candidates kept.
    """

    f1: float
    precision: float
    recall: float
    threshold: float
    extracted: int


def _extraction(correct: int, extracted: int, gold_size: int, threshold: float) -> Extraction:
    precision = correct / extracted if extracted else 0.0
    # 2C / (n + g) is the harmonic mean of C / n and C / g, with one rounding only.
    return Extraction(2 * correct / (extracted + gold_size), precision, correct / gold_size, threshold, extracted)


def _check(scores: np.ndarray, correct: np.ndarray, gold_size: int) -> None:
    if scores.shape != correct.shape or correct.sum() > gold_size or gold_size < 1:
        raise ValueError(f"{len(scores)} scores, {len(correct)} verdicts, {int(correct.sum())} of them correct, {gold_size} gold pairs")


def extract(scores: np.ndarray, correct: np.ndarray, gold_size: int, threshold: float) -> Extraction:
    """Apply a threshold, its own or one tuned on another split.

    Args:
        scores: [c], of candidates.
        correct: bool [c], whether a candidate is a gold pair; no gold pair twice.
        gold_size: number of gold pairs, at least 1.
        threshold: candidates with score >= threshold are kept.
    """
    _check(scores, correct, gold_size)
    # A threshold between two float32 neighbours is none of them: in float32 the comparison would round it.
    kept = scores.astype(np.float64) >= threshold
    return _extraction(int(correct[kept].sum()), int(kept.sum()), gold_size, threshold)


def best_threshold(scores: np.ndarray, correct: np.ndarray, gold_size: int, ties: Ties = "group") -> Extraction:
    """Find the threshold with the best F1 on these candidates.

    Candidates are sorted by score; the first prefix with the highest F1 wins; the threshold is the midpoint between its last score and
    the next one, or its last score when nothing follows. With no correct candidate F1 is 0, the threshold +inf, nothing is extracted.

    Args:
        scores: [c], of candidates.
        correct: bool [c], whether a candidate is a gold pair; no gold pair twice.
        gold_size: number of gold pairs, at least 1.
        ties: `group` considers a prefix only where a run of equal scores ends, so that its F1 is what the threshold realises; `prefix`
            considers every prefix in the given order of ties, as the reference does, and may promise an F1 that no threshold realises.
    """
    _check(scores, correct, gold_size)
    scores = scores.astype(np.float64)
    order = np.argsort(-scores, kind="stable")
    scores, hits = scores[order], np.cumsum(correct[order])
    if not len(hits) or not hits[-1]:
        return _extraction(0, 0, gold_size, float("inf"))
    lengths = np.arange(1, len(scores) + 1)
    if ties == "group":
        lengths = lengths[np.append(scores[:-1] != scores[1:], True)]
    best = int(lengths[np.argmax(2 * hits[lengths - 1] / (lengths + gold_size))])
    last = float(scores[best - 1])
    following = float(scores[best]) if best < len(scores) else last
    middle = following + (last - following) / 2
    # Between neighbouring floats the midpoint may round down to the next score, which must stay out.
    return _extraction(int(hits[best - 1]), best, gold_size, middle if middle > following else last)
