"""Two results folders side by side: which cells of their tables moved, whether by more than chance, and which input differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from crosslign.config.baselines import full_name, layout_of
from crosslign.config.cells import cell_parts, table_files
from crosslign.console import as_columns, number_of, printable
from crosslign.entries.resolved import ResolvedCell, ResolvedTable
from crosslign.errors import InputError
from crosslign.files.lineage import FOLDERS, as_written, lineage_path, sidecar_if_there
from crosslign.files.text import read_text
from crosslign.files.walk import files_below
from crosslign.provenance.causes import OTHER_CODE, Causes, changed_keys, other_code
from crosslign.reporting.significance import LEVEL, Reader, holm, paired_bootstrap, resamples_of, resamples_reader
from crosslign.reporting.values import Cell, fill_cell, fill_cells, run_values
from crosslign.tasks.records import records_of

PAIRED, SEEDS, INTERVALS = "paired", "seeds", "intervals"
LEGEND = {
    PAIRED: "paired: bootstrap on the same items and over seeds, p after Holm's correction for the moved cells of its column",
    SEEDS: "seeds: Welch's t-test over runs, p after the same correction",
    INTERVALS: "intervals: whether the 95 % intervals do not overlap",
}
SHOWN = 20
"""Score files outside of tables that are listed."""
Side = tuple[Path, ResolvedTable]
"""A results folder, and a table as it was resolved there."""


@dataclass(frozen=True)
class Move:
    """One cell, or one record outside of tables, whose value differs.

    Attributes:
        row, column: their headings and labels.
        before, after: as printed: on the printed scale, with one decimal more than the table; a dash where there is no value.
        delta: signed, or empty.
        files: score files behind it, of both sides.
        asked: what the table asks of them that it did not ask before, in words.
        test: `paired`, `seeds`, `intervals`, or empty where none was possible.
        p_value: None without a test that gives one.
        significant: None without a test.
    """

    row: str
    column: str
    before: str
    after: str
    delta: str
    files: tuple[str, ...]
    asked: tuple[str, ...] = ()
    test: str = ""
    p_value: float | None = None
    significant: bool | None = None


def score_files(results: Path) -> set[str]:
    """Return the score files of a results folder, relative to it.

    Raises:
        InputError: there is no folder of scores.
    """
    folder = results / "scores"
    if not folder.is_dir():
        raise InputError("no scores here", where=str(folder), do="Give a results folder with its scale, such as results/laptop")
    found = (path for path in files_below(folder) if path.suffix == ".json" and not path.name.endswith(FOLDERS))
    return {path.relative_to(results).as_posix() for path in found}


def tables(results: Path) -> dict[str, ResolvedTable]:
    """Return the tables of a results folder as they were resolved when they were made, by id."""
    found: dict[str, ResolvedTable] = {}
    for path in [path for path in files_below(results / "tables") if path.suffix == ".csv"]:
        with as_written(lineage_path(path)):
            if lineage := sidecar_if_there(lineage_path(path)):
                found[path.stem] = cast(ResolvedTable, {**lineage["recipe"], "id": path.stem})
    return found


def _lineage_of(side: Side) -> Path:
    return lineage_path(side[0] / "tables" / f"{side[1]['id']}.csv")


def _named(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the headings and labels of rows or columns; a second one of the same name carries its system or its number."""
    names: list[str] = []
    for entry in entries:
        name = full_name(entry)
        names.append(name if name not in names else f"{name} ({entry.get('system', names.count(name) + 1)})")
    return names


def _grid(results: Path, resolved: ResolvedTable) -> dict[tuple[str, str], tuple[Cell, list[ResolvedCell]]]:
    """Return each cell with its value and the cells that hold its scores, by the names of its row and column."""
    found, columns = {}, _named(resolved["columns"])
    for at, (row, values) in enumerate(zip(_named(resolved["rows"]), fill_cells(resolved, results), strict=True)):
        for to, (column, value) in enumerate(zip(columns, values, strict=True)):
            found[row, column] = (value, [part for _, part in cell_parts(resolved, at, to) if "scores" in part])
    return found


def _items(parts: Iterable[ResolvedCell], results: Path) -> list[Any]:
    """Return what tells whether two cells were measured on the same items: the texts and gold that their scores read, or their number."""
    found: list[Any] = []
    for part in parts:
        lineage = sidecar_if_there(lineage_path(results / part["scores"][0]))
        inputs = lineage["inputs"] if lineage else []
        read = sorted(entry["sha256"] for entry in inputs if entry["path"].startswith("corpora/"))
        found.append(read or [record.get("n_items") for record in fill_cell(part, results).records][:1])
    return found


def welch(before: Sequence[float], after: Sequence[float]) -> float | None:
    """Return the two-sided p-value of Welch's t-test over runs; None with fewer than two runs on a side or without any spread."""
    from scipy.stats import ttest_ind

    if min(len(before), len(after)) < 2 or (np.ptp(before) == 0 and np.ptp(after) == 0):
        return None
    return float(ttest_ind(after, before, equal_var=False).pvalue)


def _tested(move: Move, old: tuple[Path, Cell, list[Any]], new: tuple[Path, Cell, list[Any]], counted: bool, read: Reader) -> Move:
    """Return a move with the strongest test that both sides allow: paired, over seeds, by intervals."""
    (before, cell, parts), (after, other, others) = old, new
    if counted or cell.ours is None or other.ours is None:
        return move
    if _items(parts, before) == _items(others, after):
        values, baseline = resamples_of(other, after, read), resamples_of(cell, before, read)
        if values is not None and baseline is not None and np.array_equal(values, baseline, equal_nan=True):
            return move  # the values were changed without their resamples: these say nothing about them
        if values is not None and baseline is not None and (found := paired_bootstrap(values, baseline)):
            return replace(move, test=PAIRED, p_value=found.p_value)
    if (p_value := welch(run_values(cell), run_values(other))) is not None:
        return replace(move, test=SEEDS, p_value=p_value)
    if cell.interval is None or other.interval is None:
        return move
    (low, high), (other_low, other_high) = cell.interval, other.interval
    return replace(move, test=INTERVALS, significant=low > other_high or high < other_low)


def _asked(where: str, parts: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return in words what a cell asks of its scores that it did not ask before: another subset, metric, protocol or direction."""
    if len(parts) != len(others):
        return (f"{where}: of {number_of(len(parts), 'evaluation')} → of {len(others)}",)
    changed = (change for old, new in zip(parts, others, strict=True) for change in changed_keys(old["select"], new["select"]))
    return tuple(dict.fromkeys(f"{where}: {key} {before or 'none'} → {after or 'none'}" for key, before, after in changed))


def _number(cell: Cell, scale_by: float, decimals: int) -> str:
    return printable(cell.text) or ("–" if cell.ours is None else f"{cell.ours * scale_by:.{decimals}f}")


def _corrected(moves: Sequence[Move]) -> list[Move]:
    """Return moves with their p-values corrected column by column."""
    corrected = list(moves)
    for column in dict.fromkeys(move.column for move in moves):
        tested = [(at, move.p_value) for at, move in enumerate(moves) if move.column == column and move.p_value is not None]
        for (at, _), p_value in zip(tested, holm([p_value for _, p_value in tested]), strict=True):
            corrected[at] = replace(moves[at], p_value=p_value, significant=p_value < LEVEL)
    return corrected


def table_moves(before: Side, after: Side) -> tuple[list[Move], int]:
    """Return the cells of a table whose values differ, row by row, and how many cells both sides have.

    Args:
        before, after: folder and resolved table of each side; rows and columns are matched by their headings and labels.

    Raises:
        InputError: a score file that a table names is gone.
    """
    with as_written(_lineage_of(before)):
        old = _grid(*before)
    new = _grid(*after)
    entries = dict(zip(_named(after[1]["columns"]), after[1]["columns"], strict=True))
    layout, read = layout_of(after[1]), resamples_reader()
    found = []
    shared = [place for place in new if place in old]
    for row, column in shared:
        (cell, parts), (other, others) = old[row, column], new[row, column]
        if (cell.ours, cell.text) == (other.ours, other.text):
            continue
        entry = {**layout, **entries[column]}
        scale_by, decimals = entry["scale_by"], entry["decimals"] + 1
        delta = "" if cell.ours is None or other.ours is None else f"{(other.ours - cell.ours) * scale_by:+.{decimals}f}"
        files = tuple(dict.fromkeys(score for part in [*parts, *others] for score in part["scores"]))
        asked = _asked(f"the column {column} of {after[1]['id']}", parts, others)
        move = Move(row, column, _number(cell, scale_by, decimals), _number(other, scale_by, decimals), delta, files, asked)
        found.append(_tested(move, (before[0], cell, parts), (after[0], other, others), "count" in entry, read))
    return _corrected(found), len(shared)


def _record_moves(before: Path, after: Path, file: str) -> Iterator[Move]:
    """Yield the records of a score file whose values differ.

    Raises:
        InputError: one side is not a score file.
    """
    keys, read = ("subset", "metric", "direction", "protocol"), resamples_reader()
    old, new = ({tuple(r.get(key, "") for key in keys): r["value"] for r in records_of(folder / file)} for folder in (before, after))
    for name in [name for name in new if name in old and old[name] != new[name]]:
        part: ResolvedCell = {"scores": [file], "select": dict(zip(keys, name, strict=True))}
        cells = [fill_cell(part, folder) for folder in (before, after)]
        shown = [_number(cell, 100, 2) for cell in cells]
        delta = "–" if None in (old[name], new[name]) else f"{100 * (new[name] - old[name]):+.2f}"
        move = Move(file.removeprefix("scores/"), " ".join(filter(None, name)), shown[0], shown[1], delta, (file,))
        yield _tested(move, (before, cells[0], [part]), (after, cells[1], [part]), False, read)


def record_moves(before: Path, after: Path, files: Iterable[str]) -> tuple[list[Move], list[str]]:
    """Return the records of score files whose values differ, for scores that no compared table shows, and what is wrong with files."""
    found: list[Move] = []
    complaints: list[str] = []
    for file in sorted(files):
        try:
            found += list(_record_moves(before, after, file))
        except InputError as error:
            complaints.append(f"{file}: not compared, {error}")
    return _corrected(found), complaints


def _verdict(move: Move) -> str:
    if move.significant is None:
        return "not tested"
    answer = "yes" if move.significant else "no"
    return f"{answer}, p {move.p_value:.3f}, {move.test}" if move.p_value is not None else f"{answer}, {move.test}"


class _Reasons:
    """Numbers the causes behind moves in reading order."""

    def __init__(self, causes: Causes) -> None:
        self.causes = causes
        self.numbers: dict[str, int] = {}

    def of(self, move: Move, shared: set[str]) -> str:
        """Return the numbers of what differs first behind a move."""
        found = [cause for file in move.files if file in shared for cause in self.causes.of(file) or self._touched(file)]
        found += [*move.asked, *(f"{file}: only on one side" for file in move.files if file not in shared)]
        numbers = {self.numbers.setdefault(cause, len(self.numbers) + 1) for cause in found}
        return f"[{ranges_of(sorted(numbers))}]" if numbers else ""

    def _touched(self, file: str) -> tuple[str, ...]:
        """Return the cause of scores that differ while their lineage does not."""
        before, after = (read_text(folder / file) for folder in self.causes.folders)
        return () if before == after else (f"{file}: its bytes differ, but its lineage does not: one file was changed by hand",)


def ranges_of(numbers: Sequence[int]) -> str:
    """Return ascending numbers with runs of them closed up: 1-3, 5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _listed(moves: Sequence[Move], reasons: _Reasons, shared: set[str]) -> list[str]:
    rows = [[m.row, m.column, m.before, m.after, m.delta, _verdict(m), reasons.of(m, shared)] for m in moves]
    return as_columns([["row", "column", "before", "after", "delta", "significant", "why"], *rows], right=(2, 3, 4))


def _tables(pairs: Mapping[str, tuple[Side, Side]]) -> Iterator[tuple[str, list[Move], int, str]]:
    """Yield title, moves, number of shared cells and a complaint of each table that both folders have."""
    for name, (before, after) in pairs.items():
        try:
            with as_written(_lineage_of(after)):
                moves, cells = table_moves(before, after)
                title = f"{name}: {after[1]['title']}"
            yield title, moves, cells, ""
        except InputError as error:
            yield name, [], 0, str(error)


def compare(before: Path, after: Path) -> str:
    """Return in words how two results folders differ: the cells that moved, table by table, and what differs first behind them."""
    old, new = score_files(before), score_files(after)
    theirs, ours = tables(before), tables(after)
    pairs = {name: ((before, theirs[name]), (after, ours[name])) for name in sorted(theirs.keys() & ours.keys())}
    found, reasons, shared = list(_tables(pairs)), _Reasons(Causes(before, after)), old & new
    all_moves = [move for _, moves, _, _ in found for move in moves]
    certain = sum(move.significant is True for move in all_moves)
    lines = [f"before  {before}", f"after   {after}", ""]
    lines += [f"{number_of(len(shared), 'score file')} on both sides, {len(old - new)} only before, {len(new - old)} only after"]
    if other := other_code(before, after, shared):
        lines += [f"{OTHER_CODE}: {number_of(other, 'score file')} of them"]
    cells = sum(number for _, _, number, _ in found)
    both = f"{number_of(cells, 'cell')} of {number_of(len(found), 'table')} on both sides"
    lines += [f"{both}: {len(all_moves)} differ, {certain} significantly"]
    broken = {name for name, (*_, complaint) in zip(pairs, found, strict=True) if complaint}
    lines += _one_sided(theirs, ours, cells, broken)
    for title, moves, _, complaint in found:
        if complaint:
            lines += ["", f"{title}: not compared, {complaint}"]
        elif moves:
            lines += ["", title, *_listed(moves, reasons, shared)]
    compared = [side[1] for (_, side), (*_, complaint) in zip(pairs.values(), found, strict=True) if not complaint]
    outside, complaints = record_moves(before, after, shared.difference(*map(table_files, compared)))
    lines += ["", *complaints[:SHOWN]] if complaints else []
    if outside:
        lines += [
            "",
            f"{number_of(len(outside), 'record')} differ in scores that no compared table shows",
            *_listed(outside[:SHOWN], reasons, shared),
        ]
        lines += [f"... and {len(outside) - SHOWN} more"] if len(outside) > SHOWN else []
    tests = {move.test for move in [*all_moves, *outside[:SHOWN]]}
    lines += ["", *(text for test, text in LEGEND.items() if test in tests)] if tests - {""} else []
    if reasons.numbers:
        lines += ["", "First differences behind them", *(f"[{number}] {cause}" for cause, number in reasons.numbers.items())]
    said = all_moves or outside or complaints or any(complaint for *_, complaint in found)
    return "\n".join(map(printable, lines if said else [*lines, "", "no score differs"]))


def _one_sided(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]], shared: int, broken: set[str]) -> list[str]:
    """Return in words how many cells, and which tables, one side alone has.

    Args:
        before, after: resolved tables by id.
        shared: cells that both sides have.
        broken: tables that cannot be compared.
    """
    sizes = [sum(len(t["rows"]) * len(t["columns"]) for name, t in side.items() if name not in broken) for side in (before, after)]
    if sizes == [shared, shared]:
        return []
    lines = [f"{number_of(sizes[0] - shared, 'cell')} only before, {sizes[1] - shared} only after"]
    for side, names in (("before", before.keys() - after.keys()), ("after", after.keys() - before.keys())):
        lines += [f"tables only {side}: {', '.join(sorted(names))}"] if names else []
    return lines
