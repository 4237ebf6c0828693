"""Which of the jobs that wait starts first: scores, then trainings, the longest before shorter ones, and what they wait for."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Literal

from crosslign.config.loads import declared_hours
from crosslign.config.project import Project, remembered
from crosslign.config.resolve import entry_of, run_id, split_run
from crosslign.config.tokenised import readers

SCORES = 20.0
"""Before trainings and encodings: the last score of a large set gives its vectors' disk back."""
TRAININGS = 10.0
HALF = 1e6
"""Examples read by a training whose priority is midway between those of the shortest and the longest."""
AN_HOUR = 1e6
"""Examples that a GPU reads in an hour, about."""


def _training(project: Project, system: str) -> float:
    """Return the priority of a training by its declared hours, else by the examples that it reads; one that names no steps is longest."""
    entry, limits = entry_of(project, system), project.scale["limits"]
    steps = min(entry["train"].get("steps", inf), limits.get("steps", inf))
    batches = {term["examples"]: min(term["batch"], limits.get("batch", inf)) for term in entry["terms"]}
    hours = declared_hours(project, run_id(system, 0))
    read = steps * sum(batches.values()) if hours is None else hours * AN_HOUR
    return TRAININGS + (1.0 if read == inf else read / (read + HALF))


@remembered
def _examples(project: Project, name: str) -> float:
    """Return the priority of a training set: that of the longest training that reads it, or another set made of it."""
    own = [_training(project, system) for system in readers(project).get(name, {})]
    return max([*own, *(_examples(project, other) for other in _made_of(project, name, "of"))], default=0.0)


def _made_of(project: Project, name: str, key: Literal["of", "from"]) -> list[str]:
    return [other for other, entry in project.examples.items() if name in entry.get(key, ())]


def job_priority(project: Project, rule: str, wildcards: Mapping[str, str]) -> float:
    """Return the priority of a job that scores, trains, or makes what is trained on; 0 of any other.

    The longest training begins first, so that it is not left alone on one core at the end. With GPUs trainings keep those busy: there
    cores build a training set where nothing else waits for them.
    """
    if rule == "train_system":
        return _training(project, split_run(project, wildcards["run"])[0])
    if rule == "tokenise":
        return _examples(project, wildcards["examples"])
    if rule == "build_examples" and not project.gpus:
        return _examples(project, wildcards["examples"])
    if rule == "build_view" and not project.gpus:
        return max((_examples(project, name) for name in _made_of(project, wildcards["view"], "from")), default=0.0)
    return SCORES if rule == "score" else 0.0
