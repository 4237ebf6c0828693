"""Whether the tables of a results folder show what their scores give: every cell derived again."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from crosslign.config.cells import scores_behind
from crosslign.console import number_of
from crosslign.entries.resolved import ResolvedTable
from crosslign.errors import InputError
from crosslign.files.lineage import MISREAD, read_lineage
from crosslign.files.text import read_csv
from crosslign.files.walk import files_below
from crosslign.provenance.artefact_states import MISSING, STALE, TOUCHED, UNREAD, WHOLE, Finding, unread
from crosslign.reporting.values import Cell, fill_cells

CLOSE = 1e-12
"""How far a cell may lie from what its scores give, as a share of it: the rounding of a mean."""
UNREADABLE = (InputError, *MISREAD, csv.Error, OSError)
"""What a table or a lineage that was tampered with may raise."""


def cells(results: Path) -> Iterator[Finding]:
    """Yield the state of every table, each of its cells derived again from the scores that its lineage names."""
    for path in files_below(results / "tables"):
        if path.suffix != ".csv":
            continue
        name = path.relative_to(results).as_posix()
        try:
            checked, wrong = _check_table(results, path)
        except UNREADABLE as error:
            closed = unread(error)
            yield Finding(name, UNREAD if closed else TOUCHED, closed or "its lineage does not describe its cells")
            continue
        why = f"{len(wrong)} of {number_of(checked, 'cell')}: {wrong[0][1]}" if wrong else number_of(checked, "cell")
        yield Finding(name, wrong[0][0] if wrong else WHOLE, why)


def _check_table(results: Path, path: Path) -> tuple[int, list[tuple[str, str]]]:
    """Return how many cells a table has, and the state and fault of each that is not what its scores give.

    Raises:
        UNREADABLE: its lineage does not describe its cells.
    """
    _, shown = read_csv(path)
    resolved: ResolvedTable = read_lineage(path)["recipe"]
    width = len(resolved["columns"])
    if len(shown) != width * len(resolved["cells"]):
        return len(shown), [(TOUCHED, f"it has {len(shown)} cells, its lineage has {width * len(resolved['cells'])}")]
    rows: list[tuple[ResolvedTable, list[dict[str, str]]]] = [
        ({**resolved, "cells": [row]}, shown[start * width :][:width]) for start, row in enumerate(resolved["cells"])
    ]
    return len(shown), [wrong for row, cells in rows for wrong in _wrong(results, row, cells)]


def _wrong(results: Path, row: ResolvedTable, shown: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return what is wrong with the cells of one row.

    Args:
        results: the results folder.
        row: the resolved table with this row alone.
        shown: its cells in the CSV.
    """
    places = [f"{cell['row']} / {cell['column']}" for cell in shown]
    absent = [
        (MISSING, f"{place}: {score} is missing")
        for place, cell in zip(places, row["cells"][0], strict=True)
        for score in scores_behind(cell)
        if not (results / score).exists()
    ]
    if absent:
        return absent
    try:
        derived = fill_cells(row, results)[0]
    except InputError as error:
        if unread(error):
            raise
        return [(STALE, f"{shown[0]['row']}: {error}")]
    found = zip(places, map(_differs, shown, derived), strict=True)
    return [(STALE, f"{place}: {why}") for place, why in found if why]


def _differs(shown: Mapping[str, str], derived: Cell) -> str:
    """Return how a cell of the CSV differs from what its scores give; nothing where it does not."""
    given = {"ours": derived.text or derived.ours, "ours_std": derived.std, "ci_low": derived.ci_low, "ci_high": derived.ci_high}
    for key, value in given.items():
        if key in shown and not _same(shown[key], value):
            name = "" if key == "ours" else f"{key} "
            return f"{name}the table has {shown[key] or 'nothing'}, the scores give {'nothing' if value is None else value}"
    return ""


def _same(shown: str, value: float | str | None) -> bool:
    if isinstance(value, str) or value is None:
        return shown == (value or "")
    try:
        return math.isclose(float(shown), value, rel_tol=CLOSE, abs_tol=CLOSE)
    except ValueError:
        return False
