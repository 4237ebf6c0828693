"""Saved states of a training: always an old one or a new one, never half of one, and never one of another recipe."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from crosslign.config.entry_keys import CHECKPOINT_MINUTES, TRAIN_DEFAULTS, completed, without_pace
from crosslign.config.versions import raised
from crosslign.encoders.model import Model
from crosslign.entries.catalog import Readout
from crosslign.entries.papers import Train
from crosslign.entries.resolved import RunRecipe
from crosslign.errors import InputError
from crosslign.files import atomic_folder, sha256_file, sha256_text, write_text
from crosslign.files.surroundings import versions
from crosslign.files.text import read_sealed, write_sealed
from crosslign.files.walk import disk_below
from crosslign.objectives.contract import Part
from crosslign.objectives.saved_parts import PARTS_FILE, state_of
from crosslign.training.optimiser import Optimiser

POINTER = "current"
TENSORS = ("model", "parts", "optimiser")
HALVES = "halves.json"
KEPT = 2
"""Saved states that are kept: the last, and one more for when that is damaged."""

log = logging.getLogger(__name__)


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as safetensors; two names of one memory are written twice."""
    seen: set[int] = set()
    ready: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        pointer = plain.untyped_storage().data_ptr()
        ready[name] = plain.clone() if pointer in seen else plain
        seen.add(pointer)
    save_file(ready, path)
    path.chmod(0o644)


def parts_state(parts: Mapping[str, Part]) -> dict[str, Tensor]:
    """Return the tensors of all parts by `<part>.<name>`."""
    return {f"{part}.{name}": tensor for part, module in parts.items() for name, tensor in module.state_dict().items()}


def load_parts(parts: Mapping[str, Part], tensors: Mapping[str, Tensor]) -> None:
    """Take over the tensors of `parts_state`."""
    for name, part in parts.items():
        part.load_state_dict(state_of(name, tensors))


def checksum_of(*modules: nn.Module) -> str:
    """Return a checksum of all parameters and buffers."""
    digest = hashlib.sha256()
    for module in modules:
        for name, tensor in sorted(module.state_dict().items()):
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def checkpoint_key(
    recipe: RunRecipe, examples: Mapping[str, str], model: Model, parts: Mapping[str, Part], accelerator: Any, version: str
) -> dict[str, Any]:
    """Return what a checkpoint must share with a run that goes on from it.

    Args:
        recipe: resolved; how often it is saved (`without_pace`) does not count.
        examples: SHA-256 of each training set by name.
        model: the encoder as it starts, as are the parts.
        parts: named state of the terms.
        accelerator: of `accelerate`.
        version: versions of what trains, in words.
    """
    lasting = {**recipe, "train": without_pace(recipe["train"])}
    return {
        "recipe": json.loads(json.dumps(lasting, default=str)),
        "seed": recipe["seed"],
        "examples": dict(sorted(examples.items())),
        "base": checksum_of(model, *(parts[name] for name in sorted(parts))),
        "versions": versions(),
        "version": version,
        "device": accelerator.device.type,
        "ranks": accelerator.num_processes,
        "threads": torch.get_num_threads(),
    }


def _same_recipe(found: Any, wanted: Mapping[str, Any]) -> bool:
    """Tell whether a checkpoint's recipe, of earlier ones its hash, is that of a run; keys that came up since count as their defaults."""
    if isinstance(found, str):
        return bool(found == sha256_text(json.dumps(wanted, sort_keys=True)))
    return {**found, "train": completed(found["train"], wanted["train"], TRAIN_DEFAULTS)} == wanted


class Pace:
    """Tells when a state is to be saved: some time after the last one, and after every so many steps where a recipe says so.

    It changes no bytes of the result. Time goes first, since a state takes as long to write however short a step is; it runs from the
    last one that this process wrote.

    Args:
        train: of the recipe, its `checkpoint_minutes` and `checkpoint_every` (none, or 0, for no such bound).
    """

    def __init__(self, train: Train) -> None:
        self._seconds = 60.0 * float(train.get("checkpoint_minutes") or CHECKPOINT_MINUTES)
        self._every = int(train.get("checkpoint_every") or 0)
        self.saved()

    def saved(self) -> None:
        """Take note that a checkpoint has been written."""
        self._last = time.monotonic()

    def by_time(self) -> bool:
        """Tell whether the last checkpoint is long enough ago, by the clock of this process."""
        return time.monotonic() - self._last >= self._seconds

    def by_steps(self, done: int) -> bool:
        """Tell whether one is due after so many steps."""
        return self._every > 0 and done % self._every == 0


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed process was still writing below a folder."""
    for path in sorted(Path(folder).rglob(".*.part")):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class Checkpoints:
    """The working folder of one run.

    Args:
        folder: `{results}/checkpoints/<run>`; removed by `clear` after success.
        key: what a checkpoint must have been made with to be gone on from: recipe, versions, inputs …, by name.

    Attributes:
        most_bytes: of the folder at its fullest, as far as this process has seen it.
    """

    def __init__(self, folder: Path, key: Mapping[str, Any]) -> None:
        self.folder, self.key, self.most_bytes = Path(folder), dict(key), 0

    def _newest_first(self) -> list[Path]:
        """Return the checkpoints, that which the pointer names and older ones; a newer one was never finished."""
        pointer = self.folder / POINTER
        last = pointer.read_text(encoding="utf-8", errors="replace").strip() if pointer.is_file() else ""
        return sorted((path for path in self.folder.glob("step-*") if path.name <= last), reverse=True)

    def states(self) -> list[dict[str, Any]]:
        """Return the states of the checkpoints that are kept and can be read: what they need must be kept too."""
        found = []
        for folder in self._newest_first():
            with suppress(InputError):
                found.append(read_sealed(folder / "state.json"))
        return found

    def save(self, model: Model, parts: Mapping[str, Part], optimiser: Optimiser, state: Mapping[str, Any]) -> None:
        """Write a checkpoint beside the last one, point to it, and only then remove the one before the last.

        Args:
            model: the encoder.
            parts: named state of the terms.
            optimiser: AdamW's state is kept.
            state: plain numbers to go on from; `step` is the number of steps done.
        """
        name = f"step-{state['step']:08d}"
        with atomic_folder(self.folder / name) as temporary:
            save_tensors(temporary / "model.safetensors", model.state_dict())
            save_tensors(temporary / PARTS_FILE, parts_state(parts))
            save_tensors(temporary / "optimiser.safetensors", optimiser.state())
            sums = {file: sha256_file(temporary / f"{file}.safetensors") for file in TENSORS}
            write_sealed(temporary / "state.json", {"key": self.key, "sha256": sums, **state})
        write_text(self.folder / POINTER, name + "\n")
        self.most_bytes = max(self.most_bytes, disk_below(self.folder))
        for other in self._newest_first()[KEPT:]:
            shutil.rmtree(other)
        log.info("checkpoint written at step %d", state["step"])

    def _stale(self, found: Mapping[str, Any]) -> list[str]:
        """Return what differs, by name; the fingerprint of the code, in checkpoints from before there were versions, says nothing."""
        differs = {name: self.key.get(name) != found.get(name) for name in self.key.keys() | found.keys()}
        differs |= {"code": False, "version": bool(raised(str(found.get("version", "")), str(self.key.get("version", ""))))}
        differs["recipe"] = differs["recipe"] and not ("recipe" in found and _same_recipe(found["recipe"], self.key["recipe"]))
        return sorted(name for name, different in differs.items() if different)

    def load(
        self, model: Model, parts: Mapping[str, Part], optimiser: Optimiser, check: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any] | None:
        """Take over the last checkpoint, if there is one of this very run.

        One that is damaged is left aside with a warning, and the one before it is taken. One that was made with another recipe,
        data, version or thread count is left aside with a warning that says which, and training starts from the beginning.

        Args:
            model: the encoder.
            parts: named state of the terms.
            optimiser: AdamW.
            check: raises InputError where what a state counts on, beside its own folder, is not there as it was.

        Returns:
            The `state` that was saved, or None.
        """
        for folder in self._newest_first():
            try:
                state, tensors = self._read(folder)
                stale = self._stale(state.pop("key"))
                if not stale:
                    check(state)
            except (InputError, SafetensorError, OSError, KeyError, TypeError, AttributeError) as error:
                log.warning(
                    "the saved state in %s cannot be read (%s): using an earlier one, or starting from the beginning",
                    folder,
                    error,
                )
                continue
            if stale:
                log.warning(
                    "the saved state at step %s was made with another %s: starting from the beginning",
                    state["step"],
                    ", ".join(stale),
                )
                break
            model.load_state_dict(tensors["model"])
            load_parts(parts, tensors["parts"])
            optimiser.load(tensors["optimiser"])
            log.info("continuing after step %d", state["step"])
            return state
        self._drop()
        return None

    @staticmethod
    def _read(folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Tensor]]]:
        """Return a checkpoint's state and tensors, its files checked against their sums.

        Raises:
            InputError: a file is not the one that was written.
        """
        state = read_sealed(folder / "state.json")
        for name, expected in state.pop("sha256").items():
            if sha256_file(folder / f"{name}.safetensors") != expected:
                raise InputError("its checksum differs from that of the file that was written", where=f"{name}.safetensors")
        return state, {name: load_file(folder / f"{name}.safetensors") for name in TENSORS}

    def note_halves(self, micro_batches: Mapping[str, int]) -> None:
        """Write down, by training set, the micro-batches with which all ranks of this very run are to start again."""
        write_sealed(self.folder / HALVES, {"key": self.key, "micro_batches": dict(micro_batches)})

    def halves(self) -> dict[str, int]:
        """Return what `note_halves` wrote for this very run; empty where it wrote nothing."""
        if not (self.folder / HALVES).is_file():
            return {}
        found = read_sealed(self.folder / HALVES)
        return {} if self._stale(found["key"]) else dict(found["micro_batches"])

    def _drop(self) -> None:
        (self.folder / POINTER).unlink(missing_ok=True)
        for folder in [*self.folder.glob("step-*"), self.folder / "best"]:
            shutil.rmtree(folder, ignore_errors=True)

    def clear(self) -> None:
        """Remove the working folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def write_system(folder: Path, model: Model, parts: Mapping[str, Part], readout: Readout) -> None:
    """Write one named checkpoint of a run: a folder per member, and `parts.safetensors` of what is of use after training."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder, readout)
    save_tensors(folder / PARTS_FILE, parts_state({name: part for name, part in parts.items() if not part.training_only}))
