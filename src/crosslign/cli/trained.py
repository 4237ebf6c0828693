"""A trained run that a command names: its folder, its checkpoint's encoders, and all that their cards are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslign.entries.resolved import RunRecipe
from crosslign.errors import InputError
from crosslign.files.lineage import as_written, lineage_path, read_lineage, sidecar_if_there
from crosslign.files.walk import files_below, folders_in
from crosslign.provenance.artefact_states import require_whole
from crosslign.registry import nearest
from crosslign.reporting.card import Known, hub_name, model_card, model_index, score_lines


@dataclass(frozen=True)
class Trained:
    """A checkpoint of a trained run.

    Attributes:
        folder: of the run.
        checkpoint: its name.
        members: names of its encoders.
        lineage: of the run.
        examples: its training sets, by name.
        scores: its score files.
        encoders: base encoders of the catalog, by id.
    """

    folder: Path
    checkpoint: str
    members: list[str]
    lineage: Mapping[str, Any]
    examples: Mapping[str, Path]
    scores: list[Path]
    encoders: Mapping[str, Mapping[str, Any]]

    def card(self, member: str, index: bool = False) -> str:
        """Return the card of an encoder, with every score that is known by now; with `index` for programs, too."""
        with as_written(lineage_path(self.folder)):
            return self._card(self.lineage["recipe"], member, index)

    def _card(self, recipe: RunRecipe, member: str, index: bool) -> str:
        found = model_index(recipe["run_id"], self.scores) if index else []
        base = _base_encoder(self.folder.parent, recipe, member)
        known = Known(self.folder / self.checkpoint / member, hub_name(self.encoders.get(base, {})), score_lines(self.scores), found)
        return model_card(recipe, self.folder, self.checkpoint, member, self.lineage, self.examples, known)


def _base_encoder(systems: Path, recipe: RunRecipe, member: str) -> str:
    """Return the id of the base encoder that a run started from, or the first of the runs that it goes on from; empty if none is known."""
    base = recipe["base"]
    if "run" not in base:
        return str(base["members"].get(member, ""))
    before = sidecar_if_there(lineage_path(systems / base["run"]))
    return _base_encoder(systems, before["recipe"], member) if before else ""


def trained(results: Path, name: str, checkpoint: str, encoders: Mapping[str, Mapping[str, Any]]) -> Trained:
    """Return what lies in a results folder under a run's name, or a system's, of which it is the run of the lowest seed.

    Args:
        results: the folder, with its scale.
        name: of a run or a system.
        checkpoint: its name.
        encoders: base encoders of the catalog, by id.

    Raises:
        InputError: no such run or checkpoint, or lineage of something else, names the nearest; scores that differ from their lineage.
    """
    systems = results / "systems"
    runs = [path.name for path in folders_in(systems) if lineage_path(path).exists()]
    seeds = {run: seed for run in runs for system, _, seed in [run.rpartition("-s")] if system == name and seed.isdigit()}
    run = name if name in runs or not seeds else min(seeds, key=lambda one: int(seeds[one]))
    folder = systems / run
    if run not in runs:
        raise InputError(f"no trained run {name!r} here", where=str(systems), why=nearest(name, runs))
    members = [path.name for path in folders_in(folder / checkpoint) if (path / "config.json").exists()]
    if not members:
        checkpoints = sorted({path.parts[-3] for path in files_below(folder) if path.name == "config.json"})
        raise InputError(f"no checkpoint {checkpoint!r} here", where=str(folder), why=nearest(checkpoint, checkpoints))
    lineage = read_lineage(folder)
    with as_written(lineage_path(folder)):
        names = sorted({str(term["examples"]) for term in lineage["recipe"]["terms"]})
    examples = {name: results / "examples" / f"{name}.parquet" for name in names}
    beside = files_below(results / "scores" / run / checkpoint)
    scores = [path for path in beside if path.suffix == ".json" and not path.name.endswith("lineage.json")]
    require_whole(results, scores)
    return Trained(folder, checkpoint, members, lineage, examples, scores, encoders)
