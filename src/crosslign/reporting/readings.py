"""What a table shows, in words made from its cells: who leads, what differs beyond chance, how far the paper's figures are."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from crosslign.console import number_of
from crosslign.reporting.layout import PrintedCell, PrintedTable
from crosslign.reporting.published import printed_number


def _pairs(table: PrintedTable) -> Iterator[tuple[str, PrintedCell, float, float]]:
    """Yield the place of each cell that has both, the cell, and both values on the printed scale."""
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            published = cell.value.published if cell.value.published is not None else printed_number(cell.value.printed)
            if cell.value.ours is not None and published is not None:
                yield f"{row.name}, {column['name']}", cell, cell.value.ours * cell.scale_by, published


def score_files(table: PrintedTable) -> list[str]:
    """Return the score files that a table shows, relative to `{results}`."""
    return sorted({file for cell in table.cells for file in cell.value.files})


def _columns(count: int) -> str:
    return "the only column" if count == 1 else f"the {count} columns"


def _leader(table: PrintedTable) -> str:
    """Say which row is best in most columns, or which rows are; or that systems are equal wherever two of them can be compared."""
    wins = Counter(number for number, row in enumerate(table.rows) for cell in row.cells if cell.best)
    places = range(len(table.columns))
    contested = sum(any(row.cells[index].best for row in table.rows) for index in places)
    if not wins:
        values = [[row.cells[index].value for row in table.rows] for index in places]
        compared = [sum(cell.ours is not None and cell.seeds > 0 and not cell.collapsed for cell in column) > 1 for column in values]
        return f"Systems are equal in {_columns(sum(compared))} that can be compared." if any(compared) else ""
    count = max(wins.values())
    first = [row.name for number, row in enumerate(table.rows) if wins[number] == count]
    leaders = " and ".join(first) if len(first) < 3 else f"{len(first)} rows"
    share = "" if contested == 1 else f"{count} of "
    return f"{leaders} {'is' if len(first) == 1 else 'are each'} best in {share}{_columns(contested)} in which systems differ."


def _beyond_chance(table: PrintedTable) -> str:
    """Say how many cells differ beyond chance from the row that they are compared with."""
    signs = Counter(cell.sign for cell in table.cells)
    if not signs["↑"] and not signs["↓"]:
        return ""
    row = f"the first row ({table.rows[0].label})" if table.baseline == "the first row" else table.baseline
    return f"Beyond chance, {number_of(signs['↑'], 'cell')} {'lies' if signs['↑'] == 1 else 'lie'} above {row} and {signs['↓']} below it."


def seen(table: PrintedTable) -> str:
    """Return what we see in a table."""
    filled = [cell.value for cell in table.cells if cell.value.filled]
    collapsed = sum(value.collapsed for value in filled)
    if not filled:
        return f"None of the {len(table.cells)} cells has a value of ours; the footnotes say why."
    have = f"{len(filled)} of {_have(len(table.cells))} a value of ours."
    fallen = f"In {'all' if collapsed == len(filled) > 1 else collapsed} of them the system has collapsed." if collapsed else ""
    return " ".join(filter(None, [have, fallen, _leader(table), _beyond_chance(table)]))


def _distance(gaps: Sequence[tuple[float, str]], of: str, unit: str) -> str:
    """Say the mean and the largest of absolute differences, each with its cell's place; nothing where there are none."""
    if not gaps:
        return ""
    largest, place = max(gaps)
    cells = f"{len(gaps)} {'cell that has' if len(gaps) == 1 else 'cells that have'} both{of}"
    mean = statistics.fmean(gap for gap, _ in gaps)
    return f"Over the {cells}, ours differ from the published figures by {mean:.2f} {unit} on average, at most by {largest:.2f} ({place})."


def _have(cells: int) -> str:
    return f"{number_of(cells, 'cell')} {'has' if cells == 1 else 'have'}"


def from_paper(table: PrintedTable) -> str:
    """Return how far a table is from the paper; at a reduced scale, that no comparison is meant."""
    published = [cell for cell in table.cells if cell.published]
    both = sum(cell.value.filled for cell in published)
    if not both:
        return "No cell has both a value of ours and a published figure." if published else ""
    if table.reduced:
        return f"{_have(both)} a published figure beside ours; at this scale they cannot be compared."
    pairs = list(_pairs(table))
    points = [(abs(ours - published), place) for place, cell, ours, published in pairs if cell.scale_by == 100]
    others = [(100 * abs(ours / published - 1), place) for place, cell, ours, published in pairs if cell.scale_by != 100 and published]
    said = " ".join(filter(None, (_distance(points, "", "points"), _distance(others, ", no percentages", "% of them"))))
    return said or f"{_have(both)} a published value beside ours, in words."
