"""Checks that no name has two meanings, such as a system called as a base encoder is."""

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
"""Sections that share one name space with another: a reference to `systems` may name an encoder too."""


def _taken(project: Project) -> Iterator[tuple[str, str, str]]:
    """Yield the section and name of each entry whose name has another meaning, and that meaning."""
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
