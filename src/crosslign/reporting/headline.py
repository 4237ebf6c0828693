"""One column of a table, told before all others: its bars, and in words its first row beside its best one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosslign.reporting.layout import PrintedTable
from crosslign.reporting.values import Cell


@dataclass(frozen=True)
class Bar:
    """A row's value in one column, on the printed scale.

    Attributes:
        interval: its 95 % interval; of several runs, one standard deviation to each side; None where neither is known.
    """

    label: str
    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Headline:
    """One column of a table, told before all others.

    Attributes:
        column: its group and label.
        bars: rows that have a value in it, as printed; the first is the one that others are set against.
        end: where the longest bar or interval ends, on the printed scale.
        lower: whether less is better.
    """

    column: str
    bars: Sequence[Bar]
    end: float
    lower: bool = False

    @property
    def words(self) -> str:
        """The first row's value and the best one's."""
        first, best = self.bars[0], (min if self.lower else max)(self.bars, key=lambda bar: bar.value)
        none = f"and no system lies {'below' if self.lower else 'above'} it"
        told = f"{best.value:.1f} for {best.label}" if best.value != first.value else none
        return f"{self.column}: {first.value:.1f} for {first.label}, {told}."


def headline(table: PrintedTable) -> Headline | None:
    """Return the first column of a retrieval in which two rows have values, else the first such column of percentages; or None."""
    found = [(column, bars) for index, column in enumerate(table.columns) if len(bars := _bars(table, index)) > 1]
    found.sort(key=lambda entry: "retrieval" not in entry[0]["group"].lower())
    if not found:
        return None
    column, bars = found[0]
    end = max(end for bar in bars for end in (bar.value, *(bar.interval or ())))
    return Headline(": ".join(filter(None, (column["group"], column["label"]))), bars, end or 1.0, column.get("better") == "lower")


def _bars(table: PrintedTable, index: int) -> list[Bar]:
    cells = [(row.name, row.cells[index]) for row in table.rows]
    return [
        Bar(name, 100 * cell.value.ours, _interval(cell.value))
        for name, cell in cells
        if cell.scale_by == 100 and cell.value.ours is not None and cell.value.ours >= 0
    ]


def _interval(cell: Cell) -> tuple[float, float] | None:
    ends = cell.interval
    if ends is None and cell.ours is not None and cell.std is not None:
        ends = max(cell.ours - cell.std, 0.0), cell.ours + cell.std
    return ends and (100 * ends[0], 100 * ends[1])
