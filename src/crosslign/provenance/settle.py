"""What is whole by its hashes taken as it is: made by a version of the code that one trusts, at one time."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from crosslign.errors import InputError
from crosslign.files.lineage import lineage_path, read_lineage
from crosslign.files.walk import files_below, passing_gone
from crosslign.provenance.artefact_states import WHOLE, Finding, artefacts, sum_now
from crosslign.provenance.code_states import made, shared_by, take_over


def settle(results: Path, project: Path = Path(), own: Iterable[Finding] = ()) -> tuple[int, dict[str, int]]:
    """Take over every artefact that is whole by its hashes: as made by today's versions, with one time stamp, that of the last job.

    Inputs from the future, after a clock was set back, stop Snakemake. What is not whole keeps its version and its time.
    `project` and `own` are those of `artefacts`.

    Returns:
        how many got the time stamp; and how many artefacts were of another version, by what this was and is.
    """
    whole = [finding.path for finding in artefacts(results, project, own) if finding.state == WHOLE]
    taken = _take_over(results, {(results / path).resolve() for path in whole})
    started = []
    for path in whole:
        with suppress(InputError):  # gone since
            started.append(datetime.fromisoformat(read_lineage(results / path)["run"]["started"]).timestamp())
    stamp = min(max(started, default=time.time()), time.time())
    files = {results / path for path in whole} | {lineage_path(results / path) for path in whole}
    files |= {inner for file in files if file.is_dir() for inner in files_below(file)}
    # The engine counts a job's benchmark among its outputs.
    files |= set(files_below(results / "benchmarks"))
    # Downloads and models, which other scales share, have their own hashes; theirs only has to lie in the past.
    for file in (file for folder in shared_by(results) for file in files_below(folder)):
        with passing_gone():
            if file.stat().st_mtime > stamp:
                files.add(file)
    for file in files:
        with passing_gone():
            _set_time(file, stamp)
    return len(whole), dict(taken)


def _set_time(file: Path, stamp: float) -> None:
    try:
        os.utime(file, (stamp, stamp))
    except OSError as error:
        error.filename = str(file)  # Python does not say it of this call, and people must know which file is another user's
        raise


def _take_over(results: Path, whole: set[Path]) -> Counter[str]:
    """Have the lineage of whole artefacts, and of whole downloads and models, name today's versions; return what was taken for what."""
    taken = Counter[str]()
    for one in [one for one in made(results) if one.changes]:
        place = one.path.resolve()
        if place in whole or (not place.is_relative_to(results.resolve()) and sum_now(place) == one.lineage["artefact"]["sha256"]):
            take_over(one)
            taken[", ".join(f"{before} → {now}" for before, now in one.changes)] += 1
    return taken
