"""What a table shows, in words made from its cells: who leads, what differs beyond chance, how far the paper's figures are."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crosslign.reporting.layout import PrintedCell, PrintedTable

FACTORS = {"": 1, "k": 1e3, "M": 1e6}


@dataclass(frozen=True)
class Distance:
    """How far cells of a table lie from the published ones.

    Attributes:
        cells: cells that have both values.
        mean: mean absolute difference over them; None where there are none.
        largest: the largest absolute difference; None where there are none.
        place: row and column of the largest.
    """

    cells: int
    mean: float | None = None
    largest: float | None = None
    place: str = ""


def printed_number(text: str) -> float | None:
    """Return the number that was printed, as `46k`, `16M` or `392,702` too; None where it is none."""
    found = re.fullmatch(r"(-?\d+(?:,\d{3})*(?:\.\d+)?)([kM]?)", text)
    return float(found[1].replace(",", "")) * FACTORS[found[2]] if found else None


def _pairs(table: PrintedTable) -> Iterator[tuple[str, PrintedCell, float, float]]:
    """Yield the place of each cell that has both, the cell, and both values on the printed scale."""
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            published = cell.value.published if cell.value.published is not None else printed_number(cell.value.printed)
            if cell.value.ours is not None and published is not None:
                yield f"{row.name}, {column['name']}", cell, cell.value.ours * cell.scale_by, published


def _distance(gaps: Sequence[tuple[float, str]]) -> Distance:
    if not gaps:
        return Distance(0)
    largest, place = max(gaps)
    return Distance(len(gaps), statistics.fmean(gap for gap, _ in gaps), largest, place)


def distance(table: PrintedTable) -> Distance:
    """Return the mean absolute difference, in points, over the cells in percent that have both values."""
    return _distance([(abs(ours - published), place) for place, cell, ours, published in _pairs(table) if cell.scale_by == 100])


def relative_distance(table: PrintedTable) -> Distance:
    """Return the same over all other cells, whose units may differ: in percent of the published figure."""
    pairs = [(place, ours, published) for place, cell, ours, published in _pairs(table) if cell.scale_by != 100 and published]
    return _distance([(100 * abs(ours / published - 1), place) for place, ours, published in pairs])


def _leader(table: PrintedTable) -> str:
    """Say which row is best in most columns, or which rows are."""
    wins = Counter(number for number, row in enumerate(table.rows) for cell in row.cells if cell.best)
    contested = sum(any(row.cells[index].best for row in table.rows) for index in range(len(table.columns)))
    if not wins:
        return ""
    count = max(wins.values())
    first = [row.name for number, row in enumerate(table.rows) if wins[number] == count]
    leaders = " and ".join(first) if len(first) < 3 else f"{len(first)} rows"
    return (
        f"{leaders} {'is' if len(first) == 1 else 'are each'} best in {count} of the {contested} columns in which systems can be compared."
    )


def _beyond_chance(table: PrintedTable) -> str:
    """Say how many cells differ beyond chance from the row that they are compared with."""
    signs = Counter(cell.sign for row in table.rows for cell in row.cells)
    if not signs["↑"] and not signs["↓"]:
        return ""
    row = f"the first row ({table.rows[0].label})" if table.baseline == "the first row" else table.baseline
    return f"Beyond chance, {signs['↑']} cells lie above {row} and {signs['↓']} below it."


def seen(table: PrintedTable) -> str:
    """Return what we see in a table."""
    cells = [cell for row in table.rows for cell in row.cells]
    filled = sum(cell.value.filled for cell in cells)
    if not filled:
        return f"None of the {len(cells)} cells has a value of ours; the footnotes say why."
    return " ".join(filter(None, [f"{filled} of {len(cells)} cells have a value of ours.", _leader(table), _beyond_chance(table)]))


def _gap_words(gap: Distance, unit: str) -> str:
    cells = "cell that has" if gap.cells == 1 else "cells that have"
    return (
        f"Over the {gap.cells} {cells} both{', no percentages' * (unit != 'points')}, ours differ from the published figures by "
        f"{gap.mean:.2f} {unit} on average, at most by {gap.largest:.2f} ({gap.place})."
    )


def from_paper(table: PrintedTable) -> str:
    """Return how far a table is from the paper; at a reduced scale, that no comparison is meant."""
    both = sum(cell.value.filled and bool(cell.published) for row in table.rows for cell in row.cells)
    if not both:
        return "No cell has both a value of ours and a published figure."
    if table.reduced:
        return f"{both} cells have a published figure beside ours; at this scale no comparison is meant."
    gaps = [(distance(table), "points"), (relative_distance(table), "% of them")]
    said = " ".join(_gap_words(gap, unit) for gap, unit in gaps if gap.cells)
    return said or f"{both} cells have a published value beside ours, in words."
