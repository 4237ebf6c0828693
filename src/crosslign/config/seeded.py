"""Training sets that are sampled once for each seed of a run (docs/training.md, docs/papers/mpcl.md)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Final

from crosslign.config.project import Project
from crosslign.config.resolve import entry_of, seeded_id, seeds_of
from crosslign.entries.papers import TrainingSet

FIRST: Final = 42
"""Seed of the set that is looked at where no run asks, such as in counts."""


def _uses(project: Project) -> dict[str, set[int]]:
    """Return the seeds of the runs that train on each set."""
    used: dict[str, set[int]] = defaultdict(set)
    for system in project.systems:
        for term in entry_of(project, system)["terms"]:
            used[term["examples"]].update(seeds_of(project, system))
    for entry in project.finetunes.values():
        for term in entry["terms"]:
            used[term["examples"]].update(project.settings.get("seeds") or entry.get("seeds", [FIRST]))
    return used


def with_seeded_examples(project: Project) -> Project:
    """Return the project with `<id>-s<seed>` for every training set of `seed: run` and every run that trains on it.

    Of the sets that such a one is made `of`, those of `seed: run` have the same seed. The set's own id keeps the seed 42.
    """
    drawn = {name for name, entry in project.examples.items() if entry.get("seed") == "run"}
    if not drawn:
        return project
    used = _uses(project)
    examples: dict[str, TrainingSet] = {name: {**e, "seed": FIRST} if name in drawn else e for name, e in project.examples.items()}
    waiting = [(name, seed) for name in sorted(drawn) for seed in sorted(used[name])]
    while waiting:
        name, seed = waiting.pop(0)
        entry: TrainingSet = {**project.examples[name], "seed": seed}
        if "of" in entry:
            entry["of"] = [seeded_id(other, seed) if other in drawn else other for other in entry["of"]]
            waiting += [(other, seed) for other in project.examples[name]["of"] if other in drawn]
        examples[seeded_id(name, seed)] = entry
    return replace(project, examples=examples)
