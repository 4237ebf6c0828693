"""Tuned systems: the values that are tried, a system each (a trial), and the choice among them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, cast

from crosslign.config.project import Project, remembered
from crosslign.config.resolve import chain_of, entry_of, is_untrained, merge, runs_of
from crosslign.entries.papers import Recipe, Tune

DEV = "dev"
"""Name of the selection by which a trial is judged: it evaluates the last step, and keeps no model."""
LAST_STEP = 10**9
"""Steps between dev evaluations, more than any training has: the last step is evaluated in any case."""
FIRST = 1
"""Seed of the draw and of the trials where none is given."""


def points(tune: Tune) -> list[dict[str, float]]:
    """Return the values of each trial by their places in a recipe: the whole grid, or `trials` points of it that `seed` draws."""
    grid = [dict(zip(tune["values"], point, strict=True)) for point in itertools.product(*tune["values"].values())]
    if "trials" not in tune:
        return grid
    drawn = random.Random(tune.get("seed", FIRST)).sample(range(len(grid)), min(tune["trials"], len(grid)))
    return [grid[place] for place in sorted(drawn)]


@remembered
def trials_of(project: Project, system: str) -> Mapping[str, dict[str, float]]:
    """Return the values of each trial of a system by the trial's id; none of a system that is not tuned."""
    tune = {} if is_untrained(project, system) else entry_of(project, system).get("tune", {})
    return {f"{system}-t{number}": point for number, point in enumerate(points(tune), 1)} if tune else {}


def _trial(entry: Recipe, point: Mapping[str, float]) -> Recipe:
    """Return the entry of a trial: its system's at these values, judged at its last step; numbers that are not finite do not fail it."""
    tune = entry["tune"]
    kept = {key: value for key, value in entry.items() if key != "tune"}
    train = merge(entry["train"], {"guards": {"not_finite": "mark"}})
    dev = {**tune["by"], "every": LAST_STEP, "keep": False}
    trial = {**kept, "train": train, "select": {DEV: dev}, "seeds": [tune.get("seed", FIRST)], "trial": dict(point)}
    return cast(Recipe, trial)


def with_trials(project: Project) -> Project:
    """Return the project with a system for each trial of its tuned ones: `<system>-t1` and so on."""
    found = {
        trial: (_trial(entry_of(project, system), point), project.paper_of[system])
        for system in project.systems
        for trial, point in trials_of(project, system).items()
    }
    if not found:
        return project
    systems = {**project.systems, **{trial: entry for trial, (entry, _) in found.items()}}
    return replace(project, systems=systems, paper_of={**project.paper_of, **{trial: paper for trial, (_, paper) in found.items()}})


def trials_behind(project: Project, system: str) -> int:
    """Return how many trials a row of this system took, with those of all that it starts from."""
    return sum(len(trials_of(project, one)) for one in chain_of(project, system))


def choice_recipe(project: Project, system: str) -> dict[str, Any]:
    """Return the recipe of a choice: `system`, `by`, and `trials`, the values of each by its run."""
    trials = {runs_of(project, trial)[0]: point for trial, point in trials_of(project, system).items()}
    return {"system": system, "by": entry_of(project, system)["tune"]["by"], "trials": trials}


def tuned_by(project: Project, systems: Collection[str]) -> dict[str, Any]:
    """Return how rows of these systems, with all that they start from, are tuned: `trials` of a row, and `by` which dev evaluations."""
    behind = {one for system in systems for one in chain_of(project, system) if trials_of(project, one)}
    by = sorted({entry_of(project, one)["tune"]["by"]["task"] for one in behind})
    return {"trials": max(trials_behind(project, system) for system in systems), "by": by} if behind else {}
