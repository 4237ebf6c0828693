"""Marks of a table: the best of a column, and by paired tests whether a difference would stand on other items, and on other seeds.

Two tests. Bootstrap: score jobs draw the same items for every system in resample i (`crosslign.tasks.measures.Bootstrap`), so the values
of two systems on resample i are a pair; where a system has several seeds, each resample also draws seeds with replacement. t-test: the
runs of two systems with the same seed are a pair, and every run is one with an encoder that is not trained; items are taken as given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from crosslign.config.baselines import baseline_rows, baseline_words, layout_of
from crosslign.console import one_line
from crosslign.entries.resolved import ResolvedTable
from crosslign.files import read_rows
from crosslign.paths import resamples_path
from crosslign.reporting.values import ROUNDING, Cell, Grid

LEVEL = 0.05
"""Differences are marked where the corrected p-value lies below this, unless a table says another `level`."""
TOO_FEW = "too few of the resamples are defined"
"""Why a difference is not tested."""
APART = "95 % interval lies wholly {} that of {}."
TESTED = {
    "paired_bootstrap": "{} {}: paired bootstrap over items and seeds, p < {:g} after Holm's correction for the rows of the column.",
    "paired_t": "{} {}: paired t-test over seeds, p < {:g} after Holm's correction for the rows of the column.",
}
KEYS = ("subset", "metric", "protocol", "direction")
Reader = Callable[[Path, Mapping[str, str]], np.ndarray | None]
"""From a score file and what names one of its records to the record's values on all resamples, if it has some."""


@dataclass(frozen=True)
class Comparison:
    """A system beside a baseline.

    Attributes:
        difference: mean over pairs of system less baseline, a fraction.
        p_value: two-sided, that of no difference.
    """

    difference: float
    p_value: float


def resamples_reader() -> Reader:
    """Return what gives the values of records on all resamples, float64 [r], NaN where undefined, or None where the score job kept none.

    The resamples of a score file, which lie beside it, are read once, as long as few files take turns.
    """

    @lru_cache(maxsize=8)
    def kept(score: Path) -> dict[tuple[str, ...], Any]:
        path = resamples_path(score)
        table = read_rows(path, "resamples") if path.exists() else None
        return {} if table is None else dict(zip(zip(*(table[key].to_pylist() for key in KEYS), strict=True), table["values"], strict=True))

    def read(score: Path, record: Mapping[str, str]) -> np.ndarray | None:
        values = kept(score).get(tuple(record.get(key, "") for key in KEYS))
        if values is None:
            return None
        found = np.asarray(values.values.to_numpy(zero_copy_only=False), dtype=np.float64)
        return np.where(np.isfinite(found), found, np.nan)  # one beyond float32 is not defined

    return read


def too_few(defined: np.ndarray) -> bool:
    """Tell whether fewer than half of the resamples, bool [r], are defined, or fewer than two."""
    return bool(defined.sum() < max(2, len(defined) / 2))


def over_seeds(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return for each resample the mean over seeds drawn with replacement: [r] from [seeds, r]."""
    seeds, resamples = values.shape
    if seeds == 1:
        return np.asarray(values[0])
    drawn = rng.integers(0, seeds, (seeds, resamples))
    return np.asarray(np.take_along_axis(values, drawn, 0).mean(0))


def paired_bootstrap(system: np.ndarray, baseline: np.ndarray) -> Comparison | None:
    """Compare two systems on the same resamples.

    Args:
        system, baseline: float64 [seeds, r], a metric of each run on each resample; the numbers of seeds may differ.

    Returns:
        The comparison, or None where the numbers of resamples differ or fewer than half of them are defined for both. The p-value is
        twice the smaller share of resamples on one side of zero, with one added to both counts, so that it is never 0.
    """
    if system.shape[1] != baseline.shape[1] or not system.shape[1]:
        return None
    rng = np.random.default_rng(42)
    difference = over_seeds(system, rng) - over_seeds(baseline, rng)
    defined = ~np.isnan(difference)
    if too_few(defined):
        return None
    found = difference[defined]
    smaller = min(int((found <= 0).sum()), int((found >= 0).sum()))
    return Comparison(float(found.mean()), min(1.0, 2 * (smaller + 1) / (len(found) + 1)))


def paired_t(system: Mapping[int | None, float], baseline: Mapping[int | None, float]) -> Comparison | None:
    """Compare two systems by a paired t-test over the seeds that both were run with (docs/papers/mpcl.md).

    Args:
        system, baseline: a metric of each run, by seed.

    Returns:
        The comparison; None with fewer than two common seeds, or where the difference is the same for all of them, which leaves the
        test undefined.
    """
    from scipy.stats import ttest_rel

    seeds = [seed for seed in system if seed in baseline]
    ours, theirs = [system[seed] for seed in seeds], [baseline[seed] for seed in seeds]
    if len(seeds) < 2 or np.ptp(np.subtract(ours, theirs)) < ROUNDING:
        return None
    return Comparison(float(np.mean(np.subtract(ours, theirs))), float(ttest_rel(ours, theirs).pvalue))


def resamples_of(cell: Cell, results: Path, read: Reader) -> np.ndarray | None:
    """Return a cell's values on the resamples of each of its runs: [runs, r], or None; of an average, the mean over its parts."""
    if cell.parts:
        return _alike([resamples_of(part, results, read) for part in cell.parts], np.mean)
    return _alike([read(results / file, record) for file, record in zip(cell.score_files, cell.records, strict=True)], np.stack)


def _alike(found: Sequence[np.ndarray | None], joined: Callable[..., Any]) -> np.ndarray | None:
    """Return arrays joined along a new first axis or averaged over it; None where one is missing or of another shape."""
    known = [values for values in found if values is not None]
    if not known or len(known) < len(found) or len({values.shape for values in known}) > 1:
        return None
    return np.asarray(joined(known, axis=0))


def runs_of(cell: Cell) -> dict[int | None, float]:
    """Return a cell's value of each run by seed, of an average the mean over its parts; without seeds that a part lacks.

    An encoder without training has one run, whose seed is None.
    """
    if not cell.parts:
        return {record["seed"]: float(record["value"]) for record in cell.records if record["value"] is not None and "seed" in record}
    parts = [runs_of(part) for part in cell.parts]
    common = [seed for seed in parts[0] if all(seed in part for part in parts)]
    return {seed: math.fsum(part[seed] for part in parts) / len(parts) for seed in common}


def _items_of(cell: Cell) -> list[set[int]]:
    """Return how many items each part of a cell was measured on; an empty set where a record does not say it."""
    if cell.parts:
        return [items for part in cell.parts for items in _items_of(part)]
    known = all(record.get("n_items") is not None for record in cell.records)
    return [{record["n_items"] for record in cell.records} if known else set()]


def _by_items(results: Path) -> Test:
    read = resamples_reader()

    def test(cell: Cell, baseline: Cell) -> Comparison | None:
        items = _items_of(cell)
        if not all(items) or items != _items_of(baseline):
            return None
        values, others = resamples_of(cell, results, read), resamples_of(baseline, results, read)
        return None if values is None or others is None else paired_bootstrap(values, others)

    return test


def _by_seeds(results: Path) -> Test:
    def test(cell: Cell, baseline: Cell) -> Comparison | None:
        runs, base = runs_of(cell), runs_of(baseline)
        return paired_t(runs, dict.fromkeys(runs, base[None]) if None in base else base)

    return test


Test = Callable[[Cell, Cell], Comparison | None]
"""Compares a cell with that of its baseline; None where that is not possible."""
TESTS: dict[str, Callable[[Path], Test]] = {"paired_bootstrap": _by_items, "paired_t": _by_seeds}
"""Tests that a table may ask for, made for a results folder."""


def mark_differences(
    grid: Sequence[Sequence[Cell]], baselines: Sequence[int | None], labels: Sequence[str], test: Test, level: float = LEVEL
) -> None:
    """Test rows of a table against others, column by column, and set `p_value`, `against` and the marks `above` and `below`.

    P-values are corrected for all rows that were tested in the column.

    Args:
        grid: rows of cells.
        baselines: for each row, the place of the row that it is compared with, or None.
        labels: of the rows.
        test: what compares two cells.
        level: the corrected p-value below which a difference is marked.
    """
    for column in zip(*grid, strict=True):
        tested: list[tuple[Cell, Comparison]] = []
        for cell, place in zip(column, baselines, strict=True):
            if place is None or cell.ours is None or column[place].ours is None:
                continue
            if found := test(cell, column[place]):
                cell.against = labels[place]
                tested.append((cell, found))
        for (cell, found), p_value in zip(tested, holm([found.p_value for _, found in tested]), strict=True):
            cell.p_value = p_value
            if p_value < level:
                cell.marks.append("above" if found.difference > 0 else "below")


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for that many comparisons (Holm 1979), in the order given."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    corrected, largest = [math.nan] * len(p_values), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, p_values[at] * (len(p_values) - rank)))
        corrected[at] = largest
    return corrected


def _mark_best(columns: Sequence[Mapping[str, Any]], grid: Grid) -> None:
    for column, cells in zip(columns, zip(*grid, strict=True), strict=True):
        known = [cell for cell in cells if cell.ours is not None and not cell.collapsed]
        values = [cell.ours or 0.0 for cell in known]
        if "count" in column or not values or max(values) - min(values) < ROUNDING:
            continue
        best = min(values) if column.get("better") == "lower" else max(values)
        for cell, value in zip(known, values, strict=True):
            cell.marks += ["best"] if abs(value - best) < ROUNDING else []


def _mark_intervals(grid: Sequence[Sequence[Cell]], baselines: Sequence[int | None]) -> None:
    """Set the marks of cells whose interval lies wholly beside that of the row that theirs is compared with, or None."""
    compared = [(row, grid[place]) for row, place in zip(grid, baselines, strict=True) if place is not None]
    for cell, first in [cells for row, other in compared for cells in zip(row, other, strict=True)]:
        if cell.interval and first.interval:
            (low, high), (first_low, first_high) = cell.interval, first.interval
            cell.marks += ["above"] if low > first_high else ["below"] if high < first_low else []


def mark_cells(resolved: ResolvedTable, grid: Grid, results: Path) -> list[tuple[str, str]]:
    """Mark the best of each column, and the cells above and below that of the row that theirs is compared with.

    These are found by the test that a table asks for, or else by intervals.

    Args:
        resolved: a table as `crosslign.config.cells.resolve_table` gives it.
        grid: its filled cells.
        results: the `{results}` folder.

    Returns:
        The footnotes of the arrows, each with its sign: against which row, by which test; that a test found nothing, where it did not.
    """
    layout, rows = layout_of(resolved), resolved["rows"]
    baselines, test, level = baseline_rows(rows), layout.get("significance", ""), layout.get("level", LEVEL)
    _mark_best(resolved["columns"], grid)
    if test:
        mark_differences(grid, baselines, [row["label"] for row in rows], TESTS[test](results), level)
    else:
        _mark_intervals(grid, baselines)
    cells, text, baseline = [cell for row in grid for cell in row], TESTED.get(test, APART), one_line(baseline_words(rows))
    sides = [(sign, side) for sign, side in (("↑", "above"), ("↓", "below")) if any(side in cell.marks for cell in cells)]
    if not sides and any(cell.p_value is not None for cell in cells):
        sides = [("", "No cell differs from")]
    return [(sign, text.format(side, baseline, level)) for sign, side in sides]
