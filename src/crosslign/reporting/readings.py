"""What a table shows, in words made from its cells: who leads, what differs beyond chance, how far the paper's figures are."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass

from crosslign.reporting.layout import PrintedTable


@dataclass(frozen=True)
class Distance:
    """How far the cells of a table lie from the published ones, on the printed scale.

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


def distance(table: PrintedTable) -> Distance:
    """Return the mean absolute difference over the cells that have a value of ours and a published figure."""
    found = [
        (abs(cell.value.ours * cell.scale_by - cell.value.published), f"{row.label}, {column['label']}")
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if cell.value.ours is not None and cell.value.published is not None
    ]
    if not found:
        return Distance(0)
    largest, place = max(found)
    return Distance(len(found), statistics.fmean(gap for gap, _ in found), largest, place)


def _leader(table: PrintedTable) -> str:
    """Say which row is best in most columns."""
    wins = Counter(row.label for row in table.rows for cell in row.cells if cell.best)
    contested = sum(any(row.cells[index].best for row in table.rows) for index in range(len(table.columns)))
    if not wins:
        return ""
    label, count = max(wins.items(), key=lambda item: item[1])
    return f"{label} is best in {count} of the {contested} columns in which systems can be compared."


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
    filled = sum(cell.value.ours is not None for cell in cells)
    if not filled:
        return f"None of the {len(cells)} cells has a value of ours; the footnotes say why."
    return " ".join(filter(None, [f"{filled} of {len(cells)} cells have a value of ours.", _leader(table), _beyond_chance(table)]))


def from_paper(table: PrintedTable) -> str:
    """Return how far a table is from the paper; at a reduced scale, that no comparison is meant."""
    gap = distance(table)
    if not gap.cells:
        return "No cell has both a value of ours and a published figure."
    if table.reduced:
        return f"{gap.cells} cells have a published figure beside ours; at this scale no comparison is meant."
    cells = "cell that has" if gap.cells == 1 else "cells that have"
    return (
        f"Over the {gap.cells} {cells} both, ours differ from the published figures by {gap.mean:.2f} points on average, "
        f"at most by {gap.largest:.2f} ({gap.place})."
    )
