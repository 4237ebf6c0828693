"""Masked language modelling: which tokens are masked, and loss and gradients beside those of transformers' own model."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers import BertForMaskedLM

from crosslign.errors import InputError
from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import Batch, Input, ids_of
from crosslign.objectives.saved_parts import make_part
from crosslign.training.accelerator import start_accelerator
from crosslign.training.encoding import Encoding, Settings
from crosslign.training.masking import masked_tokens

SHARE = 0.4


@pytest.fixture
def member(tiny_model):
    return tiny_model.member("main")


@pytest.fixture
def batch(sentence_pairs):
    english, german = (list(side) for side in zip(*sentence_pairs, strict=True))
    columns = {"a_text": english, "a_lang": ["en"] * 20, "b_text": german, "b_lang": ["de"] * 20}
    return Batch([f"row:{i}" for i in range(20)], columns)


def test_a_share_of_the_tokens_is_masked_and_none_of_the_special_ones(member):
    ids = np.array([member.tokenizer.cls_token_id, *[7] * 100_000, member.tokenizer.sep_token_id], np.int32)
    changed, picked = masked_tokens(ids, member, 0.15, np.random.default_rng(1))
    assert 0.145 < len(picked.places) / 1e5 < 0.155
    assert (picked.ids == 7).all()
    untouched = np.ones(len(ids), bool)
    untouched[picked.places] = False
    assert untouched[[0, -1]].all()
    assert (changed[untouched] == ids[untouched]).all()
    shares = [(changed[picked.places] == token).mean() for token in (member.tokenizer.mask_token_id, 7)]
    assert shares == pytest.approx([0.8, 0.1 + 0.1 / len(member.tokenizer)], abs=0.01)
    assert changed.min() >= 0
    assert changed.max() < len(member.tokenizer)


def test_a_tokenizer_without_a_mask_token_is_refused(member):
    tokenizer = SimpleNamespace(mask_token_id=None)
    with pytest.raises(InputError, match=r"masked_language_model: .* mask "):
        masked_tokens(np.array([1], np.int32), SimpleNamespace(tokenizer=tokenizer), 0.5, np.random.default_rng(1))


def encoded(model, objective, batch, share=1.0, steps=(0,)):
    settings = Settings(start_accelerator("fp32"), 1, "mean", -1, 16, "")
    asked = objective.inputs(batch, torch.Generator())
    return Encoding(settings, asked, {}, model.member, model, share, ("x", *steps))


def ours(model, batch, translation, share=1.0):
    """Return the loss, the encoding, and the gradients of encoder and head."""
    torch.manual_seed(0)
    objective = OBJECTIVES.get("masked_language_model")(head="lm", share=SHARE, translation=translation)
    head = make_part("lm", {"kind": "language_model_head"}, model, 5, "here")
    encoding = encoded(model, objective, batch, share)
    vectors = encoding.vectors(gradient=True)
    loss = objective.loss(vectors, batch, {"lm": head})
    loss.total.backward()
    encoding.backward()
    assert loss.logged == {"masked_tokens": len(vectors[ids_of("masked_pair" if translation else "masked")])}
    return float(loss.total.detach()), encoding, head


def theirs(model, head, encoding):
    """Return the loss of transformers' own model of masked language modelling, which holds the same weights, on the same tokens."""
    (group,) = encoding._groups.values()
    judge = BertForMaskedLM(model.member("main").backbone.config).eval()
    judge.bert = copy.deepcopy(model.member("main").backbone)
    judge.bert.pooler = None
    judge.cls.predictions.transform.dense.load_state_dict(head.dense.state_dict())
    judge.cls.predictions.transform.LayerNorm.load_state_dict(head.norm.state_dict())
    judge.cls.predictions.decoder = torch.nn.Linear(*reversed(head._table().shape))
    judge.cls.predictions.decoder.weight = torch.nn.Parameter(head._table().clone())
    judge.cls.predictions.decoder.bias = torch.nn.Parameter(head.bias.detach().clone())
    total, count = 0.0, 0
    for i, (ids, picked) in enumerate(zip(group.ids, group.picked, strict=True)):
        kinds = {} if group.segments is None else {"token_type_ids": torch.tensor(group.segments[i][None].astype(np.int64))}
        logits = judge(input_ids=torch.tensor(ids[None].astype(np.int64)), **kinds).logits[0, picked.places]
        total = total + functional.cross_entropy(logits, torch.tensor(picked.ids.astype(np.int64)), reduction="sum")
        count += len(picked.places)
    (total / count).backward()
    return float(total.detach()) / count, judge


@pytest.mark.parametrize("translation", [False, True])
def test_loss_and_gradients_are_those_of_transformers(tiny_model, batch, translation):
    tiny_model.eval()
    loss, encoding, head = ours(tiny_model, batch, translation)
    expected, judge = theirs(tiny_model, head, encoding)
    assert loss == pytest.approx(expected, abs=1e-5)
    gradients = dict(judge.bert.named_parameters())
    checked = 0
    for name, parameter in tiny_model.member("main").backbone.named_parameters():
        if parameter.grad is not None:
            own = parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad
            assert torch.allclose(own, gradients[name].grad, atol=1e-6), name
            checked += 1
    assert checked > 10
    assert torch.allclose(head.bias.grad, judge.cls.predictions.decoder.bias.grad, atol=1e-6)
    assert torch.allclose(head.dense.weight.grad, judge.cls.predictions.transform.dense.weight.grad, atol=1e-6)


def test_micro_batches_mask_the_same_tokens_and_have_the_same_gradient(tiny_model, batch):
    tiny_model.eval()
    twin = copy.deepcopy(tiny_model)
    loss, _, head = ours(tiny_model, batch, False)
    again, _, other = ours(twin, batch, False, share=0.3)
    assert again == pytest.approx(loss, abs=1e-6)
    assert torch.allclose(head.bias.grad, other.bias.grad, atol=1e-6)
    for one, two in zip(tiny_model.parameters(), twin.parameters(), strict=True):
        if one.grad is not None:
            first, second = (grad.to_dense() if grad.is_sparse else grad for grad in (one.grad, two.grad))
            assert torch.allclose(first, second, atol=1e-6)


def test_steps_mask_other_tokens(tiny_model, batch):
    objective = OBJECTIVES.get("masked_language_model")(head="lm", share=SHARE)
    found = [encoded(tiny_model, objective, batch, steps=(step,)).vectors(gradient=False)[ids_of("masked")].tolist() for step in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


def test_a_batch_without_masked_tokens_has_no_loss(tiny_model):
    objective = OBJECTIVES.get("masked_language_model")(head="lm")
    states, ids = torch.zeros(0, 4, requires_grad=True), torch.zeros(0, dtype=torch.int64)
    assert objective.loss({"masked": states, ids_of("masked"): ids}, Batch([], {}), {}).total.item() == 0


def test_whole_inputs_stand_beside_masked_ones(tiny_model, batch):
    settings = Settings(start_accelerator("fp32"), 1, "mean", -1, 16, "")
    whole = Input(batch.columns["a_text"], batch.columns["a_lang"])
    masked = Input(batch.columns["a_text"], batch.columns["a_lang"], masked=SHARE)
    both = Encoding(settings, {"a": whole, "m": masked}, {}, tiny_model.member, tiny_model, 1.0, ("x", 0)).vectors(gradient=False)
    alone = Encoding(settings, {"a": whole}, {}, tiny_model.member, tiny_model, 1.0, ("x", 0)).vectors(gradient=False)
    assert torch.equal(both["a"], alone["a"])
    assert both["m"].shape == (len(both[ids_of("m")]), tiny_model.dimension)


def test_a_model_of_several_members_has_no_such_head(tiny_encoder):
    from crosslign.encoders.model import Model

    model = Model.load(dict.fromkeys(("de", "en"), tiny_encoder / "main"))
    with pytest.raises(InputError, match=r"language_model_head: .*\['de', 'en'\]"):
        make_part("lm", {"kind": "language_model_head"}, model, 5, "here")
