"""One cell of a table, walked back to the bytes that it rests on, by lineage alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosslign.config.cells import resolve_table
from crosslign.config.project import Project
from crosslign.errors import InputError
from crosslign.files import read_json
from crosslign.files.lineage import lineage_path
from crosslign.registry import nearest
from crosslign.reporting.values import find_record

SHOWN = {
    "system": ("system", "seed", "base", "terms", "train", "select"),
    "embeddings": ("readout", "readout_entry"),
    "examples": ("entry",),
    "corpus": ("entry",),
    "evaluation": ("entry",),
    "scores": ("task", "checkpoint", "readout"),
}
"""Keys of the recipe that say most about an artefact, by its kind."""


@dataclass
class Link:
    """One artefact of the chain.

    Attributes:
        path: relative to `{results}`.
        lineage: its lineage; None where a file has none (a download, a table of an evaluation set named twice).
        inputs: what it was made of.
        again: whether it stands further up with its own inputs.
    """

    path: str
    lineage: Mapping[str, Any] | None
    inputs: list[Link] = field(default_factory=list)
    again: bool = False


def find_cell(project: Project, table: str, row: str, column: str) -> Mapping[str, Any]:
    """Return a resolved cell by the labels of its row (or its system) and of its column.

    Raises:
        InputError: no such table, row or column; names what there is.
    """
    if table not in project.tables:
        raise InputError(f"unknown table {table!r}", where="crosslign explain", why=nearest(table, list(project.tables)))
    resolved = resolve_table(project, table)
    rows = [index for index, entry in enumerate(resolved["rows"]) if row in (entry["label"], entry.get("system"))]
    columns = [index for index, entry in enumerate(resolved["columns"]) if entry["label"] == column]
    for name, found, allowed in (("row", rows, resolved["rows"]), ("column", columns, resolved["columns"])):
        if not found:
            wanted = row if name == "row" else column
            raise InputError(f"unknown {name} {wanted!r}", where=f"table {table}", why=nearest(wanted, [e["label"] for e in allowed]))
    cell: Mapping[str, Any] = resolved["cells"][rows[0]][columns[0]]
    return cell


def chain(results: Path, path: str, seen: set[str] | None = None) -> Link:
    """Return an artefact with all that it was made of, each artefact spelled out once."""
    seen = set() if seen is None else seen
    sidecar = lineage_path(results / path)
    lineage = read_json(sidecar) if sidecar.exists() else None
    link = Link(path, lineage, again=path in seen)
    if not link.again and lineage is not None:
        seen.add(path)
        link.inputs = [chain(results, entry["path"], seen) for entry in lineage["inputs"]]
    return link


def _facts(lineage: Mapping[str, Any]) -> Iterator[str]:
    artefact, run = lineage["artefact"], lineage["run"]
    yield f"sha256 {artefact['sha256']}  {artefact['bytes']:,} bytes"
    yield f"rule {lineage['rule']}, seed {lineage['seed']}, threads {lineage['threads']}, code {lineage['code']}"
    recipe = lineage["recipe"] if isinstance(lineage["recipe"], Mapping) else {}
    for key in SHOWN.get(artefact["kind"], ()):
        if key in recipe:
            yield f"{key}: {recipe[key]}"
    for key, value in lineage["counts"].items():
        yield f"{key}: {value}"
    yield f"made {run['started']} at commit {run['commit'][:12] or 'unknown'} in {run['wall_s']:.0f} s on {run['device']}"


def _lines(link: Link, depth: int) -> Iterator[str]:
    margin = "  " * depth
    if link.again:
        yield f"{margin}{link.path}  (see above)"
        return
    yield f"{margin}{link.path}" + ("" if link.lineage else "  (no lineage: an input from outside)")
    if link.lineage:
        yield from (f"{margin}    {fact}" for fact in _facts(link.lineage))
    for part in link.inputs:
        yield from _lines(part, depth + 1)


def explain(project: Project, table: str, row: str, column: str) -> str:
    """Return in words where a cell comes from: its records, then every artefact behind them, down to the downloads.

    Raises:
        InputError: no such cell; or its scores are not built.
    """
    cell = find_cell(project, table, row, column)
    if "mean_of" in cell:
        return "\n\n".join(explain(project, table, row, label) for label in cell["mean_of"])
    parts = cell.get("parts", [cell])
    reasons = [part["reason"] for part in parts if "scores" not in part]
    if reasons:
        return f"{table} / {row} / {column}: not run, {reasons[0]}"
    results = project.paths.results
    lines = [f"{table} / {row} / {column}"]
    seen: set[str] = set()
    for score, select in [(score, part["select"]) for part in parts for score in part["scores"]]:
        if not (results / score).exists():
            raise InputError("this cell is not built yet", where=str(results / score), do=f"Run snakemake --cores all {results / score}")
        record = find_record(results / score, select)
        lines += ["", f"run {record['run_id']}: {record['metric']} {record['value']!r} on {record['n_items']} items", f"record: {record}"]
        rule = (read_json(lineage_path(results / score)) if lineage_path(results / score).exists() else {}).get("rule", "score")
        lines += [f"made again by: snakemake --cores all --forcerun {rule} -- {results / score}", *_lines(chain(results, score, seen), 0)]
    return "\n".join(lines)
