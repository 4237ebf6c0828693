"""Names of entries in papers that `papers:` leaves out, for messages about dangling references."""

from __future__ import annotations

from collections.abc import Mapping

from crosslign.config.layers import load_layers, names_of
from crosslign.config.project import Project


def switched_off(project: Project, section: str, name: str) -> str:
    """Return what to do where a paper that is not among those of this run has an entry of this name; empty where none has."""
    for paper in names_of(project.root, "papers"):
        if paper in project.settings["papers"]:
            continue
        file = load_layers(project.root, f"papers/{paper}.yaml")
        entries = file.content.get(section) if isinstance(file.content, Mapping) else None
        if isinstance(entries, Mapping) and name in entries:
            return f"It is in {file.origin((section, name))}: add {paper} to `papers`"
    return ""
