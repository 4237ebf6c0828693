"""Scores and tables as data frames of pandas, for notebooks and for tables of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from crosslign.config.baselines import unique_names
from crosslign.config.cells import resolve_table
from crosslign.config.load import project_at
from crosslign.config.options import checked, texts_of
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


def frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows of the long table."""
    return pd.DataFrame(rows, columns=[*FIELDS, "score_file"]).astype(NUMBERS)


@checked
def scores(files: str | Path | Iterable[str | Path]) -> pd.DataFrame:
    """Return the long table of all scores: one row a record.

    Args:
        files: a score file, a folder of them, or several of both, such as `Path("results/laptop/scores").rglob("*.json")`; the lineage
            beside them is passed over, and in a folder whatever is no JSON.

    Returns:
        run, checkpoint, evaluation, subset, metric, protocol, direction, readout (empty where there is none), seed (a base encoder has
        none), value (a fraction; NaN where undefined), ci_low and ci_high (its 95 % interval), items, status, reason, note, score_file.

    Raises:
        InputError: a file is not there, is not a score file, or holds a score that its metric cannot have.
    """
    several = [files] if isinstance(files, str | Path) or not isinstance(files, Iterable) else list(files)
    paths: list[Path] = []
    for given in several:
        if not isinstance(given, str | Path):
            why = f"its type is {type(given).__name__}"
            raise InputError("not a file, a folder or a list of files", where="crosslign.scores", why=why)
        path = Path(given)
        if not is_there(path):
            raise InputError("no such file or folder", where=str(path))
        paths += [inner for inner in files_below(path) if inner.suffix == ".json"] if path.is_dir() else [path]
    paths = [path for path in paths if not is_sidecar(path)]
    return frame([row for path in paths for row in rows_of(checked_records(path), read_json(path), str(path))])


@checked
def table(name: str, directory: str | Path = ".", configfile: str | Path | None = None, config: Iterable[str] = ()) -> pd.DataFrame:
    """Return a table of a project as it stands in its results: a row a system, a column an evaluation, averages from unrounded values.

    Args:
        name: id of the table.
        directory: the project's folder.
        configfile: configuration file to lay over its own, as Snakemake takes it.
        config: `KEY=VALUE` that override its keys, as Snakemake takes them.

    Returns:
        float64, fractions (the printed table multiplies them by 100, unless it says otherwise); NaN where nothing of ours is.

    Raises:
        InputError: no project there, no such table, or a score file is missing; names it, and the target to run.
    """
    project = project_at(Path(directory), texts_of(config, "config"), None if configfile is None else Path(configfile))
    if name not in project.tables:
        raise InputError(f"unknown table {name!r}", where="crosslign.table", why=nearest(name, list(project.tables)))
    resolved = resolve_table(project, name)
    rows, columns = unique_names(resolved["rows"]), unique_names(resolved["columns"])
    grid = fill_cells(resolved, project.paths.results)
    values = [[cell.ours for cell in line] for line in grid]
    return pd.DataFrame(values, pd.Index(rows, name="row"), pd.Index(columns, name="column"), dtype="float64")
