"""Checkpoints are written by the clock; how often changes no bytes, and no checkpoint is lost when it is changed."""

from types import SimpleNamespace

import pytest
import trial

from crosslign.training import checkpoint
from crosslign.training.step import Stepper


@pytest.fixture
def saves(monkeypatch):
    """A clock on which each step takes a minute, and the steps at which checkpoints were written by it."""
    now, steps = [1000.0], []
    real_run, real_save = Stepper.run, checkpoint.Checkpoints.save

    def run(self, step, *rest):
        now[0] += 60.0
        return real_run(self, step, *rest)

    def save(self, model, parts, optimiser, state):
        steps.append(state["step"])
        real_save(self, model, parts, optimiser, state)

    monkeypatch.setattr(checkpoint, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(Stepper, "run", run)
    monkeypatch.setattr(checkpoint.Checkpoints, "save", save)
    return steps


def paced(minutes, every):
    return trial.recipe(train={"steps": 13, "checkpoint_minutes": minutes, "checkpoint_every": every})


@pytest.mark.parametrize(
    ("minutes", "every", "at"),
    [(5, None, [5, 10]), (10, None, [10]), (20, 0, []), (20, 6, [6, 12]), (5, 3, [3, 6, 9, 12]), (3, 5, [3, 5, 8, 10])],
)
def test_the_first_of_minutes_and_steps_makes_a_checkpoint_due(train, saves, minutes, every, at):
    train(paced(minutes, every))
    assert saves == at


def test_killed_between_and_saved_at_other_times_a_run_ends_in_the_same_bytes(train, saves, stopped_before, caplog):
    _, whole = train(paced(100, None), "whole")
    with stopped_before(9):
        train(paced(4, None), "killed")
    assert saves == [4, 8]
    _, resumed = train(paced(7, 11), "killed")
    assert saves == [4, 8, 11]
    assert "starting from the beginning" not in caplog.text
    assert trial.weights(resumed) == trial.weights(whole)


def test_between_checkpoints_only_the_best_models_are_kept(train, tmp_path):
    scores = iter(range(100))
    kept = []

    def dev(model):
        kept.append(sorted(path.name for path in (tmp_path / "run-work" / "best").glob("*")))
        return {"best": float(next(scores))}

    select = {"best": {"task": "t", "subset": "s", "metric": "m", "every": 1}}
    train(trial.recipe(train={"steps": 6, "checkpoint_every": 3}, select=select), dev=dev)
    assert kept == [
        [],
        ["best-00000001"],
        ["best-00000002"],
        ["best-00000003"],
        ["best-00000003", "best-00000004"],
        ["best-00000003", "best-00000005"],
    ]
