"""Paired tests between the systems of a table: whether a difference would stand on other items, and on other seeds.

Score jobs draw the same items for every system in resample i (`crosslign.tasks.measures.Bootstrap`), so the values of two systems on
resample i are a pair. Where a system has several seeds, each resample also draws seeds with replacement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosslign.files import read_rows
from crosslign.paths import resamples_path
from crosslign.reporting.cell import Cell

LEVEL = 0.05
"""Differences are marked where the corrected p-value lies below this."""
KEYS = ("subset", "metric", "protocol", "direction")


@dataclass(frozen=True)
class Comparison:
    """A system beside a baseline.

    Attributes:
        difference: mean over resamples of system less baseline, a fraction.
        ci_low, ci_high: its 95 % percentile interval.
        p_value: two-sided, that of no difference.
    """

    difference: float
    ci_low: float
    ci_high: float
    p_value: float


def read_resamples(score: Path, record: Mapping[str, str]) -> np.ndarray | None:
    """Return a record's values on all resamples, float64 [r]; None where its score job kept none.

    Args:
        score: score file; the resamples lie beside it.
        record: subset, metric, protocol and direction.
    """
    path = resamples_path(score)
    if not path.exists():
        return None
    table = read_rows(path, "resamples")
    wanted = tuple(record.get(key, "") for key in KEYS)
    for number, found in enumerate(zip(*(table[key].to_pylist() for key in KEYS), strict=True)):
        if found == wanted:
            return np.asarray(table["values"][number].values.to_numpy(zero_copy_only=False), dtype=np.float64)
    return None


def _over_seeds(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return for each resample the mean over seeds drawn with replacement: [r] from [seeds, r]."""
    seeds, resamples = values.shape
    if seeds == 1:
        return np.asarray(values[0])
    drawn = rng.integers(0, seeds, (seeds, resamples))
    return np.asarray(np.take_along_axis(values, drawn, 0).mean(0))


def paired_bootstrap(system: np.ndarray, baseline: np.ndarray, seed: int = 42) -> Comparison | None:
    """Compare two systems on the same resamples.

    Args:
        system, baseline: float64 [seeds, r], a metric of each run on each resample; the numbers of seeds may differ.
        seed: draws the seeds.

    Returns:
        The comparison, or None where the numbers of resamples differ or fewer than half of them are defined for both. The p-value is
        twice the smaller share of resamples on one side of zero, with one added to both counts, so that it is never 0.
    """
    if system.shape[1] != baseline.shape[1] or not system.shape[1]:
        return None
    rng = np.random.default_rng(seed)
    difference = _over_seeds(system, rng) - _over_seeds(baseline, rng)
    found = difference[~np.isnan(difference)]
    if 2 * len(found) < len(difference):
        return None
    smaller = min(int((found <= 0).sum()), int((found >= 0).sum()))
    low, high = np.percentile(found, [2.5, 97.5])
    return Comparison(float(found.mean()), float(low), float(high), min(1.0, 2 * (smaller + 1) / (len(found) + 1)))


def resamples_of(cell: Cell, results: Path) -> np.ndarray | None:
    """Return a cell's values on the resamples of each of its runs: [runs, r], or None."""
    found = [read_resamples(results / file, record) for file, record in zip(cell.score_files, cell.records, strict=True)]
    known = [values for values in found if values is not None]
    if not known or len(known) < len(found) or len({len(values) for values in known}) > 1:
        return None
    return np.stack(known)


def mark_differences(grid: Sequence[Sequence[Cell]], results: Path) -> None:
    """Test every row of a table against the first one, column by column, and set `p_value` and the marks `above` and `below`.

    A cell is tested where both it and the first row's cell have resamples of the same items; p-values are corrected for the rows that
    were tested in the column.

    Args:
        grid: rows of cells.
        results: the folder that score files are relative to.
    """
    for first, *others in zip(*grid, strict=True):
        baseline = resamples_of(first, results)
        tested: list[tuple[Cell, Comparison]] = []
        for cell in others if baseline is not None else ():
            values = resamples_of(cell, results)
            same_items = cell.records and {r["n_items"] for r in cell.records} == {r["n_items"] for r in first.records}
            if values is not None and baseline is not None and same_items and (found := paired_bootstrap(values, baseline)):
                tested.append((cell, found))
        for (cell, found), p_value in zip(tested, holm([found.p_value for _, found in tested]), strict=True):
            cell.p_value = p_value
            if p_value < LEVEL:
                cell.marks.append("above" if found.difference > 0 else "below")


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for that many comparisons (Holm 1979), in the order given."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    corrected, largest = [math.nan] * len(p_values), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, p_values[at] * (len(p_values) - rank)))
        corrected[at] = largest
    return corrected
