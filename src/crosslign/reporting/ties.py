"""Which rows of a column nothing separates: variances of items and seeds, hierarchical bootstrap, groups of ties, smallest difference.

A row's score varies with the items that were drawn and with the seeds that it was trained with. The bootstrap draws both: resample i holds
the same items for every row (`crosslign.tasks.measures.Bootstrap`), and each row's seeds with replacement. Few seeds drawn so vary by
(n − 1)/n of what they should (Davison and Hinkley 1997, 2.5.2), and the draw is widened by that. Differences of all pairs of rows are
tested by t, with Welch's and Satterthwaite's degrees of freedom, items having infinitely many, and corrected after Holm.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosslign.config.baselines import layout_of
from crosslign.entries.resolved import ResolvedTable
from crosslign.reporting.significance import LEVEL, TOO_FEW, holm, over_seeds, resamples_of, resamples_reader, too_few
from crosslign.reporting.values import ROUNDING, Cell, Grid, run_values

NO_TIES = "{}: ties are not judged, because {}."
TIES = (
    "{}: {}. Standard deviation of a row's score over items {:.{d}f}, over seeds {:.{d}f}; "
    "the smallest difference that can show is {:.{d}f}."
)
METHOD = (
    "Ties: rows in one pair of braces, best first, do not differ significantly (p of 0.05 or more after Holm's correction over all pairs "
    "of rows of the column; bootstrap over items and seeds)."
)


@dataclass(frozen=True)
class Row:
    """A row's score in one column.

    Attributes:
        runs: float64 [seeds], the score of each run; one of a system without training.
        resamples: float64 [seeds, r], the same on each resample of the items.
    """

    runs: np.ndarray
    resamples: np.ndarray

    @property
    def mean(self) -> float:
        """Mean over runs."""
        return float(self.runs.mean())

    @property
    def seed_variance(self) -> float:
        """Variance of a run's score over seeds; 0 of a single run."""
        return float(self.runs.var(ddof=1)) if len(self.runs) > 1 else 0.0

    @property
    def item_variance(self) -> float:
        """Variance of the mean over runs over resamples of the items."""
        return float(self.resamples.mean(0).var(ddof=1))

    def drawn(self, rng: np.random.Generator) -> np.ndarray:
        """Return the mean over seeds drawn with replacement in each resample, widened for their small number: float64 [r]."""
        taken, seeds = over_seeds(self.resamples, rng), len(self.resamples)
        if seeds == 1:
            return taken
        whole = self.resamples.mean(0)
        return np.asarray(whole + (taken - whole) * math.sqrt(seeds / (seeds - 1)))


@dataclass(frozen=True)
class Ties:
    """What can be told apart among rows.

    Attributes:
        groups: rows, by their places, of which no two are separated; each is as large as can be, best first.
        items, seeds: root mean square over the rows of the standard deviation over items, and over seeds of a run.
        smallest: difference that would show between any two rows: the largest over pairs, at the corrected level.
    """

    groups: list[list[int]]
    items: float
    seeds: float
    smallest: float


def degrees_of(a: Row, b: Row, variance: float) -> float:
    """Return the degrees of freedom of a difference whose bootstrap has this variance: at least those of the row with the fewest seeds."""
    parts = [(row.seed_variance / len(row.runs), len(row.runs) - 1) for row in (a, b) if len(row.runs) > 1]
    below = sum(own**2 / free for own, free in parts)
    return max(min(free for _, free in parts), variance**2 / below) if below > 0 else math.inf


def _tested(rows: Sequence[Row], seed: int) -> dict[tuple[int, int], tuple[float, float, float]]:
    """Return difference, standard error and degrees of freedom of each pair."""
    rng = np.random.default_rng(seed)
    drawn = [row.drawn(rng) for row in rows]
    found = {}
    for i, j in itertools.combinations(range(len(rows)), 2):
        variance = float(np.var(drawn[i] - drawn[j], ddof=1))
        found[i, j] = rows[i].mean - rows[j].mean, math.sqrt(variance), degrees_of(rows[i], rows[j], variance)
    return found


def _p_value(difference: float, error: float, degrees: float) -> float:
    from scipy.stats import t

    if abs(difference) < ROUNDING:
        return 1.0
    return float(2 * t.sf(abs(difference) / error, degrees)) if error > 0 else 0.0


def groups_of(order: Sequence[int], separated: set[frozenset[int]]) -> list[list[int]]:
    """Return the largest groups of which no two members are separated (Piepho 2004), each in the given order, by their first members.

    Args:
        order: all members, best first.
        separated: pairs of members that are.
    """
    groups = [frozenset(order)]
    for pair in separated:
        groups = [part for group in groups for part in ([group - {one} for one in pair] if pair <= group else [group])]
        groups = [group for at, group in enumerate(groups) if not any(group < other for other in groups) and group not in groups[:at]]
    place = {member: at for at, member in enumerate(order)}
    return sorted((sorted(group, key=place.__getitem__) for group in groups), key=lambda group: [place[member] for member in group])


def ties(rows: Sequence[Row], lower_is_better: bool = False, seed: int = 42) -> Ties:
    """Return what can be told apart among rows on the same resamples.

    Args:
        rows: two or more; those with several runs have two or more each.
        lower_is_better: whether the least score is the best one.
        seed: draws the seeds.
    """
    from scipy.stats import t

    found = _tested(rows, seed)
    corrected = zip(found, holm([_p_value(*one) for one in found.values()]), strict=True)
    order = sorted(range(len(rows)), key=lambda at: rows[at].mean if lower_is_better else -rows[at].mean)
    groups = groups_of(order, {frozenset(pair) for pair, p in corrected if p < LEVEL})
    shows = [float(t.ppf(1 - LEVEL / (2 * len(found)), degrees)) * error for _, error, degrees in found.values()]
    trained = [row.seed_variance for row in rows if len(row.runs) > 1]
    items = math.sqrt(sum(row.item_variance for row in rows) / len(rows))
    return Ties(groups, items, math.sqrt(sum(trained) / len(trained)) if trained else 0.0, max(shows))


def _row_of(cell: Cell, resamples: np.ndarray | None) -> Row | str:
    """Return a cell as a row of its column, or why it is none."""
    runs = np.asarray(run_values(cell), dtype=np.float64)
    if resamples is None or len(resamples) != len(runs):
        return "a score has no resamples"
    return "a trained row has one seed alone" if cell.trained and len(runs) < 2 else Row(runs, resamples)


def tie_notes(resolved: ResolvedTable, grid: Grid, results: Path, names: Sequence[str]) -> list[str]:
    """Return what a table that asks for it (`print: {ties: true}`) says under it of each column's ties.

    Args:
        resolved: a table as `crosslign.config.cells.resolve_table` gives it.
        grid: its filled cells.
        results: the `{results}` folder.
        names: of its rows.
    """
    layout, notes, read = layout_of(resolved), [], resamples_reader()
    for index, column in enumerate(resolved["columns"]):
        places = [at for at, row in enumerate(grid) if row[index].ours is not None and row[index].leaves[0].score_files]
        rows = [_row_of(grid[at][index], resamples_of(grid[at][index], results, read)) for at in places]
        why = next((row for row in rows if isinstance(row, str)), "fewer than two rows have a score" if len(rows) < 2 else "")
        known = [row for row in rows if isinstance(row, Row)]
        if not why and len({row.resamples.shape[1] for row in known}) > 1:
            why = "the rows' resamples differ in number"
        kept = np.empty(0) if why else ~np.isnan(np.concatenate([row.resamples for row in known])).any(0)
        why = why or (TOO_FEW if too_few(kept) else "")
        if why:
            notes.append(NO_TIES.format(column["label"], why))
            continue
        found = ties([Row(row.runs, row.resamples[:, kept]) for row in known], column.get("better") == "lower")
        groups = " ".join("{" + "; ".join(names[places[at]] for at in group) + "}" for group in found.groups)
        scale = column.get("scale_by", layout["scale_by"])
        numbers = [scale * value for value in (found.items, found.seeds, found.smallest)]
        notes.append(TIES.format(column["label"], groups, *numbers, d=column.get("decimals", layout["decimals"])))
    return [METHOD, *notes]
