"""A step of training waits for a GPU once, on one rank or several: for all of its numbers together, while the update is computed."""

from __future__ import annotations

from types import SimpleNamespace

import methods
import pytest
import torch
from accelerate import Accelerator
from test_training_on_cuda import OPTIONS
from waits import Waits

from crosslign import devices
from crosslign.training import fit as module
from crosslign.training import optimiser, reduction

SYSTEMS = {**{name: name for name in methods.SYSTEMS}, **{f"{name}, other options": terms for name, terms in OPTIONS.items()}}
WATCHED = {"guards": {"after": 1, "every": 1, "patience": 99}}


@pytest.fixture
def waits_of(cuda, fitted, monkeypatch):
    """Train, and return the waits of each step but the first, which compiles, and asks what was loaded."""
    waits, step, steps = Waits(monkeypatch), module._Run.step, []

    def counted(run):
        with waits.counted() as found:
            result = step(run)
        steps.append(found)
        return result

    monkeypatch.setattr(module._Run, "step", counted)

    def train(system, **changes):
        fitted(system, "run", dropout=True, checkpoint_every=0, **WATCHED, **changes)
        return steps[1:]

    return train


@pytest.mark.parametrize("kernels", ["off", "auto"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_step_waits_once(waits_of, system, kernels):
    found = waits_of(SYSTEMS[system], steps=3, precision="bf16", kernels=kernels)
    assert [len(step) for step in found] == [1, 1], found


@pytest.fixture
def two_ranks(monkeypatch):
    """Let trainings be the first of two ranks, of which the other has ones where this one has zeros; returns the calls of `Fetched`."""
    calls, begin, values = [], devices.Fetched.__init__, devices.Fetched.values

    def filled(_, tensor, how):
        return torch.where(tensor == 0, 1.0, tensor) if tensor.ndim == 2 else tensor.clone()

    monkeypatch.setattr(Accelerator, "num_processes", property(lambda _: 2))
    monkeypatch.setattr(Accelerator, "reduce", filled)
    monkeypatch.setattr(reduction.distributed, "all_reduce", lambda *_, **how: SimpleNamespace(wait=lambda: None))
    monkeypatch.setattr(devices.Fetched, "__init__", lambda self, tensors: calls.append("sent") or begin(self, tensors))
    monkeypatch.setattr(devices.Fetched, "values", lambda self: calls.append("read") or values(self))
    return calls


@pytest.mark.parametrize("kernels", ["off", "auto"])
@pytest.mark.parametrize("system", methods.SYSTEMS)
def test_a_step_of_several_ranks_waits_once(two_ranks, waits_of, system, kernels):
    found = waits_of(system, steps=3, precision="bf16", kernels=kernels)
    assert [len(step) for step in found] == [1, 1], found


def test_what_ranks_tell_each_other_between_steps_comes_with_the_numbers_of_the_next(two_ranks, waits_of, monkeypatch):
    """It was sent before these, and is read after them: the host waits for nothing more."""
    waits, asked, seen = Waits(monkeypatch), module._Run.asked, []

    def counted(run, flag):
        with waits.counted() as found:
            result = asked(run, flag)
        seen.append([one.split()[0] for one in found])
        return result

    monkeypatch.setattr(module._Run, "asked", counted)
    waits_of("mSimCSE", steps=3, precision="bf16", kernels="auto")
    assert seen == [[], *[["synchronize"]] * 3]
    assert two_ranks == ["sent", *["sent", "read", "read", "sent"] * 3]


def test_a_step_of_fp16_that_updates_the_rows_alone_waits_once(waits_of, monkeypatch):
    monkeypatch.setitem(optimiser.WORTH, "cuda", 1.0)
    updated, step = [], optimiser.RowUpdates.step
    monkeypatch.setattr(optimiser.RowUpdates, "step", lambda self, *given: updated.append(1) or step(self, *given))
    found = waits_of("mSimCSE", steps=4, precision="fp16", kernels="auto")
    assert [len(step) for step in found] == [1, 1, 1], found
    assert updated or torch.cuda.get_device_capability() < (8, 0)


def test_what_waits_is_counted(cuda, monkeypatch):
    """Without it the tests above could not fail."""
    waits = Waits(monkeypatch)
    values = torch.arange(4.0).to("cuda")
    asked = {
        "a number": lambda: float(values.sum()),
        "which are true": lambda: values[values > 1],
        "a list": values.tolist,
        "a copy to the device": lambda: torch.ones(2).to("cuda"),
        "a list sent": lambda: torch.tensor([1, 2], device="cuda"),
        "a row of a list of the host": lambda: values[[1, 2]],
    }
    for what, ask in asked.items():
        with waits.counted() as found:
            ask()
        assert found, what
    with waits.counted() as found:
        values.add(1).to("cpu", non_blocking=True)
        torch.ones(2).pin_memory().to("cuda", non_blocking=True)
    assert not found
