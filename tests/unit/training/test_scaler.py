"""The gradient scaler of fp16, on a CPU: overflows are skipped, a gradient that is never finite is not, and both survive a kill."""

from __future__ import annotations

import json

import pytest
import torch
import trial

from crosslign.errors import CrosslignError
from crosslign.training import fit
from crosslign.training.encoding import Encoding
from crosslign.training.optimiser import Optimiser

WITHOUT = fit.start_accelerator


@pytest.fixture
def scalers(monkeypatch):
    """Give every run a scaler whose scale grows after three good steps; return those that were given."""
    given = []

    def start(precision):
        accelerator = WITHOUT(precision)
        accelerator.scaler = torch.amp.GradScaler("cpu", growth_interval=3)
        given.append(accelerator.scaler)
        return accelerator

    monkeypatch.setattr(fit, "start_accelerator", start)
    return given


@pytest.fixture
def spoil(monkeypatch):
    """Put a value into the gradients of chosen steps, numbered from 0."""

    def choose(steps, value):
        real = Encoding.backward

        def backward(self, *last):
            real(self, *last)
            if self._draw[1] in steps:
                next(p for p in self._model.parameters() if p.ndim < 2).grad[0] = value

        monkeypatch.setattr(Encoding, "backward", backward)

    return choose


def _curve(folder):
    return [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]


def test_a_scale_that_is_a_power_of_two_changes_no_byte(train, scalers, monkeypatch):
    recipe = trial.recipe(train={"weight_decay": 0.0})
    _, scaled = train(recipe, "scaled")
    assert scalers[0].state_dict()["scale"] == 2.0**18
    monkeypatch.setattr(fit, "start_accelerator", WITHOUT)
    _, plain = train(recipe, "plain")
    assert trial.weights(scaled) == trial.weights(plain)


def test_an_overflow_is_skipped_and_halves_the_scale(train, tiny_model, scalers, spoil, monkeypatch):
    spoil({2}, float("inf"))
    real, moved = Optimiser.step, []

    def step(self, *rest):
        before = [p.detach().clone() for p in tiny_model.parameters()]
        norm = real(self, *rest)
        moved.append(any(not torch.equal(a, b) for a, b in zip(before, tiny_model.parameters(), strict=True)))
        return norm

    monkeypatch.setattr(Optimiser, "step", step)
    summary, folder = train(trial.recipe(train={"steps": 7, "schedule": "constant"}), model=tiny_model)
    assert moved == [True, True, False, True, True, True, True]
    assert scalers[0].state_dict()["scale"] == 2.0**16  # halved at step 3, doubled after three good steps
    assert scalers[0].state_dict()["_growth_tracker"] == 1
    assert [line["step"] for line in _curve(folder) if line["grad_norm"] is None] == [3]
    assert summary["guards"] == []
    assert summary["collapsed"] == {}


@pytest.mark.parametrize(("bad", "step"), [(set(range(3, 99)), 23), (set(range(0, 99, 2)), 53)], ids=["for ever", "every other step"])
def test_a_gradient_that_is_never_finite_fails_and_says_so(train, scalers, spoil, bad, step):
    """Twenty in a row; or 2^16 halved 27 times, which every other step does at the 53rd where the scale grows after three."""
    spoil(bad, float("nan"))
    with pytest.raises(CrosslignError, match=rf"step {step}: .*fp16, "):
        train(trial.recipe(train={"steps": 99, "checkpoint_every": 50}))


def test_a_gradient_that_is_never_finite_marks_the_run_where_that_is_asked(train, scalers, spoil):
    spoil(set(range(99)), float("nan"))
    summary, _ = train(trial.recipe(train={"steps": 22, "guards": {"not_finite": "mark"}}))
    assert [(event["guard"], event["from"]) for event in summary["guards"]] == [("not_finite", 20)]
    assert "last" in summary["collapsed"]


def test_scale_and_growth_go_on_after_a_kill(train, scalers, spoil, stopped_before):
    spoil({3, 4}, float("inf"))
    recipe = trial.recipe(train={"steps": 12, "checkpoint_every": 5})
    _, whole = train(recipe, "whole")
    with stopped_before(6):
        train(recipe, "killed")
    _, again = train(recipe, "killed")
    assert scalers[0].state_dict() == scalers[2].state_dict()
    assert scalers[2].state_dict()["_growth_tracker"] == 1  # seven good steps after the overflows, counted over the kill
    assert trial.weights(whole) == trial.weights(again)


def test_the_count_of_skipped_updates_goes_on_after_a_kill(train, scalers, spoil, stopped_before):
    spoil(set(range(2, 99)), float("nan"))
    recipe = trial.recipe(train={"steps": 99, "checkpoint_every": 5})
    with stopped_before(12):
        train(recipe, "killed")
    with pytest.raises(CrosslignError, match=r"step 22: .*fp16, 20 .*0\.0625"):
        train(recipe, "killed")
