"""Small evaluation corpora with vectors of known cosines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder

SIDES = {"source": "xx", "target": "en", "first": "xx", "second": "en", "query": "xx", "candidate": "en"}


def build(
    subsets: Mapping[str, tuple[Sequence[str], Sequence[str], Sequence[tuple[int, int]]]],
    roles: tuple[str, str] = ("source", "target"),
    scores: Mapping[str, Sequence[float]] | None = None,
) -> Evaluation:
    """Build a set from {subset: (left texts, right texts, gold links by position)}."""
    builder = EvaluationBuilder("tiny")
    for subset, (left, right, links) in subsets.items():
        for role, texts in zip(roles, (left, right), strict=True):
            for number, text in enumerate(texts):
                builder.item(f"{role}{number}", subset, role, SIDES[role], text)
        for number, (source, target) in enumerate(links):
            score = 1.0 if scores is None else scores[subset][number]
            builder.link(subset, f"{roles[0]}{source}", f"{roles[1]}{target}", score=score)
    return builder.build()


def matrix(evaluation: Evaluation, vectors: Mapping[tuple[str, str], Sequence[float]], dtype: type = np.float32) -> np.ndarray:
    """Return one row a text, by (language, text)."""
    texts = evaluation.texts.to_pylist()
    return np.array([vectors[row["lang"], row["text"]] for row in texts], dtype=dtype)


def with_cosines(cosines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors of rows and of columns whose cosines are these; rows must be shorter than 1."""
    n, m = cosines.shape
    rest = np.diag(np.sqrt(1 - (cosines**2).sum(1)))
    return np.concatenate([cosines, rest], 1), np.concatenate([np.eye(m), np.zeros((m, n))], 1)
