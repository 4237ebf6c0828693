"""Graded sentence pairs: what every reader of semantic similarity adds to its set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.corpora.evaluations._aligned import evenly
from crosslign.corpora.readers._fields import finite
from crosslign.corpora.readers._lines import read_lines
from crosslign.corpora.readers._parts import TextFile
from crosslign.errors import InputError


@dataclass(frozen=True)
class Graded:
    """One pair: its id in the official files, both sentences, the grade, and what it was sampled together with, if anything."""

    id: str
    first: str
    second: str
    grade: float
    cluster: str | None = None


def grade_lines(source: Path | TextFile, pairs: int) -> list[tuple[int, str]]:
    """Return the numbered lines of a file of grades: a blank one is a pair without a grade, but behind as many as there are pairs."""
    lines = list(read_lines(source, blank_end=True))
    while len(lines) > pairs and not lines[-1][1].strip():
        lines.pop()
    return lines


def grade_of(text: str, place: str, low: float = -math.inf, high: float = math.inf) -> float | None:
    """Return a grade; None where there is none, and the pair is to be left out.

    Raises:
        InputError: it is not a number, or lies outside low and high.
    """
    if not text.strip():
        return None
    grade = finite(text)
    if grade is None or not low <= grade <= high:
        bounds = f" from {low:g} to {high:g}" if math.isfinite(low) and math.isfinite(high) else ""
        raise InputError(f"a grade must be a number{bounds}", where=place, why=f"found {text.strip()!r}")
    return grade


def add_graded(
    builder: EvaluationBuilder, subset: str, langs: tuple[str, str], pairs: Sequence[Graded], limit: int | None, split: str = "test"
) -> None:
    """Add at most `limit` pairs to a subset, evenly spread; languages are those of the first and the second sentence."""
    for pair in (pairs[index] for index in evenly(len(pairs), limit)):
        ids = [f"{pair.id}:{role}" for role in ("first", "second")]
        for item, role, lang, text in zip(ids, ("first", "second"), langs, (pair.first, pair.second), strict=True):
            builder.item(item, subset, role, lang, text, split=split, group=pair.id, cluster=pair.cluster)
        builder.link(subset, *ids, split=split, score=pair.grade)
