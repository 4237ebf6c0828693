"""Whether results are what their lineage says: every artefact hashed again, every cell of every table derived again from its score."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslign.errors import InputError
from crosslign.files import read_json
from crosslign.files.lineage import checksum

WHOLE, STALE, MISSING, TOUCHED = "whole", "stale", "missing", "touched by hand"
CLOSE = 1e-12
"""How far a cell may lie from what its scores give: the rounding of a mean."""


@dataclass(frozen=True)
class Finding:
    """The state of one artefact or cell.

    Attributes:
        path: relative to the results folder.
        state: whole, stale (made of inputs that have changed since), missing, or touched by hand.
        why: what differs.
    """

    path: str
    state: str
    why: str = ""


def _sidecars(results: Path) -> Iterator[Path]:
    for path in sorted(results.rglob("*lineage.json")):
        if not any(part.endswith(".part") for part in path.parts):
            yield path


def _hashed(results: Path, path: str, known: dict[str, str | None]) -> str | None:
    """Return the SHA-256 of an artefact as it lies there now, once; None where it is not there."""
    if path not in known:
        file = results / path
        known[path] = checksum(file) if file.exists() else None
    return known[path]


def artefacts(results: Path) -> Iterator[Finding]:
    """Yield the state of every artefact that has lineage.

    Raises:
        InputError: the folder holds no lineage at all.
    """
    known: dict[str, str | None] = {}
    sidecars = list(_sidecars(results))
    if not sidecars:
        raise InputError("no results here", where=str(results), do="Give a results folder with its scale, such as results/laptop")
    for sidecar in sidecars:
        try:
            lineage = read_json(sidecar)
            artefact, inputs = lineage["artefact"], lineage["inputs"]
        except (InputError, ValueError, KeyError, TypeError):
            yield Finding(sidecar.relative_to(results).as_posix(), TOUCHED, "its lineage cannot be read")
            continue
        yield _state(results, artefact, inputs, known)


def _state(results: Path, artefact: Mapping[str, Any], inputs: list[Mapping[str, Any]], known: dict[str, str | None]) -> Finding:
    path = str(artefact["path"])
    now = _hashed(results, path, known)
    if now is None:
        return Finding(path, MISSING, "its lineage is there, it is not")
    if now != artefact["sha256"]:
        return Finding(path, TOUCHED, "its bytes are not those that its lineage names")
    for entry in inputs:
        found = _hashed(results, entry["path"], known)
        if found is not None and found != entry["sha256"]:
            return Finding(path, STALE, f"{entry['path']} has changed since")
    return Finding(path, WHOLE)


def _value(results: Path, cell: Mapping[str, str]) -> float | None:
    """Return what the score files of a cell give: the mean over its runs; None where one is undefined."""
    task, subset, metric, protocol, direction = cell["record"].split("/")
    keys = {"eval": task, "subset": subset, "metric": metric, "protocol": protocol, "direction": direction}
    values = []
    for name in cell["score_file"].split(";"):
        records = read_json(results / name)["records"]
        values += [record["value"] for record in records if all(str(record[key]) == value for key, value in keys.items())]
    return None if None in values or not values else math.fsum(values) / len(values)


def cells(results: Path) -> Iterator[Finding]:
    """Yield the state of every table, its cells derived again from the score files that it names."""
    for path in sorted((results / "tables").glob("*.csv")):
        name = path.relative_to(results).as_posix()
        with open(path, encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["score_file"] and row["record"]]
        wrong = [_wrong(results, row) for row in rows]
        found = [finding for finding in wrong if finding]
        if found:
            yield Finding(name, found[0][0], f"{len(found)} of {len(rows)} cells: {found[0][1]}")
        else:
            yield Finding(name, WHOLE, f"{len(rows)} cells")


def _wrong(results: Path, row: Mapping[str, str]) -> tuple[str, str] | None:
    place = f"{row['row']} / {row['column']}"
    absent = [name for name in row["score_file"].split(";") if not (results / name).exists()]
    if absent:
        return MISSING, f"{place}: {absent[0]} is not there"
    value = _value(results, row)
    shown = float(row["ours"]) if row["ours"] else None
    if value is None and shown is None:
        return None
    if value is None or shown is None or abs(value - shown) > CLOSE:
        return STALE, f"{place}: {shown} is printed, the scores give {value}"
    return None


def verify(results: Path) -> tuple[str, bool]:
    """Check a results folder.

    Returns:
        one screen of text, and whether everything is whole.

    Raises:
        InputError: there are no results.
    """
    found = list(artefacts(results))
    tables = list(cells(results))
    bad = [finding for finding in [*found, *tables] if finding.state != WHOLE]
    lines = [f"{results}: {len(found)} artefacts, {len(tables)} tables"]
    for state in (WHOLE, STALE, MISSING, TOUCHED):
        lines.append(f"  {state:<16} {sum(finding.state == state for finding in [*found, *tables])}")
    shown = sorted(bad, key=lambda finding: (finding.state, finding.path))[:20]
    lines += [f"{finding.state}: {finding.path} ({finding.why})" for finding in shown]
    if len(bad) > len(shown):
        lines.append(f"... and {len(bad) - len(shown)} more")
    lines.append(
        "everything is whole" if not bad else "run Snakemake again: it makes what is stale or missing; delete what was touched by hand"
    )
    return "\n".join(lines), not bad
