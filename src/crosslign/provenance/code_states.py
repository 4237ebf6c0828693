"""Which artefacts other code than today's has made: of the same version, which says nothing, or of another, which makes them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crosslign.config.versions import code_behind, raised, versions_text
from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.files.fingerprint import fingerprint
from crosslign.files.lineage import code_of, described_by, read_sidecar, sidecars_of
from crosslign.files.text import write_json
from crosslign.paths import SHARED
from crosslign.provenance.causes import OTHER_CODE


@dataclass(frozen=True)
class Made:
    """An artefact, and the code that made it.

    Attributes:
        path: the file or folder.
        sidecar, lineage: what describes it.
        modules: the code that would make it now, as `code_behind` gives it.
        changes: each version that is another one now: what it was, and what it is.
    """

    path: Path
    sidecar: Path
    lineage: Mapping[str, Any]
    modules: Mapping[str, str]
    changes: list[tuple[str, str]]


def shared_by(results: Path) -> Iterator[Path]:
    """Yield the folders beside results that scales share; one that holds the results is none, but a link to the files of a machine."""
    for folder in (results.parent / name for name in SHARED):
        if folder.is_dir() and not results.resolve().is_relative_to(folder.resolve()):
            yield folder


def made(results: Path) -> Iterator[Made]:
    """Yield the artefacts of a results folder, and the downloads and models beside it, whose lineage names code that is still there."""
    for folder in (results, *shared_by(results)):
        for sidecar in sidecars_of(folder):
            # A lineage that cannot be read, or that names what is no longer there, says nothing of code.
            with suppress(InputError, KeyError, TypeError, AttributeError):
                lineage = read_sidecar(sidecar)
                modules = code_behind(lineage["rule"], lineage["recipe"], lineage.get("settings", {}).get("tasks"))
                changes = raised(str(lineage.get("version", "")), versions_text(modules))
                yield Made(described_by(sidecar), sidecar, lineage, modules, changes)


def code_lines(results: Path) -> list[str]:
    """Return in words how many artefacts other code than today's has made, and what follows from it."""
    other, versions = 0, Counter[str]()
    for one in made(results):
        if one.changes:
            versions[", ".join(f"{before} → {now}" for before, now in one.changes)] += 1
        else:
            other += code_of(one.lineage) != fingerprint(*one.modules.values())
    lines = [f"{OTHER_CODE}: {number_of(other, 'artefact')}; nothing needs to be done"] if other else []
    do = "the next run rebuilds them; crosslign verify --settle accepts them"
    return lines + [f"another version ({change}): {number_of(number, 'artefact')}; {do}" for change, number in sorted(versions.items())]


def take_over(one: Made) -> None:
    """Have an artefact's lineage say that it stands for what today's version would make, and what made it."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    accepted = [*one.lineage["run"].get("accepted", []), {"version": one.lineage.get("version", ""), "at": at}]
    run = {**one.lineage["run"], "accepted": accepted}
    write_json(one.sidecar, {**one.lineage, "version": versions_text(one.modules), "run": run})
