"""Claims of the papers, resolved: each leads to the cells that it compares, at the paper's own recipe and at equal budget."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from crosslign.config.baselines import layout_of
from crosslign.config.cells import resamples_behind, resolve_table, scores_behind
from crosslign.config.project import Project, remembered
from crosslign.config.targets import covered
from crosslign.config.yaml_files import YamlFile, where_of
from crosslign.entries.papers import Comparison, Table
from crosslign.entries.resolved import ResolvedCell, ResolvedTable
from crosslign.errors import InputError
from crosslign.registry import nearest

KINDS: tuple[Literal["own", "equal", "equal_other"], ...] = ("own", "equal", "equal_other")
"""Comparisons of a claim: at the paper's own recipe, at equal budget, and at equal budget from another base encoder."""


def _row(table: Table, named: str) -> list[int]:
    """Return the places of the rows that have a system, or else a label, of this name; of the group before a colon where it has one."""
    group, colon, label = named.partition(": ")
    rows = table["rows"]
    found = [at for at, row in enumerate(rows) if named in (row.get("system"), row["label"])]
    return found or [at for at, row in enumerate(rows) if colon and row.get("group") == group and row["label"] == label]


def _columns(table: Table, named: list[str]) -> list[int]:
    labels = [": ".join(filter(None, (column.get("group"), column["label"]))) for column in table["columns"]]
    plain = [column["label"] for column in table["columns"]]
    return [labels.index(name) if name in labels else plain.index(name) for name in named]


def _whole(resolved: ResolvedTable, row: int, column: int) -> ResolvedCell:
    """Return a cell that stands for itself: an average of other columns with their cells in it."""
    cell = resolved["cells"][row][column]
    if "mean_of" not in cell:
        return cell
    labels = [entry["label"] for entry in resolved["columns"]]
    return {"parts": [_whole(resolved, row, labels.index(label)) for label in cell["mean_of"]]}


def reason_of(cell: ResolvedCell) -> str:
    """Return why a resolved cell, or a part of it, is not run; empty where all of it is."""
    if "parts" in cell:
        return next(filter(None, map(reason_of, cell["parts"])), "")
    return "" if "scores" in cell else str(cell.get("reason") or "not run")


def _compared(project: Project, asked: Comparison) -> dict[str, Any]:
    """Return one comparison: table, columns, `sign`, and under `better` and `worse` each row's name, place and cells; or `reason`."""
    name = asked["table"]
    if name not in project.tables:
        return {"table": name, "reason": f"the table {name} is not among this run's papers"}
    resolved = resolve_table(project, name)
    columns = _columns(resolved, asked["columns"])
    first = resolved["columns"][columns[0]]
    found: dict[str, Any] = {"table": name, "columns": asked["columns"], "places": columns}
    found |= {"sign": -1 if first.get("better") == "lower" else 1, "scale_by": first.get("scale_by", layout_of(resolved)["scale_by"])}
    for side in ("better", "worse"):
        at = _row(resolved, asked[side])[0]
        found[side] = {"row": resolved["rows"][at]["label"], "place": at, "cells": [_whole(resolved, at, column) for column in columns]}
    cells = [*found["better"]["cells"], *found["worse"]["cells"]]
    reason = next(filter(None, map(reason_of, cells)), "")
    files = [project.paths.results / file for cell in cells for file in scores_behind(cell)]
    if not reason and name not in covered(project)[0] and not all(path.exists() for path in files):
        reason = f"the table {name} is not among this run's targets"
    return {**found, **({"reason": reason} if reason else {})}


@remembered
def resolve_claims(project: Project) -> list[dict[str, Any]]:
    """Return the claims of all papers of a run, in the order of their files, each comparison with its cells."""
    return [
        {"id": name, "paper": project.paper_of[name], **entry, **{kind: _compared(project, entry[kind]) for kind in KINDS if kind in entry}}
        for name, entry in project.claims.items()
    ]


def claim_scores(project: Project) -> list[Path]:
    """Return the score files that verdicts read, with their resamples, sorted."""
    scores: set[str] = set()
    for claim in resolve_claims(project):
        for kind in filter(claim.__contains__, KINDS):
            if "reason" not in claim[kind]:
                cells = [*claim[kind]["better"]["cells"], *claim[kind]["worse"]["cells"]]
                scores.update(score for cell in cells for score in scores_behind(cell))
    return sorted({project.paths.results / score for score in scores} | resamples_behind(project, scores))


def check_claims(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Refuse a claim of a table, a row or a column that there is not; a table at equal budget may be of a paper that is switched off.

    Raises:
        InputError: file, key, and the nearest name.
    """
    for name, entry in project.claims.items():
        for kind in filter(entry.__contains__, KINDS):
            asked, keys = entry[kind], ("claims", name, kind)

            def refuse(key: str, what: str, named: str, allowed: list[str], keys: tuple[str, ...] = keys, name: str = name) -> InputError:
                where = where_of(files, project.file_of(name), (*keys, key))
                return InputError(f"unknown {what} {named!r}", where=where, why=nearest(named, allowed))

            if asked["table"] not in project.tables:
                if kind == "own":
                    raise refuse("table", "table", asked["table"], list(project.tables))
                continue
            table = project.tables[asked["table"]]
            for side in ("better", "worse"):
                if len(_row(table, asked[side])) != 1:
                    rows = [text for row in table["rows"] for text in (row.get("system", ""), row["label"]) if text]
                    raise refuse(side, "or ambiguous row", asked[side], rows)
            for column in asked["columns"]:
                known = [text for one in table["columns"] for text in (one["label"], f"{one.get('group', '')}: {one['label']}")]
                if column not in known:
                    raise refuse("columns", "column", column, known)


def claims_recipe(project: Project) -> dict[str, Any]:
    """Return what the page of claims is made of: `claims`, the entries of the `tables` that they name, `title`."""
    claims = resolve_claims(project)
    named = {claim["own"]["table"] for claim in claims if "own" in claim}
    title = f"What the papers claim (scale {project.settings['scale']})"
    return {"claims": claims, "tables": {name: project.tables[name] for name in sorted(named)}, "title": title}
