"""Evaluations whose texts were kept out of a system's training data (decontamination), for the footnotes of other cells."""

from __future__ import annotations

from crosslign.config.project import Project, remembered
from crosslign.config.resolve import entries_of
from crosslign.entries.catalog import Task


@remembered
def searched(project: Project, examples: str) -> frozenset[str]:
    """Return the evaluation corpora whose sentences a training set keeps out: of a union, those that all of its sets keep out."""
    entry = project.examples[examples]
    own = {part for name in entry.get("decontaminate", []) for part in parts_of(project, name)}
    others = [searched(project, name) for name in entry.get("of", [])]
    return frozenset(own) | (frozenset.intersection(*others) if others else frozenset())


@remembered
def parts_of(project: Project, corpus: str) -> frozenset[str]:
    """Return the evaluation corpora that one is joined of, or itself."""
    return frozenset(
        part for name in project.corpora[corpus].get("of", [corpus]) for part in ([name] if name == corpus else parts_of(project, name))
    )


def training_sets(project: Project, system: str) -> frozenset[str]:
    """Return the training sets of a system and of all systems that it starts from."""
    return frozenset(term["examples"] for entry in entries_of(project, system) for term in entry["terms"])


def evaluations_of(project: Project, task: Task) -> frozenset[str]:
    """Return the evaluation corpora that a task scores on: of a joined evaluation corpus, those that its splits name."""
    found: set[str] = set()
    for role, corpus in task["texts"].items():
        named = task.get("splits", {}).get(role)
        found |= parts_of(project, corpus) if named is None or named not in project.corpora else {named}
    return frozenset(found)


@remembered
def not_searched(project: Project, system: str, task: str) -> list[str]:
    """Return the evaluation corpora of a task that a training set of a system was not searched for, sorted.

    A pool of sentences that a few queries are looked for in is not a test: it may be of training text. Neither are official files without
    gold, which are mined and not scored.
    """
    entry = project.tasks[task]
    sets = evaluations_of(project, {**entry, "texts": {role: corpus for role, corpus in entry["texts"].items() if role != "official"}})
    wanted = {corpus for corpus in sets if project.corpora[corpus].get("reader") != "sentence_pool"}
    return sorted(set().union(*(wanted - searched(project, examples) for examples in training_sets(project, system))))
