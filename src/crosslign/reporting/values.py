"""The cells of a table: each value from score records, beside the published figure, or a reason for its absence."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosslign.entries.resolved import ResolvedCell, ResolvedTable
from crosslign.paths import COUNTS
from crosslign.reporting.published import Published
from crosslign.tasks.records import NoRecordError, find_record, origins

ROUNDING = 1e-12
"""Differences of fractions that differ by less are the same number."""


@dataclass
class Cell:
    """One cell.

    Attributes:
        ours: mean over runs, a fraction; None where there is none, with `reason` saying why.
        std: standard deviation over runs, or None for a single run: of the sample (ddof 1), unless the table asks for the population's.
        published: published figure, on the printed scale; None where there is none, or no plain number.
        printed: what was printed, letter by letter (`50.0`, `46k`, `738-750`).
        published_std: the standard deviation that was printed beside it, letter by letter.
        published_gain: the improvement that was printed beside it, signed, letter by letter.
        text: what stands in the place of a number: a setting of a recipe.
        ci_low, ci_high: 95 % interval of a single run, or None.
        records: the record of each run that the value depends on.
        score_files: their files, relative to `{results}`.
        parts: what an average was made of.
        marks: `best` in its column, unless all are equal or a run of it has collapsed; `above` or `below` when it differs from the row
            that it is compared with: by a paired test where the table asks for one, else where its interval lies wholly beside that row's.
        p_value: of no difference to that row, corrected for the rows of the column; None without a test.
        against: label of that row, where there was a test.
        estimated: whether a count in it is an estimate.
        notes: texts of the footnotes that concern this cell alone.
    """

    ours: float | None = None
    std: float | None = None
    published: float | None = None
    printed: str = ""
    published_std: str = ""
    published_gain: str = ""
    text: str = ""
    ci_low: float | None = None
    ci_high: float | None = None
    reason: str = ""
    records: list[dict[str, Any]] = field(default_factory=list)
    score_files: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    parts: list[Cell] = field(default_factory=list)
    p_value: float | None = None
    against: str = ""
    estimated: bool = False

    @property
    def filled(self) -> bool:
        """Whether it has something of ours: a value, or a setting of a recipe."""
        return self.ours is not None or bool(self.text)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval, where both of its ends are known."""
        return None if self.ci_low is None or self.ci_high is None else (self.ci_low, self.ci_high)

    @property
    def seeds(self) -> int:
        """Runs that the value is a mean over; none of a count."""
        if any(record.get("eval") == COUNTS for record in self.records):
            return 0
        return len(self.records) or (self.parts[0].seeds if self.parts else 0)

    @property
    def collapsed(self) -> bool:
        """Whether a run behind it has collapsed: its value stays, and means nothing."""
        return any(record.get("status") == "collapsed" for leaf in self.leaves for record in leaf.records)

    @property
    def trained(self) -> bool:
        """Whether a run behind it has a seed."""
        return any(record.get("seed") is not None for leaf in self.leaves for record in leaf.records)

    @property
    def leaves(self) -> list[Cell]:
        """The cells that hold the records: those that an average was made of, else this one."""
        return [leaf for part in self.parts for leaf in part.leaves] or [self]

    @property
    def files(self) -> list[str]:
        """The score files behind it, each once, relative to `{results}`."""
        return list(dict.fromkeys(file for leaf in self.leaves for file in leaf.score_files))


Grid = list[list[Cell]]
"""The cells of a table, row by row."""


def fill_cell(cell: ResolvedCell, results: Path) -> Cell:
    """Return the value of one resolved cell: the mean over its runs, or over its parts, or a reason."""
    if "total" in cell:
        return _total([fill_cell(part, results) for part in cell["parts"]])
    if "parts" in cell:
        return mean_cell([fill_cell(part, results) for part in cell["parts"]], "one of its parts")
    if "scores" not in cell:
        return Cell(reason=cell.get("reason", ""), text=cell.get("text", ""))
    records = [find_record(results / score, cell["select"]) for score in cell["scores"]]
    notes = [f"Scores of {origin}, not computed here." for origin in origins(results, cell["scores"])]
    filled = Cell(records=records, score_files=list(cell["scores"]), notes=notes)
    undefined = [record for record in records if record["value"] is None]
    if undefined:
        filled.reason = undefined[0].get("reason") or "undefined"
        return filled
    filled.notes += list(dict.fromkeys(f"Collapsed: {record['reason']}." for record in records if record.get("status") == "collapsed"))
    filled.notes += list(dict.fromkeys(record["note"] for record in records if record.get("note")))
    filled.estimated = any(record.get("estimated") for record in records)
    values = [float(record["value"]) for record in records]
    filled.ours = math.fsum(values) / len(values)
    if len(values) > 1:
        filled.std = statistics.stdev(values)
    else:
        filled.ci_low, filled.ci_high = records[0].get("ci_low"), records[0].get("ci_high")
    return filled


def run_values(cell: Cell) -> list[float]:
    """Return a cell's value of each run, of an average the mean over its parts; empty where they have not the same runs."""
    if not cell.parts:
        return [record["value"] for record in cell.records]
    parts = [run_values(part) for part in cell.parts]
    return [math.fsum(values) / len(values) for values in zip(*parts, strict=True)] if len({*map(len, parts)}) == 1 else []


def mean_cell(cells: Sequence[Cell], missing: str) -> Cell:
    """Return the mean of cells, run by run where they have the same runs; no value where one of them has none.

    Args:
        cells: what is averaged.
        missing: what to call a cell without a value in the reason.
    """
    empty = next((cell for cell in cells if cell.ours is None), None)
    if empty is not None and all(cell.ours is None and cell.reason == empty.reason for cell in cells):
        return Cell(reason=empty.reason)
    if empty is not None:
        return Cell(reason=f"no value in {missing}" + (f": {empty.reason}" if empty.reason else ""))
    found = Cell(notes=_notes_of(cells), parts=list(cells))
    means = run_values(found)
    found.std = statistics.stdev(means) if len(means) > 1 else None
    values = means if len(means) > 1 else [cell.ours or 0.0 for cell in cells]
    found.ours = math.fsum(values) / len(values)
    return found


def _notes_of(cells: Sequence[Cell]) -> list[str]:
    return list(dict.fromkeys(note for cell in cells for note in cell.notes))


def _total(cells: Sequence[Cell]) -> Cell:
    """Return the sum of counts; no value where one of them has none."""
    if empty := next((cell for cell in cells if cell.ours is None), None):
        return Cell(reason=empty.reason)
    files = [file for cell in cells for file in cell.score_files]
    total, estimated = math.fsum(cell.ours or 0.0 for cell in cells), any(cell.estimated for cell in cells)
    return Cell(ours=total, score_files=files, notes=_notes_of(cells), estimated=estimated)


def cell_or_gap(cell: ResolvedCell, resolved: ResolvedTable, results: Path) -> Cell:
    """Return the value of a cell; where its scores lack it, a gap with its reason if the table asks for that.

    Raises:
        InputError: its scores lack it, and the table does not say `print: {gaps: mark}`.
    """
    try:
        return fill_cell(cell, results)
    except NoRecordError as error:
        if resolved.get("print", {}).get("gaps") != "mark":
            raise
        return Cell(reason=f"gap: {error.what} in {Path(error.where).name}")


def cell_value(resolved: ResolvedTable, results: Path, row: int, column: int) -> Cell:
    """Return the value of one cell of a resolved table, the mean of other columns from unrounded values, as the table prints it.

    Raises:
        InputError: scores lack a value; with `print: {gaps: mark}` the cell is a gap instead.
    """
    cell, labels = resolved["cells"][row][column], [entry["label"] for entry in resolved["columns"]]
    if "mean_of" in cell:
        values = {label: cell_value(resolved, results, row, labels.index(label)) for label in cell["mean_of"]}
        found = mean_cell(list(values.values()), next((label for label, value in values.items() if value.ours is None), ""))
    else:
        found = cell_or_gap(cell, resolved, results)
    if found.std is not None and resolved.get("print", {}).get("std") == "population":  # with ddof 0
        found.std *= math.sqrt((found.seeds - 1) / found.seeds)
    return found


def fill_cells(resolved: ResolvedTable, results: Path) -> Grid:
    """Return the values of a resolved table's cells, without published figures and marks.

    Args:
        resolved: a table as `crosslign.config.cells.resolve_table` gives it.
        results: the `{results}` folder that score files are relative to.

    Raises:
        InputError: scores lack a value; with `print: {gaps: mark}` the cell is a gap instead.
    """
    columns = range(len(resolved["columns"]))
    return [[cell_value(resolved, results, row, column) for column in columns] for row in range(len(resolved["cells"]))]


def fill_grid(resolved: ResolvedTable, results: Path, figures: Published) -> Grid:
    """Return the cells of a resolved table, beside published figures.

    Args:
        resolved: a table as `crosslign.config.cells.resolve_table` gives it.
        results: the `{results}` folder that score files are relative to.
        figures: published figures of this table.
    """
    columns, grid = resolved["columns"], fill_cells(resolved, results)
    for row, entry in zip(grid, resolved["rows"], strict=True):
        for cell, column in zip(row, columns, strict=True):
            figure = figures.at(entry, column)
            cell.printed, cell.published_std, cell.published_gain = figure.value, figure.std, figure.gain
            cell.published = None if "setting_of" in column else figure.number
            cell.notes += figure.notes
    return grid
