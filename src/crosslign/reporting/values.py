"""The values of a table: each cell from score records, beside the published figure, or a reason for its absence."""

from __future__ import annotations

import functools
import math
import shlex
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.config.baselines import baseline_rows
from crosslign.errors import InputError
from crosslign.files import read_json
from crosslign.paths import origin_files
from crosslign.reporting.cell import Cell, Grid
from crosslign.reporting.published import Published
from crosslign.reporting.significance import LEVEL, TESTS, mark_differences
from crosslign.tasks.records import check_value

RECORD = {"eval", "subset", "metric", "value"}
"""What each record of a score file has."""
NAMES = ("eval", "subset", "metric", "protocol", "direction")
"""Fields that a record is found by: texts."""
TEXTS = ("run_id", "checkpoint", "threshold_from", "status", "reason", "note")
COUNTS = ("n_items", "seed")
"""Further fields that are read where a record has them: texts, and whole numbers."""


KEPT = 16
"""Score files whose records are kept in memory; of the largest, Tatoeba's, each takes some megabytes."""
UNNAMED = "another group"
"""Whose scores those are whose `origin.txt` is empty."""


class NoRecordError(InputError):
    """A score file that has no record for a cell."""


def cell_parts(resolved: Mapping[str, Any], row: int, column: int) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the resolved cells that hold a cell's scores, each with its column's label; more than one for averages and sums."""
    cell, labels = resolved["cells"][row][column], [entry["label"] for entry in resolved["columns"]]
    if "mean_of" in cell:
        return [part for label in cell["mean_of"] for part in cell_parts(resolved, row, labels.index(label))]
    return [(labels[column], part) for part in cell.get("parts", [cell])]


def records_of(path: Path) -> list[dict[str, Any]]:
    """Return the records of a score file.

    Raises:
        InputError: the file is missing, or is none; names it, and the target to run.
    """
    try:
        stat = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError("file is missing", where=str(path), do=f"Run snakemake --cores all -- {shlex.quote(str(path))}") from error
    except OSError as error:
        raise InputError("cannot be read", where=str(path), why=str(error.strerror)) from error
    return _read_records(path, (stat.st_mtime_ns, stat.st_size, stat.st_ino))


@functools.lru_cache(maxsize=KEPT)
def _read_records(path: Path, version: tuple[int, ...]) -> list[dict[str, Any]]:
    """Read the records of one version of a score file: the cells of a row mostly read the same few files."""
    content = read_json(path)
    records = content.get("records") if isinstance(content, dict) else None
    if not isinstance(records, list) or not all(map(_is_record, records)):
        why = f"it holds `records`, each with {', '.join(sorted(RECORD))}"
        raise InputError("not a score file", where=str(path), why=why, do="Delete it; the next run makes it again")
    return records


def _is_record(record: Any) -> bool:
    """Tell whether a record can be found: it has all fields, and texts where it is found by them."""
    return isinstance(record, dict) and record.keys() >= RECORD and all(isinstance(record.get(key), str | None) for key in NAMES)


def checked_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a score file, each looked at: values that their metrics can have, fields of the right kinds.

    Raises:
        InputError: as `records_of`, and where one is neither.
    """
    records = records_of(path)
    for record in records:
        _check(record, str(path))
    return records


def _check(record: Mapping[str, Any], where: str) -> None:
    """Refuse a record with a value that its metric cannot have, or whose fields are of the wrong kind.

    Raises:
        InputError: names file, evaluation, subset and field.
    """
    check_value(record, where)
    wrong = [(key, "a text") for key in TEXTS if not isinstance(record.get(key) or "", str)]
    wrong += [(key, "a whole number") for key in COUNTS if not isinstance(record.get(key) or 0, int)]
    if not isinstance(record.get("threshold") or 0.0, int | float):
        wrong.append(("threshold", "a number"))
    if wrong:
        key, kind = wrong[0]
        what, place = f"{key} is {repr(record[key])[:40]}", f"{where}: {record['eval']}/{record['subset']}"
        raise InputError(
            what, where=place, why=f"it is {kind}", do="Ask those who made the scores, or delete the file: the next run makes ours"
        )


def find_record(path: Path, select: Mapping[str, str]) -> dict[str, Any]:
    """Return the one record of a score file that fits `select` (task, subset, metric, protocol, direction); what it lacks is empty.

    Raises:
        InputError: the file is missing; none fits, or more than one; names the file, what it holds and the target to run.
    """
    records = records_of(path)
    wanted = {("eval" if key == "task" else key): value for key, value in select.items()}
    found = [record for record in records if all((record.get(key) or "") == value for key, value in wanted.items())]
    if len(found) != 1:
        held = sorted({f"{r['metric']}/{r['subset']}/{r.get('protocol') or ''}/{r.get('direction') or ''}" for r in records})
        why = f"it holds (metric/subset/protocol/direction): {', '.join(held[:12])}"
        place, asked = shlex.quote(str(path)), ", ".join(f"{key} {value}" for key, value in wanted.items() if value)
        do = "Name subset, metric, protocol and direction of the column; if the file lost records, "
        kind = InputError if found else NoRecordError
        raise kind(
            f"{len(found)} records fit {asked}", where=str(path), why=why, do=f"{do}snakemake --cores all --forcerun {place} -- {place}"
        )
    _check(found[0], str(path))
    return {**found[0], **{key: found[0].get(key) or "" for key in ("protocol", "direction")}}


def origins(results: Path, scores: Sequence[str]) -> list[str]:
    """Return whose scores these are, where they are not ours: the first line of an `origin.txt` beside a score file or above it.

    Args:
        results: the `{results}` folder.
        scores: score files, relative to it; folders are searched up to its `scores`.
    """
    notes = dict.fromkeys(note for score in scores for note in origin_files(results, score))
    lines = [note.read_text(encoding="utf-8-sig", errors="replace").strip().partition("\n")[0][:200] for note in notes]
    return sorted({line or UNNAMED for line in lines})


def fill_cell(cell: Mapping[str, Any], results: Path) -> Cell:
    """Return the value of one resolved cell: the mean over its runs, or over its parts, or a reason."""
    if "total" in cell:
        return _total([fill_cell(part, results) for part in cell["parts"]])
    if "parts" in cell:
        return mean_cell([fill_cell(part, results) for part in cell["parts"]], "one of its parts")
    if "scores" not in cell:
        return Cell(reason=cell.get("reason", ""), text=cell.get("text", ""))
    records = [find_record(results / score, cell["select"]) for score in cell["scores"]]
    filled = Cell(records=records, score_files=list(cell["scores"]))
    filled.notes = [f"Scores of {origin}, not computed here." for origin in origins(results, cell["scores"])]
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
    notes = list(dict.fromkeys(note for cell in cells for note in cell.notes))
    means = run_values(Cell(parts=list(cells)))
    if len(means) > 1:
        return Cell(ours=math.fsum(means) / len(means), std=statistics.stdev(means), notes=notes, parts=list(cells))
    values = [cell.ours or 0.0 for cell in cells]
    return Cell(ours=math.fsum(values) / len(values), notes=notes, parts=list(cells))


def _total(cells: Sequence[Cell]) -> Cell:
    """Return the sum of counts."""
    files = [file for cell in cells for file in cell.score_files]
    notes = list(dict.fromkeys(note for cell in cells for note in cell.notes))
    total = math.fsum(cell.ours or 0.0 for cell in cells)
    return Cell(ours=total, score_files=files, notes=notes, estimated=any(cell.estimated for cell in cells))


def _mark_best(columns: Sequence[Mapping[str, Any]], grid: Grid) -> None:
    for index, column in enumerate(columns):
        cells = [row[index] for row in grid if not row[index].collapsed]
        values = [cell.ours for cell in cells if cell.ours is not None]
        if len(set(values)) > 1 and "count" not in column:
            best = min(values) if column.get("better") == "lower" else max(values)
            for cell in cells:
                if cell.ours == best:
                    cell.marks.append("best")


def _mark_intervals(grid: Grid, baselines: Sequence[int | None]) -> None:
    compared = [(row, grid[place]) for row, place in zip(grid, baselines, strict=True) if place is not None]
    for cell, first in [cells for row, other in compared for cells in zip(row, other, strict=True)]:
        if cell.interval and first.interval:
            (low, high), (first_low, first_high) = cell.interval, first.interval
            cell.marks += ["above"] if low > first_high else ["below"] if high < first_low else []


def with_deviation(cell: Cell, resolved: Mapping[str, Any]) -> Cell:
    """Return a cell with the standard deviation that its table asks for: `print: std` is `sample`, ddof 1, or `population`, ddof 0."""
    if cell.std is not None and resolved.get("print", {}).get("std") == "population":
        cell.std *= math.sqrt((cell.seeds - 1) / cell.seeds)
    return cell


def cell_or_gap(cell: Mapping[str, Any], resolved: Mapping[str, Any], results: Path) -> Cell:
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


def cell_value(resolved: Mapping[str, Any], results: Path, row: int, column: int) -> Cell:
    """Return the value of one cell of a resolved table, the mean of other columns from unrounded values, as the table prints it.

    Raises:
        InputError: scores lack a value; with `print: {gaps: mark}` the cell is a gap instead.
    """
    cell, labels = resolved["cells"][row][column], [entry["label"] for entry in resolved["columns"]]
    if "mean_of" not in cell:
        return with_deviation(cell_or_gap(cell, resolved, results), resolved)
    values = {label: cell_value(resolved, results, row, labels.index(label)) for label in cell["mean_of"]}
    missing = [label for label, value in values.items() if value.ours is None]
    return with_deviation(mean_cell(list(values.values()), missing[0] if missing else ""), resolved)


def fill_cells(resolved: Mapping[str, Any], results: Path) -> Grid:
    """Return the values of a resolved table's cells, without published figures and marks.

    Args:
        resolved: a table as `crosslign.config.cells.resolve_table` gives it.
        results: the `{results}` folder that score files are relative to.

    Raises:
        InputError: scores lack a value; with `print: {gaps: mark}` the cell is a gap instead.
    """
    columns = range(len(resolved["columns"]))
    return [[cell_value(resolved, results, row, column) for column in columns] for row in range(len(resolved["cells"]))]


def fill_grid(resolved: Mapping[str, Any], results: Path, figures: Published) -> Grid:
    """Return the cells of a resolved table.

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
    _mark_best(columns, grid)
    baselines, test = baseline_rows(resolved["rows"]), resolved.get("print", {}).get("significance")
    if test:
        labels = [row["label"] for row in resolved["rows"]]
        mark_differences(grid, baselines, labels, TESTS[test](results), resolved["print"].get("level", LEVEL))
    else:
        _mark_intervals(grid, baselines)
    return grid
