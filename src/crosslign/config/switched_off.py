"""Names of entries in papers that `papers:` leaves out, for messages about dangling references."""

from __future__ import annotations

from collections.abc import Mapping

from crosslign.config.project import Project
from crosslign.config.yaml_files import load_yaml


def switched_off(project: Project, section: str, name: str) -> str:
    """Return what to do where a paper that is not among those of this run has an entry of this name; empty where none has."""
    for path in sorted((project.root / "config" / "papers").glob("[!.]*.yaml")):
        content = load_yaml(path).content if path.stem not in project.settings["papers"] else None
        entries = content.get(section) if isinstance(content, Mapping) else None
        if isinstance(entries, Mapping) and name in entries:
            return f"It stands in config/papers/{path.name}: add {path.stem} to `papers`"
    return ""
