"""The fast dropout has torch's distribution; without dropout nothing differs from transformers."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModel

from crosslign.encoders.dropout import Dropout, attention, dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.003])
def test_share_scale_and_independence(p):
    torch.manual_seed(3)
    values = dropout(torch.ones(1000, 1001), p)
    kept = values != 0
    assert set(values.unique().tolist()) == {0.0, float(torch.tensor(1.0).mul(1 / (1 - p)))}
    assert float((~kept).double().mean()) == pytest.approx(p, abs=5 * (p * (1 - p) / kept.numel()) ** 0.5 + 1 / 65536)
    for shift in (1, 2, 4):  # neighbours share a 64-bit draw
        together = (~kept.flatten()[shift:] & ~kept.flatten()[:-shift]).double().mean()
        assert float(together) == pytest.approx(p * p, abs=6 * p / kept.numel() ** 0.5)


def test_gradient_goes_through_what_was_kept():
    torch.manual_seed(1)
    values = torch.randn(7, 5, requires_grad=True)
    out = dropout(values, 0.4)
    out.sum().backward()
    assert torch.equal(values.grad != 0, out.detach() != 0)
    assert float(values.grad.max()) == pytest.approx(1 / 0.6)


def test_draws_follow_the_global_seed():
    layer = Dropout(0.3).train()
    torch.manual_seed(5)
    first = layer(torch.ones(100))
    torch.manual_seed(5)
    assert torch.equal(first, layer(torch.ones(100)))
    assert not torch.equal(first, layer(torch.ones(100)))
    assert torch.equal(layer.eval()(torch.ones(100)), torch.ones(100))
    assert torch.equal(Dropout(1.0).train()(torch.ones(4)), torch.zeros(4))


def test_attention_without_dropout_is_that_of_torch():
    torch.manual_seed(2)
    query, key, value = torch.randn(3, 2, 4, 6, 8).unbind()
    mask = torch.ones(2, 1, 6, 6, dtype=torch.bool)
    mask[1, :, :, 4:] = False
    for allowed in (mask, None):
        ours = attention(query, key, value, allowed, 0.0, 8**-0.5)
        theirs = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed).transpose(1, 2)
        assert torch.allclose(ours, theirs, atol=1e-6)


def test_model_in_train_mode_averages_to_that_of_transformers(tiny_model, tiny_encoder):
    """With dropout in attention alone, and p small, many draws average to the states without dropout."""
    for module in tiny_model.modules():
        if isinstance(module, torch.nn.Dropout):
            assert isinstance(module, Dropout)
            module.p = 0.0
    member = tiny_model.member("main")
    features = dict(member.tokenizer(["The dog sleeps.", "Ja."], return_tensors="pt", padding=True))
    plain = AutoModel.from_pretrained(tiny_encoder / "main").train()
    for module in plain.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    with torch.no_grad():
        expected = plain(**features).last_hidden_state
        assert torch.allclose(member.train().backbone(**features).last_hidden_state, expected, atol=1e-6)
        for layer in member.backbone.encoder.layer:
            layer.attention.self.dropout.p = 0.1
        torch.manual_seed(0)
        draws = torch.stack([member.backbone(**features).last_hidden_state for _ in range(400)])
    real = features["attention_mask"].bool()
    spread = draws.std(0)[real]
    assert float(spread.mean()) > 1e-3
    assert float(((draws.mean(0) - expected)[real].abs() / (spread / 20 + 1e-4)).mean()) < 2
