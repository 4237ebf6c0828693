"""What the names under `targets:` stand for: files of tables, figures, pages and mined pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosslign.config.layers import names_of
from crosslign.config.pairs import PREFIX
from crosslign.config.project import Project
from crosslign.config.settings import PAGES, SETTINGS
from crosslign.errors import InputError
from crosslign.paths import CLAIMS_FORMATS, FIGURE_FORMATS, MINED_FORMATS, OVERVIEW_FORMATS, TABLE_FORMATS
from crosslign.registry import nearest

GROUPS = ("all", "all_tables", "all_figures", *PAGES)
"""Words that `targets:` knows beside ids."""


def tables_of(project: Project, target: str) -> list[str]:
    """Return the ids of the tables that one name stands for; none for a page.

    A table that is made `on_request` is named by its id alone where its data are fetched.
    """
    named = [t for t in project.tables if target in ("all", "all_tables", t, project.paper_of[t])]
    return [t for t in named if t == target or project.stand_in or not project.tables[t].get("on_request")]


def figures_of(project: Project, target: str) -> list[str]:
    """Return the ids of the figures that one name stands for; none for a page."""
    return [f for f in project.figures if target in ("all", "all_figures", f, project.paper_of[f])]


def minings_of(project: Project, target: str) -> list[str]:
    """Return the minings that one name stands for: an entry of `mine:`, or that of a pair's file."""
    own = target in project.pair_files
    return [name for name in project.settings["mine"] if target == name or (own and project.paper_of.get(name) == target)]


def covered(project: Project) -> tuple[list[str], list[str]]:
    """Return the tables and the figures that the pages of this run cover, in the order of the papers' files."""
    wanted = [target for target in project.settings["targets"] if target not in PAGES] or ["all"]
    tables = {table for target in wanted for table in tables_of(project, target)}
    figures = {figure for target in wanted for figure in figures_of(project, target)}
    return [t for t in project.tables if t in tables], [f for f in project.figures if f in figures]


def _of(project: Project, target: str) -> list[Path]:
    paths = project.paths
    found = [paths.table(table, form) for table in tables_of(project, target) for form in TABLE_FORMATS]
    found += [paths.figure(figure, form) for figure in figures_of(project, target) for form in FIGURE_FORMATS]
    if target in ("all", "overview"):
        found += [paths.overview(form) for form in OVERVIEW_FORMATS]
    if target in ("all", "overlap"):
        found += [paths.overlap("csv"), paths.overlap("md")]
    if target in ("all", "report"):
        found.append(paths.report)
    if target == "claims":
        found += [paths.claims(form) for form in CLAIMS_FORMATS]
    found += [paths.mined(name, form) for name in minings_of(project, target) for form in MINED_FORMATS]
    return found


def target_names(project: Project) -> list[str]:
    """Return every name that a target may have, but `all`, each once."""
    names = [*GROUPS, *project.settings["papers"], *project.pair_files, *project.tables, *project.figures, *project.settings["mine"]]
    return [name for name in dict.fromkeys(names) if name != "all"]


def _unknown(project: Project, target: str, allowed: Sequence[str]) -> InputError:
    where = f"{SETTINGS}: targets"
    if target in names_of(project.root, "papers"):
        papers = ",".join(project.settings["papers"])
        do = f"Name what to build from them, such as --config 'papers=[{papers}]' 'targets=[all]', or add {target} to papers"
        return InputError(f"target {target!r} is a paper that is switched off", where=where, why=f"papers: [{papers}]", do=do)
    if target.startswith(PREFIX):
        do = "Write the pair file first, for example with: crosslign pair de-hsb (docs/your-own-pair.md)"
        why = f"pairs there: {', '.join(project.pair_files) or 'none'}"
        return InputError(f"unknown target {target!r}", where=where, why=why, do=do)
    return InputError(f"unknown target {target!r}", where=where, why=nearest(target, sorted(allowed)))


def target_files(project: Project, wanted: Sequence[str]) -> list[Path]:
    """Return the files of named targets.

    Args:
        project: the configuration.
        wanted: names: `all`, `all_tables`, `all_figures`, `overview`, `overlap`, `report`, a paper, a table, a figure, an entry of `mine:`.

    Raises:
        InputError: a name that stands for nothing; names the nearest and all allowed ones.
    """
    allowed = ["all", *target_names(project)]
    for target in wanted:
        if target not in allowed:
            raise _unknown(project, target, allowed)
    return list(dict.fromkeys(path for target in wanted for path in _of(project, target)))
