"""One training job: from the resolved recipe and its inputs to the run's folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crosslign.config.entry_keys import head_of
from crosslign.corpora.evaluation import Evaluation
from crosslign.encoders.dropout import set_dropout
from crosslign.encoders.encode import Matrix, apply_head, encode, text_columns
from crosslign.encoders.model import Model
from crosslign.entries.catalog import Readout, Task
from crosslign.entries.papers import DevEvaluation
from crosslign.entries.resolved import RunRecipe
from crosslign.errors import InputError
from crosslign.objectives.contract import Part
from crosslign.tasks.data import Machine
from crosslign.tasks.records import Record
from crosslign.tasks.score import score, without_intervals
from crosslign.tasks.subsets import Subsets, cut, deciding_subsets
from crosslign.threads import limit_threads
from crosslign.training.fit import fit
from crosslign.training.terms import build_parts

Files = Mapping[str, Mapping[str, Path]]
SELECT_FIELDS = ("subset", "metric", "protocol", "direction")


def pick_score(records: Sequence[Record], name: str, select: DevEvaluation) -> float | None:
    """Return the value that a selection goes by; None where it is undefined.

    Args:
        records: scores of the selection's task.
        name: of the selection, for messages.
        select: subset and metric, and protocol or direction where they matter; the main score goes first.

    Raises:
        InputError: no record fits.
    """
    wanted = {field: value for field, value in select.items() if field in SELECT_FIELDS}
    found = [r for r in records if all(getattr(r, field) == value for field, value in wanted.items())]
    if not found:
        known = sorted({tuple(getattr(r, field) for field in SELECT_FIELDS) for r in records})
        raise InputError(
            "no score fits the selection", where=f"select: {name}", why=f"expected {wanted}; known {SELECT_FIELDS}: {known[:12]}"
        )
    return next((r for r in found if r.main), found[0]).value


def _deciding(
    evaluations: Mapping[str, Evaluation], select: Mapping[str, DevEvaluation], tasks: Mapping[str, Task]
) -> dict[str, Evaluation]:
    """Return what the selections decide by of each evaluation corpus: a corpus that several tasks read keeps what one of them needs."""
    needed: dict[str, Subsets] = {corpus: frozenset() for corpus in evaluations}
    for name in {entry["task"] for entry in select.values()}:
        read = tasks[name]["texts"].values()
        there = [subset for corpus in read for subset in evaluations[corpus].items["subset"].unique().to_pylist()]
        wanted = deciding_subsets(tasks[name], there, [entry.get("subset") for entry in select.values() if entry["task"] == name])
        for corpus in read:
            needed[corpus] |= wanted
    return {corpus: cut(evaluation, needed[corpus]) for corpus, evaluation in evaluations.items()}


def dev_scores(recipe: RunRecipe, files: Files, tasks: Mapping[str, Task], parts: Mapping[str, Part] | None = None) -> DevScores | None:
    """Return what scores a model for every selection of the recipe, with the ordinary scorers.

    Args:
        recipe: its `select`, `readout`, and `dev_readouts`, the readout of each task and evaluation corpus instead; a corpus
            that several tasks read alike is encoded once. On a GPU the training's precision takes the place of fp32.
        files: texts, items and gold of each evaluation corpus that the tasks name.
        tasks: entries of config/tasks.yaml, by id.
        parts: the run's parts; a task on logits gets those of its classification head.
    """
    select = recipe["select"]
    if not select:
        return None

    names = sorted({entry["task"] for entry in select.values()})
    corpora = sorted({corpus for name in names for corpus in tasks[name]["texts"].values()})
    wants_logits = any(tasks[name]["output"] == "logits" for name in names)
    if wants_logits and head_of(recipe) is None:
        raise InputError("a selection by logits needs a classification head", where=f"{recipe['system']}: select")
    evaluations = _deciding({corpus: Evaluation.read(files[corpus]) for corpus in corpora}, select, tasks)
    readouts = recipe.get("dev_readouts", {})

    wanted = {
        name: {
            role: (corpus, tasks[name]["output"], readouts.get(name, {}).get(role, recipe["readout"]))
            for role, corpus in tasks[name]["texts"].items()
        }
        for name in names
    }
    return DevScores(recipe, evaluations, tasks, wanted, parts or {})


Read = tuple[str, str, Readout]
"""What is read of a model: an evaluation corpus, as `vectors` or `logits`, by a readout."""


class DevScores:
    """Scores a model for every selection of a recipe.

    Args:
        recipe: see `dev_scores`, as are `tasks` and `parts`.
        evaluations: the evaluation corpora, cut to what decides.
        wanted: by task and role of a corpus in it, what is read.
    """

    def __init__(
        self,
        recipe: RunRecipe,
        evaluations: Mapping[str, Evaluation],
        tasks: Mapping[str, Task],
        wanted: Mapping[str, Mapping[str, Read]],
        parts: Mapping[str, Part],
    ) -> None:
        self._recipe, self._evaluations, self._tasks, self._wanted, self._parts = recipe, evaluations, tasks, wanted, parts
        self._reads: list[Read] = []
        for read in (read for roles in wanted.values() for read in roles.values()):
            if read not in self._reads:
                self._reads.append(read)

    def encode(self, model: Model, rank: int, ranks: int) -> list[Matrix]:
        """Return what is read of each corpus, float32 [n, d]: of its texts every `ranks`-th, from number `rank` on."""
        return [self._read(model, *read, rank, ranks) for read in self._reads]

    def _read(self, model: Model, corpus: str, output: str, readout: Readout, rank: int, ranks: int) -> Matrix:
        every = self._evaluations[corpus].texts
        _, texts, langs, pairs = text_columns(every.take(np.arange(rank, len(every), ranks)), corpus)
        if model.device.type == "cuda" and readout["precision"] == "fp32":
            readout = {**readout, "precision": self._recipe["train"]["precision"]}
        if output == "vectors":
            return encode(model, texts, langs, readout, pairs)
        head = self._parts[str(head_of(self._recipe))]
        return apply_head(head, encode(model, texts, langs, {**readout, "normalise": False}, pairs), model.device)

    def score(self, model: Model, encoded: Sequence[Matrix]) -> dict[str, float | None]:
        """Return the scores of what `encode` gives one rank alone."""
        records = {}
        for name, roles in self._wanted.items():
            outputs = {role: encoded[self._reads.index(read)] for role, read in roles.items()}
            corpora = {role: self._evaluations[corpus] for role, (corpus, _, _) in roles.items()}
            machine = Machine([str(model.device)], torch.get_num_threads())
            records[name] = score(name, without_intervals(self._tasks[name]), outputs, corpora, machine)
        return {name: pick_score(records[entry["task"]], name, entry) for name, entry in self._recipe["select"].items()}


def train_run(
    recipe: RunRecipe,
    examples: Mapping[str, Path],
    base: Mapping[str, Path],
    files: Files,
    tasks: Mapping[str, Task],
    out: Path,
    checkpoints: Path,
    context: Mapping[str, Any],
) -> dict[str, Any]:
    """Train one run, or go on where a stopped one left off.

    Args:
        recipe: the resolved recipe of the run.
        examples: folders of tokenised training sets by id.
        base: folder of each member to start from.
        files: texts, items and gold of the evaluation corpora of the dev evaluations, by id.
        tasks: their entries of config/tasks.yaml, by id.
        out: the run's folder, moved into place whole.
        checkpoints: working folder, with the saved states.
        context: `version`, the versions of what trains, in words.

    Returns:
        Counts for the lineage, `device` among them; see `fit` for these and for what is raised.
    """
    limit_threads(int(recipe["train"].get("threads", 1)))
    model = Model.load(base)
    if (dropout := recipe["train"].get("dropout")) is not None:
        set_dropout(model, float(dropout))
    parts = build_parts(recipe, model, Path(next(iter(base.values()))).parent)
    dev = dev_scores(recipe, files, tasks, parts)
    return fit(recipe, examples, model, parts, dev, Path(out), Path(checkpoints), str(context.get("version", "")))
