"""The training loop: one for every objective."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import torch

from crosslign.encoders.memory import keep_freed_memory
from crosslign.encoders.model import Model
from crosslign.errors import StoppedError
from crosslign.files import atomic_folder, sha256_file, sha256_text
from crosslign.files.lineage import versions
from crosslign.objectives.contract import Part
from crosslign.training.checkpoint import Checkpoints, checksum_of, remove_leftovers, write_system
from crosslign.training.curve import Curve, Progress
from crosslign.training.encoding import Settings
from crosslign.training.optimiser import Optimiser
from crosslign.training.schedule import total_steps
from crosslign.training.selection import Dev, Selection
from crosslign.training.signals import StopFlag, stop_requests
from crosslign.training.step import StepLoss, Stepper, not_finite
from crosslign.training.terms import Stream, open_streams

PRECISIONS = {"fp32": "no", "bf16": "bf16", "fp16": "fp16"}

log = logging.getLogger(__name__)


def start_accelerator(precision: str) -> Any:
    """Return `accelerate`'s Accelerator: device, autocast, ranks and the gradient scaler of fp16.

    Without a GPU fp16 becomes bf16, with a warning: CPUs have no fp16 training.
    """
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    gpu = torch.cuda.is_available()
    if precision == "fp16" and not gpu:
        log.warning("no GPU: training in bf16 instead of fp16")
        precision = "bf16"
    AcceleratorState._reset_state()  # one process may train twice, in two precisions
    if not gpu:
        keep_freed_memory()
    else:
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    return Accelerator(cpu=not gpu, mixed_precision=PRECISIONS[precision])


def _key(
    recipe: Mapping[str, Any], examples: Mapping[str, Path], model: Model, parts: Mapping[str, Part], accelerator: Any, code: str
) -> dict[str, Any]:
    """Return what a checkpoint must share with a run that goes on from it."""
    return {
        "recipe": sha256_text(json.dumps(recipe, sort_keys=True, default=str)),
        "seed": recipe["seed"],
        "examples": {name: sha256_file(path) for name, path in sorted(examples.items())},
        "base": checksum_of(model, *(parts[name] for name in sorted(parts))),
        "versions": versions(),
        "code": code,
        "device": accelerator.device.type,
        "ranks": accelerator.num_processes,
        "threads": torch.get_num_threads(),
    }


class _Run:
    """Everything that one training holds, and its state."""

    def __init__(
        self,
        recipe: Mapping[str, Any],
        examples: Mapping[str, Path],
        model: Model,
        parts: Mapping[str, Part],
        dev: Dev | None,
        checkpoints: Path,
        code: str,
    ) -> None:
        train, readout = recipe["train"], recipe["readout"]
        self.recipe, self.model, self.parts = recipe, model, parts
        self.accelerator = start_accelerator(train["precision"])
        self.key = _key(recipe, examples, model, parts, self.accelerator, code)
        if self.writes:
            remove_leftovers(checkpoints)
        with self.accelerator.main_process_first():
            self.streams: list[Stream] = open_streams(recipe, examples, model, checkpoints / "examples")
        for module in (model, *parts.values()):
            module.to(self.accelerator.device).train()
        order = self.streams[0].order
        self.steps = total_steps(order.units, order.units_per_batch, train.get("epochs"), train.get("steps"))
        settings = Settings(
            self.accelerator, recipe["seed"], readout["pooling"], readout.get("layer", -1), train["max_length"], readout.get("prefix", "")
        )
        self.stepper = Stepper(model, parts, self.streams, settings)
        self.optimiser = Optimiser(recipe, model, parts, self.steps)
        self.scaler = self.accelerator.scaler
        self.selection = Selection(recipe["select"], dev, checkpoints / "best", readout)
        self.checkpoints = Checkpoints(checkpoints, self.key)
        state = self.checkpoints.load(model, parts, self.optimiser)
        self.done = self._restore(state) if state else 0
        name = "curve.jsonl" if self.writes else f".curve-{self.accelerator.process_index}.jsonl"
        self.curve = Curve(checkpoints / name, state["curve_bytes"] if state else 0)

    @property
    def writes(self) -> bool:
        """Whether this process is the one that writes."""
        return bool(self.accelerator.is_main_process)

    def _restore(self, state: Mapping[str, Any]) -> int:
        self.selection.restore(state["selection"])
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])
        return int(state["step"])

    def save(self) -> None:
        """Write a checkpoint for resume."""
        self.accelerator.wait_for_everyone()
        state = {
            "step": self.done,
            "curve_bytes": self.curve.flush(),
            "selection": self.selection.state(),
            "scaler": self.scaler.state_dict() if self.scaler is not None else None,
        }
        if self.writes:
            self.checkpoints.save(self.model, self.parts, self.optimiser, state)
            self.selection.prune(self.checkpoints.state_of_previous().get("selection", {}))
        self.accelerator.wait_for_everyone()

    def step(self) -> StepLoss:
        """Do one optimiser step, write its line of the curve, and look at dev data when that is due."""
        learning_rate = self.optimiser.learning_rate(self.done)
        result = self.stepper.run(self.done, learning_rate, self.scaler)
        norm = self.optimiser.step(self.done, self.scaler)
        if not isfinite(norm) and self.scaler is None:
            raise not_finite("the gradient", self.done, result.ids, learning_rate, result.terms)
        self.done += 1
        self.curve.write(
            {
                "step": self.done,
                "epoch": round(self.done / self.streams[0].order.steps_per_epoch, 6),
                "loss": result.loss,
                "learning_rate": learning_rate,
                "grad_norm": norm,
                "terms": result.terms,
            }
        )
        self.selection.look(self.done, self.done == self.steps, self.model, self.parts, self.writes)
        return result

    def stopping(self, flag: StopFlag) -> bool:
        """Tell whether any rank was asked to stop."""
        if self.accelerator.num_processes == 1:
            return bool(flag)
        asked = torch.tensor([int(bool(flag))], device=self.accelerator.device)
        return bool(self.accelerator.reduce(asked, "sum").item())

    def write(self, out: Path) -> None:
        """Write the run's folder, and remove the working folder."""
        self.curve.flush()
        self.curve.close()
        if self.writes:
            with atomic_folder(out) as temporary:
                write_system(temporary / "last", self.model, self.parts, self.recipe["readout"])
                self.selection.write(temporary, temporary / "last")
                shutil.copyfile(self.curve.path, temporary / "curve.jsonl")
            self.checkpoints.clear()
        self.accelerator.wait_for_everyone()

    def summary(self, last: StepLoss | None) -> dict[str, Any]:
        """Return the counts of the run."""
        return {
            "steps": self.steps,
            "epochs": round(self.steps / self.streams[0].order.steps_per_epoch, 6),
            "examples": {stream.name: stream.store.facts for stream in self.streams},
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "precision": self.accelerator.mixed_precision if self.accelerator.mixed_precision != "no" else "fp32",
            "ranks": self.accelerator.num_processes,
            "last_loss": last.loss if last else None,
            "best": self.selection.best,
            "device": self.accelerator.device.type,
        }


def fit(
    recipe: Mapping[str, Any],
    examples: Mapping[str, Path],
    model: Model,
    parts: Mapping[str, Part],
    dev: Dev | None,
    out: Path,
    checkpoints: Path,
    code: str = "",
) -> dict[str, Any]:
    """Train a model by a recipe, from the start or from where a killed run left off, and write the run's folder.

    On a CPU the weights of a run that was killed at any moment and started again are, bit for bit, those of one that
    was never killed: all draws are functions of seed and step, and a checkpoint holds the rest.

    Args:
        recipe: a resolved recipe: system, seed, parts, terms, train, select, readout.
        examples: `<examples>.parquet` by the names that the terms use.
        model: the encoder; trained in place.
        parts: the recipe's parts, attached to the model.
        dev: scores the model for `select`, or None.
        out: folder of the run, written whole at the end: a folder per checkpoint, curve.jsonl, selection.json.
        checkpoints: working folder, removed after success.
        code: fingerprint of the code; a checkpoint of other code is not gone on from.

    Returns:
        steps, epochs, examples (rows, texts, tokens, truncated), parameters, precision, ranks, last_loss, best, device.

    Raises:
        StoppedError: SIGTERM or SIGUSR1 came; the state is saved.
        CrosslignError: the loss or the gradient is not finite.
        InputError: terms or examples that cannot be used.
        ResourceError: memory does not suffice.
    """
    with torch.random.fork_rng(), stop_requests() as stop:
        run = _Run(recipe, examples, model, parts, dev, Path(checkpoints), code)
        log.info("%s: %d steps on %s", recipe.get("run_id", recipe["system"]), run.steps, run.accelerator.device)
        last = _loop(run, stop, recipe["train"].get("checkpoint_every", 100))
        run.write(Path(out))
    return run.summary(last)


def _loop(run: _Run, stop: StopFlag, every: int) -> StepLoss | None:
    progress, last = Progress(run.done, run.steps), None
    while run.done < run.steps:
        if run.stopping(stop):
            run.save()
            raise StoppedError(
                "training was asked to stop",
                where=f"step {run.done} of {run.steps}",
                why=stop.signal or "another rank was",
                do="Run the same command again: it goes on from here",
            )
        last = run.step()
        progress.add(run.done, last.rows, last.loss, run.optimiser.learning_rate(run.done - 1))
        if run.done % every == 0 and run.done < run.steps:
            run.save()
    return last
