"""Checkpoint selection: dev evaluations at intervals, and the best model so far under each name of `select`."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch

from crosslign.encoders.encode import Matrix
from crosslign.encoders.model import Model
from crosslign.entries.catalog import Readout
from crosslign.entries.papers import DevEvaluation
from crosslign.errors import InputError
from crosslign.files import atomic_folder, sha256_folder, write_json
from crosslign.objectives.contract import Part
from crosslign.training.checkpoint import write_system
from crosslign.training.curve import finite
from crosslign.training.signals import GivenUpError, StopFlag


class Dev(Protocol):
    """Scores a model on dev data, whose texts ranks share among them."""

    def encode(self, model: Model, rank: int, ranks: int) -> list[Matrix]:
        """Return float32 [n, d] of each thing that is read: of its texts every `ranks`-th, from number `rank` on."""

    def score(self, model: Model, encoded: Sequence[Matrix]) -> Mapping[str, float | None]:
        """Return the scores by selection name, None where one is undefined, of what one rank alone would have encoded."""


log = logging.getLogger(__name__)
T = TypeVar("T")


class Selection:
    """Best checkpoints so far.

    Args:
        select: `select` of the recipe; of each name `every`, the steps between dev evaluations or `epoch`, and `keep`, false where
            scores are written down and no model is kept. A run's last step is evaluated too.
        dev: scores the model.
        folder: where the best models lie until the end.
        readout: of the recipe, for the saved folders.
        epoch: steps of an epoch.
        accelerator: accelerate's; its first rank alone scores and keeps models.
    """

    def __init__(
        self,
        select: Mapping[str, DevEvaluation],
        dev: Dev | None,
        folder: Path,
        readout: Readout,
        epoch: int,
        accelerator: Any,
    ) -> None:
        evaluated = select if dev is not None else {}
        self._every = {name: epoch if entry["every"] == "epoch" else int(entry["every"]) for name, entry in evaluated.items()}
        self._keeps = [name for name, entry in evaluated.items() if entry.get("keep", True)]
        self._dev, self._folder, self._readout, self._accelerator = dev, folder, readout, accelerator
        self.evaluations: list[dict[str, Any]] = []
        self.best: dict[str, dict[str, Any]] = {}
        self._sums: dict[str, str] = {}

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs."""
        return {"looks": self.evaluations, "best": self.best, "sha256": self._sums}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state; a better model found after it is found again."""
        self.evaluations, self.best, self._sums = list(state["looks"]), dict(state["best"]), dict(state["sha256"])

    def check(self, state: Mapping[str, Any]) -> None:
        """Check that the best models of a saved state lie there as they were written.

        Raises:
            InputError: one is gone, or holds other bytes.
        """
        for name, expected in state["sha256"].items():
            place = self._place(name, state["best"][name]["step"])
            if not place.is_dir() or sha256_folder(place) != expected:
                raise InputError(f"the best model by {name} differs from the one that was written", where=str(place))

    def _place(self, name: str, step: int) -> Path:
        return self._folder / f"{name}-{step:08d}"

    def due(self, done: int, last: bool) -> list[str]:
        """Return the names of which a dev evaluation is due and was not done: none twice at one step, as where a run goes on from there.

        Args:
            done: steps done.
            last: whether this was the last step.
        """
        if not done or (self.evaluations and self.evaluations[-1]["step"] == done):
            return []
        return sorted(name for name, every in self._every.items() if last or done % every == 0)

    def evaluate(self, done: int, last: bool, model: Model, parts: Mapping[str, Part], stop: StopFlag) -> list[str]:
        """Score the model when a dev evaluation is due, and keep it for each name whose best it is; a tie keeps the older one.

        Args:
            done: steps done.
            last: whether this was the last step.
            model: the encoder.
            parts: saved beside it.
            stop: a signal while the model is scored gives the evaluation up; nothing has changed then.

        Returns:
            The names that it was kept for.

        Raises:
            GivenUpError: the process was asked to stop.
        """
        due, dev = self.due(done, last), self._dev
        if not due or dev is None:
            return []
        encoded = self._encoded(dev, model, stop)
        scores = self._together(lambda: dev.score(model, encoded) if self._accelerator.is_main_process else {}, stop)
        if not self._accelerator.is_main_process:
            self.evaluations.append({"step": done})
            return []
        kept = [name for name in due if name in self._keeps and self._is_better(name, scores.get(name))]
        for name in kept:
            first = self._place(kept[0], done)
            with atomic_folder(self._place(name, done)) as temporary:
                if name == kept[0]:
                    write_system(temporary, model, parts, self._readout)
                else:
                    copy_linked(first, temporary)
                self._sums[name] = sha256_folder(temporary)
            self.best[name] = {"step": done, "value": scores[name]}
        self.evaluations.append({"step": done, "scores": finite({name: scores.get(name) for name in due}), "kept": kept})
        log.info("step %d: %s; kept for: %s", done, ", ".join(f"{name} {scores.get(name)}" for name in due), ", ".join(kept) or "none")
        return kept

    def _encoded(self, dev: Dev, model: Model, stop: StopFlag) -> list[Matrix]:
        """Return the vectors of the dev data, of which each rank encodes its share."""
        rank, ranks = self._accelerator.process_index, self._accelerator.num_processes
        encoded = self._together(lambda: dev.encode(model, rank, ranks), stop)
        return [self._joined(own) for own in encoded] if ranks > 1 else encoded

    def _together(self, work: Callable[[], T], stop: StopFlag) -> T:
        """Return what some work gives, which a signal ends; what one rank gives up all do."""
        found = None
        try:
            with stop.at_once():
                found = work()
        except GivenUpError:
            pass
        if self._summed([found is None])[0] or found is None:
            raise GivenUpError
        return found

    def _summed(self, counts: Sequence[int]) -> list[int]:
        return list(self._accelerator.reduce(torch.tensor(counts, device=self._accelerator.device), "sum").tolist())

    def _joined(self, own: Matrix) -> Matrix:
        """Return the rows of all ranks: each adds its own to zeros, which is exact."""
        rank, ranks = self._accelerator.process_index, self._accelerator.num_processes
        joint = torch.zeros(self._summed([len(own)])[0], own.shape[1], device=self._accelerator.device)
        joint[rank::ranks] = torch.from_numpy(own).to(joint.device)
        return np.asarray(self._accelerator.reduce(joint, "sum").cpu().numpy())

    def _is_better(self, name: str, value: float | None) -> bool:
        if value is None or not isfinite(value):
            return False
        return name not in self.best or value > self.best[name]["value"]

    def prune(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Remove models that are the best of no name, neither now nor in a state that may be gone back to.

        Args:
            states: those of the checkpoints on disk.
        """
        best = [entry for state in (self.state(), *states) for entry in state.get("best", {}).items()]
        wanted = {self._place(name, entry["step"]).name for name, entry in best}
        for folder in self._folder.glob("*-*"):
            if folder.name not in wanted:
                shutil.rmtree(folder)

    def write(self, out: Path, last: Path, done: int) -> None:
        """Put the best model of each name into the run's folder; one that never had a score is the last one.

        Names that share a step share its files, those of the last step with `last`, and nothing is written twice.

        Args:
            out: folder of the run.
            last: the model after the last step, inside it.
            done: steps done.
        """
        for name in self._keeps:
            step = self.best[name]["step"] if name in self.best else done
            copy_linked(last if step == done else self._place(name, step), out / name)
        missing = sorted(set(self._keeps) - set(self.best))
        write_json(out / "selection.json", {"best": self.best, "looks": self.evaluations, "without_score": missing})


def copy_linked(folder: Path, copy: Path) -> None:
    """Make a copy of a folder whose files are hard links to the first one's; real copies where there can be no links.

    Only for what is not changed in place: a change would be one of both.

    Args:
        folder: to copy.
        copy: the new folder; it may be there, and lacks what it is given.
    """
    shutil.copytree(folder, copy, copy_function=_link, dirs_exist_ok=True)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=True)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)
