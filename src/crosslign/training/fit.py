"""The training loop: one for every objective."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from crosslign.config.entry_keys import KERNELS
from crosslign.devices import Fetched, numbers_on
from crosslign.encoders.model import Model
from crosslign.entries.papers import Train
from crosslign.entries.resolved import RunRecipe
from crosslign.errors import InputError, ResourceError, StoppedError
from crosslign.files import atomic_folder
from crosslign.memory import free_memory, is_out_of_memory
from crosslign.objectives.contract import Part
from crosslign.training.accelerator import own_device, start_accelerator
from crosslign.training.checkpoint import Checkpoints, Pace, checkpoint_key, remove_leftovers, write_system
from crosslign.training.curve import Curve, Spikes, StepProgress, holds
from crosslign.training.encoding import Cost, Settings
from crosslign.training.guards import Guards
from crosslign.training.memory import HalvedError, TooLargeError, bounded_memory, does_not_fit, halved, largest_that_fits
from crosslign.training.optimiser import Optimiser, steps_within, total_steps
from crosslign.training.selection import Dev, Selection
from crosslign.training.signals import GivenUpError, StopFlag, stop_requests
from crosslign.training.step import Launched, NotFiniteError, StepLoss, Stepper, not_finite
from crosslign.training.terms import Stream, open_streams

OVERFLOWS = 20
"""Gradients in a row that are not finite before fp16 gives up: the scaler starts at 2^16 and halves its scale each time."""
LEAST_SCALE = 2.0**-10
"""Scale of the loss below which no overflow can be to blame."""

CURVE = "curve.jsonl"
"""File of the learning curve, below the working folder."""

log = logging.getLogger(__name__)


class _Run:
    """Everything that one training holds, and its state."""

    def __init__(
        self,
        recipe: RunRecipe,
        examples: Mapping[str, Path],
        model: Model,
        parts: Mapping[str, Part],
        dev: Dev | None,
        checkpoints: Path,
        version: str,
    ) -> None:
        train, readout = recipe["train"], recipe["readout"]
        self.recipe, self.model, self.parts = recipe, model, parts
        self.accelerator = start_accelerator(train["precision"])
        if self.writes:
            remove_leftovers(checkpoints)
        self.streams: list[Stream] = open_streams(recipe, examples, model)
        read = {stream.name: stream.store.examples for stream in self.streams}
        key = checkpoint_key(recipe, read, model, parts, self.accelerator, version)
        for module in (model, *parts.values()):
            module.to(self.accelerator.device).train()
        order = self.streams[0].order
        pooling, layer, prefix = readout["pooling"], readout.get("layer", -1), readout.get("prefix", "")
        kernels = str(train.get(KERNELS, "off"))
        settings = Settings(self.accelerator, recipe["seed"], pooling, layer, train["max_length"], prefix, self.precision, kernels)
        self.stepper = Stepper(model, parts, self.streams, settings)
        self.steps = self._length(train)
        self.cost = Cost()
        self.optimiser = Optimiser(recipe, model, parts, self.steps)
        self.scaler = self.accelerator.scaler
        self.pace = Pace(train)
        self.selection = Selection(recipe["select"], dev, checkpoints / "best", readout, order.steps_per_epoch, self.accelerator)
        self.guards = Guards(train.get("guards", {}))
        self.checkpoints = Checkpoints(checkpoints, key)
        name = CURVE if self.writes else f".curve-{self.accelerator.process_index}.jsonl"
        self.curve = Curve(checkpoints / name)
        self.done, self.started = 0, time.monotonic()
        self.skipped = 0  # updates in a row that the scaler left out
        self.last_loss: float | None = None
        self._told: Fetched | None = None  # of several ranks, what `asked` is to tell next
        self.earlier = self._load()
        self.board = None
        if self.writes and train.get("tensorboard", False):
            from crosslign.training.board import Board  # with it comes a package that few runs need

            self.board = Board(checkpoints.with_name(f"{checkpoints.name}-tensorboard"), self.done)
        if self.done == 0 and train.get("auto_micro_batch"):
            self.save()  # what a batch that does not fit goes back to

    def _length(self, train: Train) -> int:
        """Return the steps of the run: those that come nearest to its budget, where it has one."""
        if "budget" in train:
            return steps_within(train["budget"], lambda step: self.stepper.cost(step).flops, self.recipe["system"])
        return total_steps(self.streams[0].order.steps_per_epoch, train.get("epochs"), train.get("steps"))

    @property
    def precision(self) -> str:
        """Precision of the matrix products: fp32, bf16 or fp16."""
        mixed = str(self.accelerator.mixed_precision)
        return "fp32" if mixed == "no" else mixed

    @property
    def writes(self) -> bool:
        """Whether this process is the one that writes."""
        return bool(self.accelerator.is_main_process)

    def _load(self) -> float:
        """Take over the last checkpoint, where there is one; return the seconds that the run had taken until then."""
        self._saved = -1
        state = self.checkpoints.load(self.model, self.parts, self.optimiser, self._check)
        self.curve.cut(state["curve_bytes"] if state else 0)
        self.stepper.micro_batches = {**(state["micro_batches"] if state else {}), **self.checkpoints.halves()}
        if state is None:
            return 0.0
        self.selection.restore(state["selection"])
        self.guards.restore(state["guards"])
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])
            self.skipped = int(state["skipped"])
        self.last_loss = state["last_loss"]
        self.done = self._saved = int(state["step"])
        known = state.get("cost")  # an earlier version saved none
        self.cost = Cost(**known) if known else sum(map(self.stepper.cost, range(self.done)), Cost())
        return float(state.get("seconds", 0.0))

    def _check(self, state: Mapping[str, Any]) -> None:
        """Refuse a checkpoint whose best models, or whose lines of the curve, are not those that were written."""
        self.selection.check(state["selection"])
        curve = self.checkpoints.folder / CURVE
        if not holds(curve, state):
            raise InputError("lines of the curve are missing or changed", where=str(curve))

    def save(self) -> None:
        """Save this very state, unless that was done."""
        if self._saved == self.done:
            return
        self.accelerator.wait_for_everyone()
        state = {
            "step": self.done,
            "seconds": self.earlier + time.monotonic() - self.started,
            **self.curve.flush(),
            "selection": self.selection.state(),
            "guards": self.guards.state(),
            "micro_batches": self.stepper.micro_batches,
            "scaler": self.scaler.state_dict() if self.scaler is not None else None,
            "skipped": self.skipped,
            "last_loss": self.last_loss,
            "cost": asdict(self.cost),
        }
        if self.writes:
            self.checkpoints.save(self.model, self.parts, self.optimiser, state)
            self._prune()
        self.accelerator.wait_for_everyone()
        self._saved = self.done
        self.pace.saved()

    def _prune(self) -> None:
        """Remove the models that neither this state nor one that may be gone back to calls its best."""
        self.selection.prune([state.get("selection", {}) for state in self.checkpoints.states()])

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to train: all steps are done, or a guard ended it."""
        return self.done >= self.steps or bool(self.guards.stopped)

    def step(self) -> StepLoss | None:
        """Do one optimiser step, and write its line of the curve.

        Returns:
            What the loss was made of; None where it, or the gradient, was not finite and the guard let that pass.

        Raises:
            TooLargeError: memory does not suffice for the micro-batches.
        """
        learning_rate, launched = self.optimiser.learning_rate(self.done), self.stepper.run(self.done, self.scaler)
        fetched = self._update(launched)
        if self.accelerator.device.type == "cuda" and self.done + 1 < self.steps:
            self.stepper.prepare(self.done + 1)
        first, *values = fetched.values()  # the only wait of a step for a GPU, which is still at the update
        count, norm = len(launched.tensors), float(first)
        told = launched.told(values[:count])
        result = told if isfinite(told.loss) else None
        if result is not None:
            for part in self.parts.values():
                part.commit(launched.vectors)
        what = "the loss" if result is None else self._lost(norm)
        lost = not_finite(what, self.done, told.ids, learning_rate, told.terms) if what else None
        self.cost += launched.cost
        self.done += 1
        self.last_loss = result.loss if result else None
        self._note(result, learning_rate, norm, lost, values[count:])
        self.guards.not_finite(self.done, lost)
        return result

    def evaluate(self, stop: StopFlag) -> bool:
        """Do the dev evaluation when it is due; return whether a signal had it given up, to be done when the run goes on."""
        try:
            if self.selection.evaluate(self.done, self.ended, self.model, self.parts, stop):
                self._prune()
        except GivenUpError:
            return True
        return False

    def _update(self, launched: Launched) -> Fetched:
        """Launch the update; return the step's numbers, on their way: the gradient's norm, the loss and what is logged, the guards'."""
        fetched: list[Fetched] = []
        wanted = [*launched.tensors, *self.guards.wanted(self.done + 1, launched.sentences)]
        try:
            self.optimiser.step(
                self.done, self.scaler, launched.loss, launched.read or None, lambda norm: fetched.append(Fetched([norm, *wanted]))
            )
            return fetched[0]
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            what, do = "weights, gradients and AdamW's state do not fit into memory", "Use a smaller encoder, or ask for more memory"
            raise ResourceError(what, where=f"step {self.done + 1}", why=str(error).splitlines()[0][:200], do=do) from error

    def _lost(self, norm: float) -> str:
        """Return which gradient is not finite, or nothing; fp16 may overflow now and then, which a smaller scale answers."""
        self.skipped = 0 if isfinite(norm) else self.skipped + 1
        if not self.skipped or self.scaler is None:
            return "the gradient" if self.skipped else ""
        scale = float(self.scaler.get_scale())
        gone = self.skipped >= OVERFLOWS or scale < LEAST_SCALE
        return f"the gradient of fp16, {self.skipped} in a row and at a scale of {scale:.3g}," if gone else ""

    def _note(self, result: StepLoss | None, learning_rate: float, norm: float, lost: NotFiniteError | None, told: list[Tensor]) -> None:
        """Write a step's line of the curve, with what the guards found."""
        line: dict[str, Any] = {
            "step": self.done,
            "epoch": round(self.done / self.streams[0].order.steps_per_epoch, 6),
            "loss": result.loss if result else None,
            "learning_rate": learning_rate,
            "grad_norm": norm,
            "terms": result.terms if result else {},
        }
        if result is not None and (seen := self.guards.check(self.done, told, result.terms)):
            line["guards"] = seen
        if lost is not None:
            line["examples"] = lost.ids
        self.curve.write(line)
        if lost is not None:
            self.curve.flush()
        if self.board is not None:
            self.board.write(line)

    def shrink(self, error: TooLargeError) -> None:
        """Go back to the last checkpoint with micro-batches of half the size.

        Raises:
            HalvedError: there are several ranks, which are to start again.
            ResourceError: the recipe does not allow it, not even single examples fit, or the loss does not.
        """
        self.optimiser.clear()
        free_memory()
        if error.loss_of:
            raise does_not_fit(error, None)
        smaller = halved(error.sizes)
        several = self.accelerator.num_processes > 1
        if smaller is None or not self.recipe["train"].get("auto_micro_batch"):
            if several:
                raise does_not_fit(error, smaller, tried=False)
            raise does_not_fit(error, largest_that_fits(error.sizes, lambda sizes: self.stepper.fits(error.step - 1, sizes)))
        if several:  # the other ranks wait in a sum: only a new start brings all together
            self.checkpoints.note_halves(smaller)
            raise HalvedError(error)
        self._load()
        self.stepper.micro_batches = smaller
        log.warning("%s (%s): continuing after step %d with %s", error, error.cause, self.done, smaller)

    def asked(self, flag: StopFlag) -> tuple[bool, bool]:
        """Tell whether any rank was asked to stop, and whether its clock says to save; several ranks, as it was a step ago: none waits."""
        known = [int(bool(flag)), int(self.writes and self.pace.by_time())]
        if self.accelerator.num_processes > 1:
            told = self._told.values()[0].tolist() if self._told else [0, 0]
            own = numbers_on(self.accelerator.device, [known[0], 0 if told[1] else known[1]])
            known, self._told = told, Fetched([self.accelerator.reduce(own, "sum")])
        return bool(known[0]), bool(known[1]) or (self.done > 0 and self.pace.by_steps(self.done))

    def write(self, out: Path) -> None:
        """Write the run's folder, and remove the working folder."""
        self.curve.flush()
        self.curve.close()
        if self.board is not None:
            self.board.close()
        if self.writes:
            with atomic_folder(out) as temporary:
                write_system(temporary / "last", self.model, self.parts, self.recipe["readout"])
                self.selection.write(temporary, temporary / "last", self.done)
                shutil.copyfile(self.curve.path, temporary / CURVE)
            self.checkpoints.clear()
        self.accelerator.wait_for_everyone()

    def summary(self) -> dict[str, Any]:
        """Return the counts of the run."""
        marks = {"last": self.guards.mark(), **{name: self.guards.mark(entry["step"]) for name, entry in self.selection.best.items()}}
        return {
            "steps": self.done,
            "epochs": round(self.done / self.streams[0].order.steps_per_epoch, 6),
            "examples": {stream.name: stream.store.facts for stream in self.streams},
            "encoded": asdict(self.cost),
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "precision": self.precision,
            "ranks": self.accelerator.num_processes,
            "last_loss": self.last_loss,
            "best": self.selection.best,
            "micro_batches": self.stepper.micro_batches,
            "guards": self.guards.events,
            "collapsed": {name: mark for name, mark in marks.items() if mark},
            "device": self.accelerator.device.type,
            "earlier_s": round(self.earlier, 3),
            "working_bytes": self.checkpoints.most_bytes,
        }


def fit(
    recipe: RunRecipe,
    examples: Mapping[str, Path],
    model: Model,
    parts: Mapping[str, Part],
    dev: Dev | None,
    out: Path,
    checkpoints: Path,
    version: str = "",
) -> dict[str, Any]:
    """Train a model by a recipe, from the start or from where a killed run left off, and write the run's folder.

    On a CPU the weights of a run that was killed at any moment and started again are, bit for bit, those of one that
    was never killed: all draws are functions of seed and step, and a checkpoint holds the rest.

    Args:
        recipe: a resolved recipe: system, seed, parts, terms, train, select, readout.
        examples: folders of tokenised training sets by the names that the terms use.
        model: the encoder; trained in place.
        parts: the recipe's parts, attached to the model.
        dev: scores the model for `select`, or None.
        out: folder of the run, written whole at the end: a folder per checkpoint, curve.jsonl, selection.json.
        checkpoints: working folder, removed after success.
        version: versions of what trains, in words; a checkpoint of another version is not gone on from.

    Returns:
        steps, epochs, examples (rows, texts, tokens, truncated), parameters, precision, ranks, last_loss, best, micro_batches
        (where memory asked for smaller ones), guards (what they saw), collapsed (by checkpoint, why), device, earlier_s (what the parts
        of a run that was stopped and went on took before this one, as far as they were saved).

    Raises:
        StoppedError: SIGTERM or SIGUSR1 came; the state is saved.
        CrosslignError: the loss or the gradient is not finite, or a guard saw a collapse, and the recipe lets such a run fail.
        InputError: terms or examples that cannot be used.
        ResourceError: memory does not suffice.
    """
    train = recipe["train"]
    with torch.random.fork_rng(devices=own_device()), stop_requests() as stop, bounded_memory(train.get("memory_mb")):
        run = _Run(recipe, examples, model, parts, dev, Path(checkpoints), version)
        log.info("%s: %d steps on %s", recipe.get("run_id", recipe["system"]), run.steps, run.accelerator.device)
        _loop(run, stop)
        run.write(Path(out))
    return run.summary()


def _loop(run: _Run, stop: StopFlag) -> None:
    progress, spikes = StepProgress(run.done, run.steps), Spikes()
    while True:
        given_up = run.evaluate(stop)
        asked_to_stop, save = run.asked(stop)
        if run.ended and not given_up:
            return
        if asked_to_stop or given_up or save:
            run.save()
        if asked_to_stop or given_up:
            raise StoppedError(
                "training was asked to stop",
                where=f"step {run.done} of {run.steps}",
                why=stop.signal or "another rank was asked to stop",
                do="Run the same command again to continue from here",
            )
        result, too_large = None, None
        try:
            result = run.step()
        except TooLargeError as error:
            too_large = TooLargeError(error.step, error.sizes, error.cause, error.loss_of)  # without the frames that hold the batch
        if too_large is not None:
            run.shrink(too_large)
            progress = StepProgress(run.done, run.steps)
            continue
        if result is not None:
            spikes.add(run.done, result.loss, result.ids)
            progress.add(run.done, result.rows, result.cost.sentences, result.loss, run.optimiser.learning_rate(run.done - 1))
