"""Whether results are what their lineage says: every artefact hashed again, every cell of every table derived again from its score."""

from __future__ import annotations

import csv
import math
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from crosslign.errors import InputError, printable
from crosslign.files.lineage import checksum, lineage_path, read_lineage
from crosslign.paths import ORIGIN, origin_files
from crosslign.reporting.cell import Cell
from crosslign.reporting.values import fill_cells

WHOLE, REMOVED, STALE, MISSING, TOUCHED = "whole", "removed", "stale", "missing", "touched by hand"
SOUND = (WHOLE, REMOVED)
"""States that nothing has to be done about."""
CLOSE = 1e-12
"""How far a cell may lie from what its scores give, as a share of it: the rounding of a mean."""
OF_FILES = ("corpora", "views", "examples", "embeddings", "scores", "counts", "mined", "tables", "figures")
OF_FOLDERS = ("encoders", "systems")
"""Folders of results in which every file, or every folder, has lineage."""
PAGES = ("overlap", "overview", "report")


@dataclass(frozen=True)
class Finding:
    """The state of one artefact or cell.

    Attributes:
        path: relative to the results folder; absolute where it lies outside of it (downloads and models, which scales share).
        state: whole, removed (vectors that nobody needs any more), stale (made of inputs that have changed since), missing, or touched
            by hand.
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


def _place(results: Path, project: Path, path: str, recipe: Any) -> str:
    """Return where an input lies: as lineage names it; absolute where lineage knows its name alone, because it lies outside."""
    if "/" in path or (results / path).exists():
        return path
    settings = recipe if isinstance(recipe, Mapping) else {}
    entry = settings.get("entry")
    source = entry.get("source") if isinstance(entry, Mapping) else None
    own = settings.get("file")
    places = [
        *([results.parent / "downloads" / source / path] if source else []),
        results.parent / "models" / path,
        project / "resources" / "published" / path,
        *([project / own] if isinstance(own, str) and Path(own).name == path else []),
    ]
    return next((str(place.absolute()) for place in places if place.exists()), path)


def _read(results: Path, project: Path, sidecar: Path) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """Return where an artefact lies, what its lineage says of it, and its inputs, each with the place where it lies.

    Raises:
        InputError, ValueError, KeyError, TypeError: the lineage cannot be read.
    """
    lineage = read_lineage(_artefact_of(sidecar))
    inputs = [{**entry, "path": _place(results, project, entry["path"], lineage.get("recipe"))} for entry in lineage["inputs"]]
    # Where it lies counts, not where its lineage saw it: the root of a download's lineage is the folder of downloads.
    return _artefact_of(sidecar).relative_to(results).as_posix(), lineage["artefact"], inputs


def artefacts(results: Path, project: Path = Path()) -> Iterator[Finding]:
    """Yield the state of every artefact that has lineage, of what should have some, and of downloads that they were made of.

    Args:
        results: the results folder with its scale.
        project: the project's folder, for its own files and the user's.

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
            path, artefact, inputs = _read(results, project, sidecar)
            yield _state(results, path, artefact, inputs, known)
            wanted.update({entry["path"]: path for entry in inputs})
        except InputError as error:
            why = "it was made by another version" if "another version" in error.what else "its lineage cannot be read"
            yield Finding(sidecar.relative_to(results).as_posix(), TOUCHED, why)
        except (ValueError, KeyError, TypeError):
            yield Finding(sidecar.relative_to(results).as_posix(), TOUCHED, "its lineage cannot be read")
    for path, user in sorted(wanted.items()):
        described = lineage_path(results / path).exists()
        # A name alone, without a folder, lies outside, and nobody knows where.
        if "/" in path and not described and not (results / path).exists():
            yield Finding(path, MISSING, f"{user} was made of it")
        elif Path(path).is_absolute() and described:
            with suppress(InputError):
                yield from _touched_outside(results, path, known)
    yield from _undescribed(results)


def _touched_outside(results: Path, path: str, known: dict[str, str | None]) -> Iterator[Finding]:
    """Yield a download or model whose bytes are not those that were fetched."""
    if _hashed(results, path, known) != read_lineage(Path(path))["artefact"]["sha256"]:
        yield Finding(path, TOUCHED, "its bytes are not those that its lineage names")


def _undescribed(results: Path) -> Iterator[Finding]:
    """Yield what no lineage describes where everything should have some; scores of others say so by their `origin.txt`."""
    found = [path for folder in OF_FILES for path in (results / folder).rglob("*") if path.is_file()]
    found += [path for folder in OF_FOLDERS for path in (results / folder).glob("*") if path.is_dir()]
    found += [path for page in PAGES for path in results.glob(f"{page}.*")]
    for path in sorted(found):
        name = path.relative_to(results)
        if any(part.startswith(".") for part in name.parts) or path.name == ORIGIN or path.name.endswith("lineage.json"):
            continue
        if not lineage_path(path).exists() and not (name.parts[0] == "scores" and origin_files(results, name.as_posix())):
            yield Finding(name.as_posix(), TOUCHED, "no lineage describes it")


def _artefact_of(sidecar: Path) -> Path:
    """Return the file or folder that a sidecar describes."""
    return sidecar.parent if sidecar.name == "lineage.json" else sidecar.with_name(sidecar.name.removesuffix(".lineage.json"))


def _state(
    results: Path, path: str, artefact: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]], known: dict[str, str | None]
) -> Finding:
    now = _hashed(results, path, known)
    # Vectors of large sets are removed after their last score (docs/cluster.md), and any can be made again.
    if now is None and artefact["kind"] != "embeddings":
        return Finding(path, MISSING, "its lineage is there, it is not")
    if now is not None and now != artefact["sha256"]:
        return Finding(path, TOUCHED, "its bytes are not those that its lineage names")
    for entry in inputs:
        found = _hashed(results, entry["path"], known)
        if found is not None and found != entry["sha256"]:
            shown = os.path.relpath(entry["path"]) if Path(entry["path"]).is_absolute() else entry["path"]
            return Finding(path, STALE, f"{shown} has changed since")
    return Finding(path, WHOLE if now else REMOVED)


def cells(results: Path) -> Iterator[Finding]:
    """Yield the state of every table, each of its cells derived again from the scores that its lineage names."""
    for path in sorted((results / "tables").glob("*.csv")):
        name = path.relative_to(results).as_posix()
        try:
            checked, wrong = _check_table(results, path)
        except (InputError, KeyError, TypeError, ValueError, AttributeError):
            yield Finding(name, TOUCHED, "its lineage does not say what its cells are")
            continue
        why = f"{len(wrong)} of {checked} cells: {wrong[0][1]}" if wrong else f"{checked} cells"
        yield Finding(name, wrong[0][0] if wrong else WHOLE, why)


def _check_table(results: Path, path: Path) -> tuple[int, list[tuple[str, str]]]:
    """Return how many cells a table has, and the state and fault of each that is not what its scores give.

    Raises:
        InputError, KeyError, TypeError, ValueError, AttributeError: its lineage does not describe its cells.
    """
    with open(path, encoding="utf-8", newline="") as file:
        shown = list(csv.DictReader(file))
    resolved = read_lineage(path)["recipe"]
    width = len(resolved["columns"])
    if len(shown) != width * len(resolved["cells"]):
        return len(shown), [(TOUCHED, f"it has {len(shown)}, its lineage names {width * len(resolved['cells'])}")]
    rows = [({**resolved, "cells": [row]}, shown[start * width :][:width]) for start, row in enumerate(resolved["cells"])]
    return len(shown), [wrong for row, cells in rows for wrong in _wrong(results, row, cells)]


def _scores(cell: Mapping[str, Any]) -> list[str]:
    """Return the score files that a resolved cell reads."""
    return [*cell.get("scores", []), *(score for part in cell.get("parts", []) for score in _scores(part))]


def _wrong(results: Path, row: Mapping[str, Any], shown: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return what is wrong with the cells of one row.

    Args:
        results: the results folder.
        row: the resolved table with this row alone.
        shown: its cells in the CSV.
    """
    places = [f"{cell['row']} / {cell['column']}" for cell in shown]
    absent = [
        (MISSING, f"{place}: {score} is not there")
        for place, cell in zip(places, row["cells"][0], strict=True)
        for score in _scores(cell)
        if not (results / score).exists()
    ]
    if absent:
        return absent
    try:
        derived = fill_cells(row, results)[0]
    except InputError as error:
        return [(STALE, f"{shown[0]['row']}: {error}")]
    found = zip(places, map(_differs, shown, derived), strict=True)
    return [(STALE, f"{place}: {why}") for place, why in found if why]


def _differs(shown: Mapping[str, str], derived: Cell) -> str:
    """Return how a cell of the CSV differs from what its scores give; nothing where it does not."""
    given = {"ours": derived.text or derived.ours, "ours_std": derived.std, "ci_low": derived.ci_low, "ci_high": derived.ci_high}
    for key, value in given.items():
        if key in shown and not _same(shown[key], value):
            name = "" if key == "ours" else f"{key} "
            return f"{name}{shown[key] or 'nothing'} is printed, the scores give {'nothing' if value is None else value}"
    return ""


def _same(shown: str, value: float | str | None) -> bool:
    if isinstance(value, str) or value is None:
        return shown == (value or "")
    try:
        return math.isclose(float(shown), value, rel_tol=CLOSE, abs_tol=CLOSE)
    except ValueError:
        return False


def discard(results: Path, project: Path = Path()) -> list[str]:
    """Take away what is stale or was touched by hand, and all that was made of it, with its lineage: the next run makes it again.

    Files move to `<results>/.discarded/`; nothing is lost. Time stamps play no part: what is taken away is what its hashes refute.

    Returns:
        the paths, relative to the results; those of downloads absolute.
    """
    found = [*artefacts(results, project), *cells(results)]
    # Where lineage itself cannot be read, what it describes goes. What is missing refutes nothing that was made of it.
    names = {re.sub(r"(\.|/)lineage\.json$", "", finding.path) for finding in found if finding.state in (STALE, TOUCHED)}
    bad = _with_all_made_of(results, project, names)
    gone = sorted(path for path in bad if (results / path).exists())
    bin_ = results / ".discarded"
    for path in gone:
        for file in (lineage_path(results / path), results / path):
            if file.exists():
                target = bin_ / file.relative_to(results if file.is_relative_to(results) else results.parent.absolute())
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


def _with_all_made_of(results: Path, project: Path, bad: set[str]) -> set[str]:
    """Add every artefact that was made of a bad one, directly or not."""
    made_of: dict[str, set[str]] = {}
    for sidecar in _sidecars(results):
        with suppress(InputError, ValueError, KeyError, TypeError):
            path, _, inputs = _read(results, project, sidecar)
            made_of[path] = {entry["path"] for entry in inputs}
    reached = set(bad)
    while more := {path for path, inputs in made_of.items() if path not in reached and inputs & reached}:
        reached |= more
    return reached


def verify(results: Path, project: Path = Path()) -> tuple[str, bool]:
    """Check a results folder.

    Returns:
        one screen of text, and whether everything is whole.

    Raises:
        InputError: there are no results.
    """
    found = list(artefacts(results, project))
    tables = list(cells(results))
    bad = [finding for finding in [*found, *tables] if finding.state not in SOUND]
    lines = [f"{results}: {len(found)} artefacts, {len(tables)} tables"]
    for state in (WHOLE, STALE, MISSING, TOUCHED):
        lines.append(f"  {state:<16} {sum(finding.state == state for finding in [*found, *tables])}")
    if removed := sum(finding.state == REMOVED for finding in found):
        lines.append(f"  {REMOVED:<16} {removed} matrices of vectors, which what was made of them no longer needs")
    shown = sorted(bad, key=lambda finding: (finding.state, finding.path))[:20]
    lines += [f"{finding.state}: {finding.path} ({finding.why})" for finding in shown]
    if len(bad) > len(shown):
        lines.append(f"... and {len(bad) - len(shown)} more")
    lines.append(
        "everything is whole"
        if not bad
        else "crosslign verify --discard takes away what is stale or touched; the next run makes it, and what is missing, again"
    )
    return printable("\n".join(lines)), not bad
