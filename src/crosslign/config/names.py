"""Names that would stand for two things: one of them would take the other's place without a word."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from crosslign.config.project import Project
from crosslign.config.targets import GROUPS
from crosslign.config.yaml_files import YamlFile, where_of
from crosslign.errors import InputError

RUN_END = re.compile(r"-s\d+$")
"""End of the name of a run, and of a training set that is drawn for a run's seed."""
OTHERS = {"systems": ("encoders", "base encoder"), "views": ("corpora", "corpus")}
"""Sections whose names stand where those of another may stand."""


def _taken(project: Project) -> Iterator[tuple[str, str, str]]:
    """Yield section, name, and what else the name stands for."""
    for section in ("encoders", "systems", "finetunes", "examples"):
        yield from ((section, name, "the name of a run") for name in getattr(project, section) if RUN_END.search(name))
    for section, (other, kind) in OTHERS.items():
        same: Collection[str] = getattr(project, other)
        yield from ((section, name, f"a {kind}") for name in getattr(project, section) if name in same)
    for section in ("tables", "figures"):
        yield from ((section, name, "a word of targets") for name in getattr(project, section) if name in GROUPS)


def check_names(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Refuse names of entries that already stand for something else.

    Raises:
        InputError: file, key, and what the name stands for.
    """
    for section, name, meaning in _taken(project):
        file = "config/encoders.yaml" if section == "encoders" else project.file_of(name)
        raise InputError(f"{name!r} is also {meaning}", where=where_of(files, file, (section, name)), do="Choose another name")
