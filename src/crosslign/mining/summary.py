"""What was mined, on the console: how many pairs there are down to several scores, what they look like there, and the best of all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crosslign.console import as_columns, number_of
from crosslign.files.rows import parquet_file
from crosslign.mining.formats import BREAKS

STEPS, BEST, SHOWN = 7, 3, 60
"""Scores that are listed, about; pairs that are shown; characters of a sentence that are."""


def round_scores(scores: np.ndarray) -> list[float]:
    """Return some `STEPS` round numbers between the best and the worst scores, highest first, each with a pair at or above it.

    Args:
        scores: [n], best first; of the first and the last twentieth, which may be far away, nothing is asked.
    """
    if not len(scores):
        return []
    high, low = float(scores[len(scores) // 20]), float(scores[len(scores) - 1 - len(scores) // 20])
    if high <= low:
        return [low]
    rough = (high - low) / STEPS
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    found = [round(number * step, 10) for number in range(math.floor(high / step), math.floor(low / step) - 1, -1)]
    return [score for score in found if score <= scores[0]]


def _short(text: str) -> str:
    text = text.translate(BREAKS)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def summary_lines(pairs: Path) -> Iterator[str]:
    """Yield a table of scores, the number of pairs with at least each, the lowest of these, and the best pairs.

    Args:
        pairs: the Parquet file of `write_pairs`, best first.
    """
    with parquet_file(pairs) as file:
        scores = file.read(["score"])["score"].to_numpy()
        counted: dict[int, float] = {}  # of equal counts, the highest score
        for score in round_scores(scores):
            counted.setdefault(int(np.searchsorted(-scores, -score, side="right")), score)
        shown = _texts(file, {*range(min(BEST, len(scores))), *(count - 1 for count in counted)})
    if not len(scores):
        return
    rows = [(f"{score:.10g}", f"{count:,}", shown[count - 1]) for count, score in counted.items()]
    yield "pairs with at least each score, and the one with the lowest; set the threshold where the pairs stop being right"
    yield from ("  " + line for line in as_columns([("score ≥", "pairs", "the one with the lowest score"), *rows], right=(0, 1)))
    yield "best first:"
    yield from (f"  {scores[row]:.4f}  {shown[row]}" for row in range(min(BEST, len(scores))))


def _texts(file: pq.ParquetFile, rows: set[int]) -> dict[int, str]:
    """Return what pairs of some rows look like; a file of any size is read a batch at a time."""
    found, start = {}, 0
    for batch in file.iter_batches(columns=["source_text", "target_text"]):
        here = sorted(row for row in rows if start <= row < start + len(batch))
        taken = batch.take(pa.array([row - start for row in here], pa.int64()))
        for row, left, right in zip(here, *(column.to_pylist() for column in taken.columns), strict=True):
            found[row] = f"{_short(left)} | {_short(right)}"
        start += len(batch)
    return found


def read_text(counts: Mapping[str, int], side: Mapping[str, Any]) -> str:
    """Return how much of a side was read and passed over.

    Args:
        counts: those of `texts.read_sentences`.
        side: the side of the recipe.
    """
    texts = number_of(counts["lines"], "document" if side.get("split") else "line")
    files = f" of {number_of(counts['files'], 'file')}" if "files" in counts else ""
    return f"{texts}{files}, {counts['empty']:,} empty, {counts['repeated']:,} {'sentences ' if side.get('split') else ''}repeated"


def cut_text(cut: int, sentences: int, length: int) -> str:
    """Return how many sentences of a side are longer than what its encoder reads."""
    return f"{number_of(cut, 'sentence')} of {sentences:,} cut at {number_of(length, 'token')}"
