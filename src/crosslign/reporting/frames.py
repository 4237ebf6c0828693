"""Scores and tables as data frames of pandas, for notebooks and for tables of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from crosslign.config.baselines import unique_names
from crosslign.config.cells import resolve_table
from crosslign.config.project import Project
from crosslign.errors import InputError
from crosslign.files.lineage import is_sidecar
from crosslign.files.text import read_json
from crosslign.files.walk import files_below, is_there
from crosslign.registry import nearest
from crosslign.reporting.values import fill_cells
from crosslign.tasks.records import checked_records

FIELDS = {
    "run": "run_id", "checkpoint": "checkpoint", "evaluation": "eval", "subset": "subset", "metric": "metric", "protocol": "protocol",
    "direction": "direction", "readout": "readout", "seed": "seed", "value": "value", "ci_low": "ci_low", "ci_high": "ci_high",
    "items": "n_items", "status": "status", "reason": "reason", "note": "note",
}  # fmt: skip
"""Columns of the long table, by the fields of a score file; where a record lacks one, it stands above the records."""
NUMBERS = {"seed": "Int64", "value": "float64", "ci_low": "float64", "ci_high": "float64", "items": "Int64"}


def rows_of(records: Iterable[Mapping[str, Any]], above: Mapping[str, Any], file: str = "") -> list[dict[str, Any]]:
    """Return the rows of the long table of records; what a record lacks stands above them."""
    found = []
    for record in records:
        row = {column: record.get(field, above.get(field)) for column, field in FIELDS.items()}
        found.append({column: "" if value is None and column not in NUMBERS else value for column, value in row.items()})
        found[-1]["score_file"] = file
    return found


def frame(rows: Sequence[Mapping[str, Any]], *more: str) -> pd.DataFrame:
    """Return rows of the long table, with `more` columns behind its own."""
    return pd.DataFrame(rows, columns=[*FIELDS, "score_file", *more]).astype(NUMBERS)


def scores(files: Iterable[Path]) -> pd.DataFrame:
    """Return the long table of all records of score files and of folders of them; see `crosslign.scores`."""
    paths = []
    for given in files:
        if not is_there(given):
            raise InputError("no such file or folder", where=str(given))
        paths += [path for path in files_below(given) if path.suffix == ".json"] if given.is_dir() else [given]
    paths = [path for path in paths if not is_sidecar(path)]
    return frame([row for path in paths for row in rows_of(checked_records(path), read_json(path), str(path))])


def table(project: Project, name: str) -> pd.DataFrame:
    """Return the values of a table; see `crosslign.table`."""
    if name not in project.tables:
        raise InputError(f"unknown table {name!r}", where="crosslign.table", why=nearest(name, list(project.tables)))
    resolved = resolve_table(project, name)
    rows, columns = unique_names(resolved["rows"]), unique_names(resolved["columns"])
    grid = fill_cells(resolved, project.paths.results)
    cells = [(row, column, cell.ours) for row, line in zip(rows, grid, strict=True) for column, cell in zip(columns, line, strict=True)]
    long = pd.DataFrame(cells, columns=["row", "column", "value"]).astype({"value": "float64"})
    return long.pivot(index="row", columns="column", values="value").reindex(index=rows, columns=columns)
