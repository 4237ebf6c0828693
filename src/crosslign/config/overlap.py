"""Corpora, evaluation corpora and training sets behind the tables of a run: the inputs of the overlap matrix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosslign.config.cells import resolve_table, table_files
from crosslign.config.graph import ancestors, corpus_path
from crosslign.config.kept_out import parts_of
from crosslign.config.project import Project
from crosslign.config.targets import covered
from crosslign.paths import COUNTS


def _runs(project: Project) -> tuple[list[str], set[str]]:
    """Return the runs and the tasks of all cells that are computed."""
    scores = {Path(score) for table in covered(project)[0] for score in table_files(resolve_table(project, table))}
    computed = [score for score in scores if score.parts[1] != COUNTS]
    return sorted({score.parts[1] for score in computed}), {score.stem for score in computed}


def training_sets(project: Project, runs: Sequence[str]) -> list[str]:
    """Return the ids of the training sets of runs, of the runs that they start from, and of the sets that these are joined from."""
    return sorted(name for kind, name in ancestors(project, (("run", run) for run in runs)) if kind == "examples")


def expected_none(project: Project) -> dict[str, list[str]]:
    """Return the evaluation corpora of which a corpus should hold no text, by corpus."""
    return {name: list(entry["expect_none"]) for name, entry in project.corpora.items() if "expect_none" in entry}


def overlap_inputs(project: Project) -> dict[str, dict[str, Path]]:
    """Return what the overlap is measured on, each by id: `corpora` (rows), `evaluations` (texts) and `examples` (training sets)."""
    runs, tasks = _runs(project)
    examples = training_sets(project, runs)
    corpora: set[str] = set()
    for name in examples:
        for corpus in project.examples[name].get("from", []):
            corpora.update(project.views[corpus]["from"] if corpus in project.views else [corpus])
    named = [corpus for task in tasks for corpus in project.tasks[task]["texts"].values()]
    evaluations = {part for corpus in named for part in parts_of(project, corpus)}
    evaluations.update(corpus for name in examples for corpus in project.examples[name].get("decontaminate", []))
    return {
        "corpora": {name: corpus_path(project, name) for name in sorted(corpora)},
        "evaluations": {name: corpus_path(project, name) for name in sorted(evaluations)},
        "examples": {name: project.paths.examples(name) for name in examples},
    }
