"""Whether results are what their lineage says: every artefact hashed again, every cell of every table derived again from its score."""

from __future__ import annotations

import csv
import math
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from crosslign.errors import InputError
from crosslign.files import read_json
from crosslign.files.lineage import checksum, lineage_path, read_lineage

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
        if not any(part.endswith(".part") or part == ".discarded" for part in path.parts):
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
    wanted: dict[str, str] = {}
    for sidecar in sidecars:
        try:
            lineage = read_lineage(_artefact_of(sidecar))
            artefact, inputs = lineage["artefact"], lineage["inputs"]
            yield _state(results, artefact, inputs, known)
            wanted.update({entry["path"]: str(artefact["path"]) for entry in inputs})
        except InputError as error:
            why = "it was made by another version" if "another version" in error.what else "its lineage cannot be read"
            yield Finding(sidecar.relative_to(results).as_posix(), TOUCHED, why)
        except (ValueError, KeyError, TypeError):
            yield Finding(sidecar.relative_to(results).as_posix(), TOUCHED, "its lineage cannot be read")
    described = {path for path, found in known.items() if found is not None}
    for path, user in sorted(wanted.items()):
        # A path without a folder lies outside the results (downloads, the project's own files).
        if "/" in path and path not in described and not lineage_path(results / path).exists():
            yield Finding(path, MISSING, f"{user} was made of it")


def _artefact_of(sidecar: Path) -> Path:
    """Return the file or folder that a sidecar describes."""
    return sidecar.parent if sidecar.name == "lineage.json" else sidecar.with_name(sidecar.name.removesuffix(".lineage.json"))


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
            cells = list(csv.DictReader(file))
        rows = [row for row in cells if row["score_file"] and row["record"] and ";" not in row["record"]]  # averages follow by themselves
        found = [finding for row in rows if (finding := _wrong(results, row))]
        averages = _averages(path, cells)
        found += [(STALE, why) for why in averages.values() if why]
        checked = len(rows) + len(averages)
        if found:
            yield Finding(name, found[0][0], f"{len(found)} of {checked} cells: {found[0][1]}")
        else:
            yield Finding(name, WHOLE, f"{checked} cells")


def _averages(table: Path, cells: list[dict[str, str]]) -> dict[str, str]:
    """Recompute every cell that is the mean of other columns from the cells of its row; return what is wrong with each, or nothing."""
    try:
        recipe = read_lineage(table)["recipe"]
        averaged = [column for column in recipe["columns"] if all(isinstance(part, str) for part in column.get("mean_of", [0]))]
        parts = {column["label"]: column["mean_of"] for column in averaged}
    except (InputError, KeyError, TypeError):
        return {}
    values = {(cell["row"], cell["column"]): cell["ours"] for cell in cells}
    wrong = {}
    for cell in cells:
        members = parts.get(cell["column"], [])
        if not cell["ours"] or not members or not all(values.get((cell["row"], part)) for part in members):
            continue
        mean = math.fsum(float(values[cell["row"], part]) for part in members) / len(members)
        place = f"{cell['row']} / {cell['column']}"
        wrong[place] = "" if abs(mean - float(cell["ours"])) <= CLOSE else f"{place}: {cell['ours']} is printed, its parts give {mean}"
    return wrong


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


def discard(results: Path) -> list[str]:
    """Take away what is stale or was touched by hand, and all that was made of it, with its lineage: the next run makes it again.

    Files move to `<results>/.discarded/`; nothing is lost. Time stamps play no part: what is taken away is what its hashes refute.

    Returns:
        the paths, relative to the results.
    """
    found = [*artefacts(results), *cells(results)]
    # Where lineage itself cannot be read, what it describes goes.
    names = {re.sub(r"(\.|/)lineage\.json$", "", finding.path) for finding in found if finding.state != WHOLE}
    bad = _with_all_made_of(results, names)
    gone = sorted(path for path in bad if (results / path).exists())
    bin_ = results / ".discarded"
    for path in gone:
        for file in (lineage_path(results / path), results / path):
            if file.exists():
                target = bin_ / file.relative_to(results)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.rmtree(target, ignore_errors=True)
                file.replace(target)
    return gone


def settle(results: Path) -> int:
    """Give every file that is whole by its hashes one time stamp, that of the last job; return how many got it.

    Snakemake makes again what is older than its inputs: after a clock was set back, or a copy that lost its times, that is needless, and
    inputs from the future stop it. What is not whole keeps its time.
    """
    whole = [finding.path for finding in artefacts(results) if finding.state == WHOLE]
    started = [datetime.fromisoformat(read_lineage(results / path)["run"]["started"]).timestamp() for path in whole]
    stamp = min(max(started, default=time.time()), time.time())
    files = {results / path for path in whole} | {lineage_path(results / path) for path in whole}
    files |= {inner for file in files if file.is_dir() for inner in file.rglob("*")}
    # The engine counts a job's benchmark among its outputs.
    files |= set((results / "benchmarks").rglob("*"))
    # Downloads, which other scales share, have their own hashes; theirs only has to lie in the past.
    files |= {file for file in (results.parent / "downloads").rglob("*") if file.stat().st_mtime > stamp}
    for file in files:
        os.utime(file, (stamp, stamp))
    return len(whole)


def _with_all_made_of(results: Path, bad: set[str]) -> set[str]:
    """Add every artefact that was made of a bad one, directly or not."""
    inputs: dict[str, set[str]] = {}
    for sidecar in _sidecars(results):
        with suppress(InputError):
            lineage = read_lineage(_artefact_of(sidecar))
            inputs[str(lineage["artefact"]["path"])] = {entry["path"] for entry in lineage["inputs"]}
    reached = set(bad)
    while more := {path for path, made_of in inputs.items() if path not in reached and made_of & reached}:
        reached |= more
    return reached


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
        "everything is whole"
        if not bad
        else "crosslign verify --discard takes away what is stale or touched; the next run makes it, and what is missing, again"
    )
    return "\n".join(lines), not bad
