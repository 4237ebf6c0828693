"""A training that sends itself a signal: what `test_kills` runs in processes of their own.

Its one argument is a JSON object: recipe, members (folders by name), examples, out, checkpoints, and `kill`: signal, step and moment.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import torch
from tokenise import tokenised

from crosslign.encoders.model import Model
from crosslign.errors import CrosslignError
from crosslign.training import checkpoint
from crosslign.training.encoding import Encoding
from crosslign.training.fit import fit
from crosslign.training.optimiser import Optimiser
from crosslign.training.step import Stepper
from crosslign.training.terms import build_parts

MOMENTS = {
    "before the step": (Stepper, "run"),
    "before the backward pass": (Encoding, "backward"),
    "before the update": (Optimiser, "step"),
    "while a checkpoint is written": (checkpoint, "write_sealed"),
    "before a checkpoint is named": (checkpoint, "write_text"),
}


def send_at(kill: dict) -> None:
    """Send this process a signal at a moment, once that many steps are done."""
    owner, name = MOMENTS[kill["moment"]]
    real, real_run, begun = getattr(owner, name), Stepper.run, []

    def run(self, step, *rest):
        begun.append(step)
        return real_run(self, step, *rest)

    def other(*given, **named):
        if begun and begun[-1] >= kill["step"]:
            os.kill(os.getpid(), getattr(signal, kill["signal"]))
        return real(*given, **named)

    def first(self, step, *rest):
        if step >= kill["step"]:
            os.kill(os.getpid(), getattr(signal, kill["signal"]))
        return real_run(self, step, *rest)

    if real is real_run:
        Stepper.run = first
    else:
        Stepper.run = run
        setattr(owner, name, other)


def train(settings: dict) -> int:
    """Train, and return the exit code."""
    torch.set_num_threads(1)
    if settings.get("kill"):
        send_at(settings["kill"])
    recipe = settings["recipe"]
    model = Model.load({name: Path(folder) for name, folder in settings["members"].items()})
    examples = tokenised(recipe, settings["examples"], model, Path(settings["out"]).with_name("sets"))
    try:
        fit(recipe, examples, model, build_parts(recipe, model), None, Path(settings["out"]), Path(settings["checkpoints"]))
    except CrosslignError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(train(json.loads(sys.argv[1])))
