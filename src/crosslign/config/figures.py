"""Figures resolved: what each reads, or why a panel is empty, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.config.cells import column_facts, resolved_cell
from crosslign.config.members import why_unread
from crosslign.config.project import Project, remembered
from crosslign.config.resolve import checkpoint_name, readout_name, role_readout, runs_of
from crosslign.config.uses import why_missing

OF_VECTORS = ("tsne", "heatmap", "nearest", "pair_cosines")
"""Kinds of figures that read the vectors of an evaluation corpus."""
ACCOMPANIED = ("tsne", "heatmap")
"""Kinds of figures that show a number beside each picture: their `companion`."""
Panel = tuple[dict[str, Any], list[Path]]
"""What a panel shows, and the files of the line of data behind it."""


def _label(project: Project, system: str, paper: str) -> str:
    """Return how a table calls a system, one of this paper before others, or its id where none shows it."""
    tables = sorted(project.tables, key=lambda name: project.paper_of[name] != paper)
    rows = (row for name in tables for row in project.tables[name]["rows"])
    return next((str(row["label"]) for row in rows if row.get("system") == system), system)


@remembered
def figure_inputs(project: Project, figure: str) -> dict[str, Any]:
    """Return what a figure reads: `declared` (paths of the line of data) and `inputs` (as its kind wants them, paths as text).

    A panel whose data cannot be had holds its `reason` in place of a path.
    """
    entry, paper = project.figures[figure], project.paper_of[figure]
    panel_of = {"curves": _curve_panel, **dict.fromkeys(OF_VECTORS, _matrix_panel)}.get(entry["kind"], _score_panel)
    panels: list[dict[str, Any]] = []
    declared: list[Path] = []
    labels = entry.get("labels") or [_label(project, system, paper) for system in entry["from"]]
    for system, label in zip(entry["from"], labels, strict=True):
        panel, paths = panel_of(project, entry, system)
        panels.append({"label": label, **panel})
        declared += paths
    bases = entry.get("against", [])
    names = entry.get("against_labels") or [_label(project, base, paper) for base in bases]
    for panel, base, name in zip(panels if bases else [], bases, names, strict=True):
        under, paths = panel_of(project, entry, base)
        panel["against"] = {"label": name, **under}
        declared += paths
    shared = {"results": str(project.paths.results), "scale": project.settings["scale"], "stand_in": project.stand_in}
    inputs: dict[str, Any] = {"panels": panels, **shared}
    if entry["kind"] in OF_VECTORS:
        tables = {part: project.paths.evaluation(entry["text_set"], part) for part in ("texts", "items")}
        declared += tables.values() if declared else ()
        inputs |= {part: str(path) for part, path in tables.items()}
    return {"declared": sorted(set(declared)), "inputs": inputs}


def _curve_panel(project: Project, entry: Mapping[str, Any], system: str) -> Panel:
    folder = project.paths.system(runs_of(project, system)[0])
    if not folder.exists() and (reason := why_missing(project, "system", system)):
        return {"reason": reason}, []
    return {"curve": str(folder / "curve.jsonl")}, [folder]


def _matrix_panel(project: Project, entry: Mapping[str, Any], system: str) -> Panel:
    task = next((name for name, t in project.tasks.items() if entry["text_set"] in t["texts"].values()), "")
    checkpoint, readout = checkpoint_name(project, system, task, entry), readout_name(project, system, task, entry)
    roles = project.tasks[task]["texts"].items() if task else ()
    readout = next((role_readout(project, system, readout, task, role) for role, corpus in roles if corpus == entry["text_set"]), readout)
    path = project.paths.embeddings(runs_of(project, system)[0], checkpoint, readout, entry["text_set"])
    reason = why_missing(project, "corpus", entry["text_set"]) or why_missing(project, "system", system)
    reason = reason or why_unread(project, system, [entry["text_set"]])
    if reason and not path.exists():
        return {"reason": reason}, []
    return {"matrix": str(path)}, [path]


def _score_panel(project: Project, entry: Mapping[str, Any], system: str) -> Panel:
    cells = [resolved_cell(project, {"system": system}, {**column_facts(entry), **cell}) for cell in entry["cells"]]
    return {"cells": cells}, [project.paths.results / score for cell in cells for score in cell.get("scores", [])]
