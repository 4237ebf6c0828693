"""Which parameters weight decay applies to, and where the learning rate ends."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from crosslign.training.optimiser import Optimiser


@pytest.mark.parametrize(("choice", "bias"), [({}, 1.0), ({"decayed": "matrices"}, 1.0), ({"decayed": "all"}, 0.99)])
def test_biases_and_norms_decay_only_where_all_does(choice, bias):
    modules = {"model": nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)), "part": nn.Linear(2, 1)}
    for module in modules.values():
        for parameter in module.parameters():
            nn.init.ones_(parameter)
            parameter.grad = torch.zeros_like(parameter)
    train = {"learning_rate": 0.1, "schedule": "constant", "weight_decay": 0.1, **choice}
    Optimiser({"train": train, "parts": {}}, modules["model"], {"part": modules["part"]}, 4).step(0)
    for module in modules.values():
        for parameter in module.parameters():  # without a gradient AdamW does p (1 − rate · decay) alone
            assert parameter.detach().flatten().tolist() == pytest.approx([0.99 if parameter.ndim == 2 else bias] * parameter.numel())


def gradients_of(model, part):
    """Give every parameter of the model a gradient of 3, and every one of the part a gradient of 4."""
    for module, slope in ((model, 3.0), (part, 4.0)):
        for parameter in module.parameters():
            nn.init.zeros_(parameter)
            parameter.grad = torch.full_like(parameter, slope)


def one_row(slope):
    """Return a sparse gradient of 400 rows of four numbers, of which row 7 is not zero."""
    return torch.sparse_coo_tensor(torch.tensor([[7]]), torch.full((1, 4), slope), (400, 4), check_invariants=True)


@pytest.mark.parametrize("own", [None, 0.1])
def test_a_part_is_clipped_with_the_model_or_by_its_own_bound(own):
    """Four numbers each: norms of 6 and 8, 10 together. With a large epsilon AdamW's first step is rate · g / (|g| + epsilon)."""
    model, part = nn.Linear(4, 1, bias=False), nn.Linear(4, 1, bias=False)
    gradients_of(model, part)
    train = {"learning_rate": 1.0, "schedule": "constant", "clip": 1.0, "epsilon": 100.0}
    optimiser = Optimiser({"train": train, "parts": {"p": {} if own is None else {"clip": own}}}, model, {"p": part}, 4)
    assert float(optimiser.step(0)) == pytest.approx(10 if own is None else 6)
    expected = (0.3, 0.4) if own is None else (0.5, 0.05)
    for module, slope in zip((model, part), expected, strict=True):
        assert module.weight.detach().flatten().tolist() == pytest.approx([-slope / (slope + 100)] * 4, rel=1e-4)


def test_rows_are_clipped_with_the_table_that_they_belong_to():
    """One row of four threes has a norm of 6; the part's own bound is none of its business."""
    model, part = nn.Embedding(400, 4), nn.Linear(4, 1, bias=False)
    gradients_of(model, part)
    model.weight.grad = one_row(3.0)
    train = {"learning_rate": 1.0, "schedule": "constant", "clip": 1.0, "epsilon": 100.0}
    optimiser = Optimiser({"train": train, "parts": {"p": {"clip": 0.1}}}, model, {"p": part}, 4)
    assert float(optimiser.step(0)) == pytest.approx(6)
    assert model.weight[7].tolist() == pytest.approx([-0.5 / 100.5] * 4, rel=1e-4)
    assert part.weight.flatten().tolist() == pytest.approx([-0.05 / 100.05] * 4, rel=1e-4)


@pytest.mark.parametrize("sparse", [False, True])
def test_moments_are_those_of_the_betas_of_the_recipe(sparse):
    model = nn.Embedding(400, 4)
    model.weight.grad = one_row(2.0)
    if not sparse:
        model.weight.grad = model.weight.grad.to_dense()
    train = {"learning_rate": 1.0, "schedule": "constant", "betas": [0.5, 0.75]}
    optimiser = Optimiser({"train": train, "parts": {}}, model, {}, 4)
    optimiser.step(0)
    state = optimiser.state()
    assert (state["0.exp_avg"][7].tolist(), state["0.exp_avg_sq"][7].tolist()) == ([1.0] * 4, [1.0] * 4)


@pytest.mark.parametrize("spoilt", ["model", "part"])
def test_a_gradient_that_is_not_finite_anywhere_updates_nothing(spoilt):
    modules = {"model": nn.Linear(4, 1), "part": nn.Linear(4, 1)}
    gradients_of(*modules.values())
    modules[spoilt].bias.grad[0] = float("nan")
    train = {"learning_rate": 1.0, "schedule": "constant", "clip": 1.0}
    optimiser = Optimiser({"train": train, "parts": {"p": {"clip": 1.0}}}, modules["model"], {"p": modules["part"]}, 4)
    assert math.isnan(float(optimiser.step(0)))
    assert not any(parameter.any() for module in modules.values() for parameter in module.parameters())
    assert all(parameter.grad is None for module in modules.values() for parameter in module.parameters())


@pytest.mark.parametrize(("share", "last"), [({}, 0.0), ({"final_share": 0.1}, 0.01)])
def test_the_learning_rate_ends_at_its_final_share(share, last):
    train = {"learning_rate": 0.1, "schedule": "cosine", **share}
    assert Optimiser({"train": train, "parts": {}}, nn.Linear(2, 1), {}, 4).learning_rate(4) == pytest.approx(last)


def test_the_learning_rate_warms_up():
    train = {"learning_rate": 0.1, "schedule": "constant", "warmup_share": 0.5}
    rates = [Optimiser({"train": train, "parts": {}}, nn.Linear(2, 1), {}, 8).learning_rate(step) for step in range(6)]
    assert rates == pytest.approx([0.0, 0.025, 0.05, 0.075, 0.1, 0.1])
