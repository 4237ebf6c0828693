"""Which parameters weight decay applies to, and where the learning rate ends."""

from __future__ import annotations

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


@pytest.mark.parametrize(("share", "last"), [({}, 0.0), ({"final_share": 0.1}, 0.01)])
def test_the_learning_rate_ends_at_its_final_share(share, last):
    train = {"learning_rate": 0.1, "schedule": "cosine", **share}
    assert Optimiser({"train": train, "parts": {}}, nn.Linear(2, 1), {}, 4).learning_rate(4) == pytest.approx(last)
