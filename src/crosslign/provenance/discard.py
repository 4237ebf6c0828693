"""Taking away what its hashes refute, so that the next run rebuilds it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path

from crosslign.errors import InputError
from crosslign.files.lineage import sidecars_of
from crosslign.files.walk import is_there, passing_gone
from crosslign.paths import SHARED
from crosslign.provenance.artefact_states import STALE, STRAY, TOUCHED, UNREAD, Finding, artefacts, is_stray, read_described
from crosslign.provenance.cell_states import cells

DISCARDED = ".discarded"
"""Folder of what was taken away, below the results."""
ENDS = ("", ".lineage.json")
"""An artefact and what describes it; a folder has that inside."""


def discard(results: Path, project: Path = Path(), own: Iterable[Finding] = ()) -> tuple[list[str], list[Finding]]:
    """Take away what is stale or was touched by hand, and all that was made of it, with its lineage: the next run rebuilds it.

    Files move to `<results>/.discarded/<number>/`, a new number each time; nothing is lost. Time stamps play no part: what is taken away
    is what its hashes refute. `project` and `own` are those of `artefacts`.

    Returns:
        the paths, relative to the results, those of downloads absolute; and what stays because it cannot be read.

    Raises:
        InputError: there are no results, or what is discarded has no place.
    """
    found = [*artefacts(results, project, own), *cells(results)]
    # Where lineage itself cannot be read, what it describes goes. What is missing refutes nothing that was made of it.
    wrong = [finding for finding in found if finding.state in (STALE, TOUCHED)]
    stray = {finding.path for finding in wrong if finding.why == STRAY}
    names = {finding.path if finding.path in stray else re.sub(r"(\.|/)lineage\.json$", "", finding.path) for finding in wrong}
    bad = _with_all_made_of(results, project, names)
    gone = [path for path in sorted(bad) if _kept_at(results, path) and any(is_there(Path(f"{results / path}{end}")) for end in ENDS)]
    place = _new_place(results) if gone else results
    for path in gone:
        target = place / str(_kept_at(results, path))
        target.parent.mkdir(parents=True, exist_ok=True)
        for end in ENDS:
            file = Path(f"{results / path}{end}")
            with passing_gone():  # a job or a person takes it this moment
                if is_there(file):
                    shutil.move(file, f"{target}{end}")  # downloads may lie on another disk
    return gone, [finding for finding in found if finding.state == UNREAD]


def _new_place(results: Path) -> Path:
    """Make and return a folder of discarded files that nobody has put anything into.

    Raises:
        InputError: something else lies where such folders are.
    """
    try:
        (results / DISCARDED).mkdir(exist_ok=True)
    except FileExistsError as error:
        why = "it is a file, or a link to nothing"
        raise InputError("no folder for what is discarded", where=str(results / DISCARDED), why=why, do="Move it away") from error
    for number in count(1):
        place = results / DISCARDED / str(number)
        with suppress(FileExistsError):
            place.mkdir()
            return place
    raise AssertionError("numbers have no end")


def _kept_at(results: Path, path: str) -> Path | None:
    """Return where below the discarded ones a result, a download or a model is put; None for what is the user's own."""
    shared, place = results.parent.absolute(), results / path
    if place.is_relative_to(results):
        return place.relative_to(results)
    own = place.relative_to(shared) if place.is_relative_to(shared) else Path()
    return own if own.parts and own.parts[0] in SHARED else None


def _with_all_made_of(results: Path, project: Path, bad: set[str]) -> set[str]:
    """Add every artefact that was made of a bad one, directly or not."""
    made_of: dict[str, set[str]] = {}
    for sidecar in sidecars_of(results):
        with suppress(InputError), passing_gone():
            if is_stray(results, sidecar):
                continue
            path, _, inputs = read_described(results, project, sidecar)
            made_of[path] = {entry["path"] for entry in inputs}
    reached = set(bad)
    while more := {path for path, inputs in made_of.items() if path not in reached and inputs & reached}:
        reached |= more
    return reached
