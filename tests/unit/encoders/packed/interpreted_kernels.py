"""Run the fused kernels by Triton's interpreter, on a CPU, and print what they were found to compute; a process of its own.

Triton reads its variable when it is imported. The interpreter knows no bfloat16.
"""

from __future__ import annotations

import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
from transformers import BertConfig, BertModel

from crosslign.encoders.packed import fused, training
from crosslign.encoders.packed.training import PackedTraining

CPU, HALF = torch.device("cpu"), torch.float16
LENGTHS = [33, 20, 5, 1]


def _batch() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    return torch.randint(1, 90, (4, 33)), (torch.arange(33) < torch.tensor(LENGTHS)[:, None]).long()


def _backbone(share: float) -> BertModel:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 90}
    torch.manual_seed(3)
    return BertModel(BertConfig(**sizes, hidden_dropout_prob=share, attention_probs_dropout_prob=share)).train()


def whole_pass() -> dict[str, float]:
    """Return how far the states and gradients of a fused pass are from those of the plain one, as shares of their norms."""
    training.has_flash, fused.working = (lambda *_: True), (lambda *_: fused.CHECKS.keys())
    backbone, (ids, mask) = _backbone(0.0), _batch()
    found = []
    for plain in (True, False):
        packed = PackedTraining(backbone, "fp32", lengths=np.array(LENGTHS))
        if plain:
            training.has_flash = lambda *_: False
        else:
            training.has_flash, packed.dtype = (lambda *_: True), HALF
        backbone.zero_grad()
        output = packed(ids, mask, output_hidden_states=True)
        states = output.last_hidden_state
        (states.sin().sum() + output.hidden_states[1].cos().sum()).backward()
        slopes = {n: p.grad.to_dense() for n, p in backbone.named_parameters() if p.grad is not None and not n.endswith("key.bias")}
        found.append({"states": states.detach(), **slopes})
    expected, ours = found
    assert expected.keys() == ours.keys()
    return {name: float((ours[name] - value).norm() / value.norm()) for name, value in expected.items()}


def passes() -> dict[str, bool]:
    """Return whether a pass without gradient, as gradient caching begins with, draws what one with gradient draws of the same seed."""
    training.has_flash, fused.working = (lambda *_: True), (lambda *_: fused.CHECKS.keys())
    packed = PackedTraining(_backbone(0.1), "fp32", lengths=np.array(LENGTHS))
    packed.dtype = HALF
    found = []
    batch = _batch()
    for seed, gradient in ((1, False), (1, True), (2, True)):
        torch.manual_seed(seed)
        with torch.set_grad_enabled(gradient):
            found.append(packed(*batch).last_hidden_state.detach())
    return {"same": torch.equal(found[0], found[1]), "other": torch.equal(found[0], found[2])}


def dropout() -> dict[str, float]:
    """Return the share of weights that attention keeps, the mean of what is kept, and how two seeds agree."""
    heads, size, length = 2, 16, 64
    layout = fused.Layout.of(np.array([length]), CPU)
    qkv = torch.zeros(length, 3, heads, size, dtype=HALF)  # all weights are 1 / 64
    qkv[:, 2] = torch.eye(length, dtype=HALF)[:, :size].unsqueeze(1)  # so a state is the weights of the first 16 tokens
    states = [fused.attention(qkv.view(length, -1), layout, heads, 0.25).float() * length for _ in range(2)]
    kept = [state != 0 for state in states]
    of_heads = kept[0].view(length, heads, size)
    return {
        "kept": float(kept[0].float().mean()),
        "factor": float(states[0][kept[0]].mean()),
        "seeds": float((kept[0] == kept[1]).float().mean()),
        "heads": float((of_heads[:, 0] == of_heads[:, 1]).float().mean()),
        "tokens": float((kept[0][1:] == kept[0][:-1]).float().mean()),
    }


def gelu_error() -> float:
    """Return the largest error of GELU and its slope, as a share of their value or of 1e-4 where that is larger."""
    values = torch.linspace(-8, 8, 1601, dtype=HALF).view(1, -1).requires_grad_()
    exact = values.detach().double().requires_grad_()
    found, expected = fused.gelu(values, torch.zeros(1601)), torch.nn.functional.gelu(exact)
    slopes = [torch.autograd.grad(of, at, torch.ones_like(of))[0] for of, at in ((found, values), (expected, exact))]
    pairs = ((found, expected), slopes)
    return max(float(((a.double() - b).abs() / b.abs().clamp(min=1e-4)).max()) for a, b in pairs)


if __name__ == "__main__":
    fused.PROGRAMS = 5
    draw = torch.Generator().manual_seed(1)
    checked = {name: check(CPU, HALF, 3, 16, draw) for name, check in fused.CHECKS.items()}
    json.dump({"checked": checked, "dropout": dropout(), "gelu": gelu_error(), "passes": passes(), "pass": whole_pass()}, sys.stdout)
