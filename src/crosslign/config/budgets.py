"""Budgets in FLOPs of the encoder: of a training, of a row with all that it starts from, and of a table whose rows share one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosslign.config.project import Project
from crosslign.config.resolve import budget_share, entries_of, run_recipe, runs_of
from crosslign.config.trials import tuned_by
from crosslign.config.yaml_files import YamlFile, where_of
from crosslign.entries.papers import Table
from crosslign.errors import InputError

TOLERANCE = 0.01
"""Share of a table's budget by which a row may differ from it, however short its steps are."""
ALLOWED = f"{100 * TOLERANCE:g} %, or one step of each of its trainings where these are more"
EQUAL = "Set `budget:` of every training that the row starts from, so that their sum is the table's budget"


def budget_of(project: Project, system: str) -> float | None:
    """Return the FLOPs that a row of this system takes, with all that it starts from, as written; None where one has no budget."""
    trained = [entry["train"] for entry in entries_of(project, system)]
    return float(sum(train["budget"] for train in trained)) if all("budget" in train for train in trained) else None


def off(spent: float, budget: float, step: float = 0.0) -> bool:
    """Tell whether a row is further from a table's budget than the table allows.

    A training ends at the step nearest to its budget: it is off by up to half of the step that crosses it, which may be longer than others.

    Args:
        spent: FLOPs of the row.
        budget: those of the table.
        step: those of the mean step of each training of the row, together.
    """
    return abs(spent - budget) > max(TOLERANCE * budget, step)


def _chain(project: Project, run: str) -> list[str]:
    """Return a run and those that it starts from, without the trials of tuned ones: these are cost, and no budget."""
    base = run_recipe(project, run)["base"]
    return [run, *(_chain(project, base["run"]) if "run" in base else [])]


def spent_by(project: Project, table: Table, systems: list[list[str]]) -> dict[str, Any]:
    """Return what a table says of the cost of its rows; nothing where it has neither a budget nor tuned rows.

    Args:
        project: the configuration.
        table: its entry.
        systems: the trained systems of each row.

    Returns:
        `spent`, for each row the chains of its runs; with a budget `budget`, at this scale; with tuned rows `tuned`: `trials` of a row,
        and `by` which dev evaluations.
    """
    tuned = tuned_by(project, {system for row in systems for system in row})
    if "budget" not in table and not tuned:
        return {}
    seeds = table.get("seeds")
    chains = [[_chain(project, run) for system in row for run in runs_of(project, system, seeds)] for row in systems]
    share = {"budget": table["budget"] * budget_share(project)} if "budget" in table else {}
    return {**share, **({"tuned": tuned} if tuned else {}), "spent": chains}


def check_budgets(project: Project, files: Mapping[str, YamlFile], systems: Mapping[str, list[list[str]]]) -> None:
    """Refuse a row that cannot keep the budget of its table.

    Args:
        project: the configuration.
        files: what was read, for messages.
        systems: of each table with a budget, the trained systems of each row.

    Raises:
        InputError: file, row, what its trainings add up to.
    """
    for name, rows in systems.items():
        budget = project.tables[name]["budget"]
        for index, system in ((index, system) for index, row in enumerate(rows) for system in row):
            own = budget_of(project, system)
            if own is None or off(own, budget):
                where = where_of(files, project.file_of(name), ("tables", name, "rows", index, "system"))
                found = "a training without a budget" if own is None else f"{own:.4g} FLOPs"
                why = f"the table's budget is {budget:.4g} FLOPs, but {system} has {found}"
                raise InputError(f"the budget of {system} differs from that of the table {name}", where=where, why=why, do=EQUAL)
