"""The pass without padding in training: transformers' own states and gradients, and dropout where the model has it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel, XLMRobertaConfig, XLMRobertaModel

from crosslign.encoders.packed.training import PackedTraining, group_by_length, trains_packed

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 90}


def _backbone(kind, dropout=0.0):
    torch.manual_seed(3)
    options = {**SIZES, "hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    built = BertModel(BertConfig(**options)) if kind == "bert" else XLMRobertaModel(XLMRobertaConfig(**options), add_pooling_layer=False)
    with torch.no_grad():  # the usual start, 0.02, leaves attention almost flat
        for weight in built.parameters():
            weight.add_(torch.randn_like(weight) * 0.15)
    return built.train()


def _batch(lengths, pad):
    width = max(lengths)
    mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    ids = torch.randint(5, 90, mask.shape).masked_fill(~mask, pad)
    return {"input_ids": ids} | ({"attention_mask": mask.long()} if len(set(lengths)) > 1 else {}), mask


@pytest.mark.parametrize("kind", ["bert", "xlm-r"])
@pytest.mark.parametrize("lengths", [[7], [5, 5, 5], [3, 19, 17, 9, 16, 1, 3, 20], [2, 40, 2]])
def test_states_and_gradients_are_those_of_transformers(kind, lengths):
    backbone = _backbone(kind)
    features, mask = _batch(lengths, backbone.config.pad_token_id)
    assert trains_packed(backbone, "fp32")
    found = []
    for function in (backbone, PackedTraining(backbone, "fp32")):
        backbone.zero_grad()
        output = function(**features, output_hidden_states=True)
        states = [*output.hidden_states, output.last_hidden_state]
        sum((state[mask] * (i + 1)).sin().sum() for i, state in enumerate(states)).backward()
        found.append((states, {name: p.grad for name, p in backbone.named_parameters() if p.grad is not None}))
        for name, slope in found[-1][1].items():
            found[-1][1][name] = slope.to_dense()
    (theirs, slopes), (ours, own) = found
    assert len(ours) == len(theirs) == 4
    assert all(torch.allclose(a[mask], b[mask], atol=2e-5) for a, b in zip(ours, theirs, strict=True))
    assert own.keys() == slopes.keys()
    largest = max(float(slope.abs().max()) for slope in slopes.values())  # that of the keys' bias is zero but for rounding
    for name, slope in slopes.items():
        assert torch.allclose(own[name], slope, rtol=1e-3, atol=1e-5 * largest), name


def test_second_segments_and_the_pooler():
    backbone = _backbone("bert")
    features, mask = _batch([6, 9, 2], 0)
    features["token_type_ids"] = mask.long() * (torch.arange(9) > 3)
    ours, theirs = PackedTraining(backbone, "fp32")(**features), backbone(**features)
    assert torch.allclose(ours.last_hidden_state[mask], theirs.last_hidden_state[mask], atol=2e-5)
    assert torch.allclose(ours.pooler_output, theirs.pooler_output, atol=2e-5)


def test_bf16_is_near_and_keeps_float32_gradients():
    backbone = _backbone("xlm-r")
    features, mask = _batch([12, 30, 11, 8], 1)
    ours, theirs = (PackedTraining(backbone, p)(**features).last_hidden_state[mask] for p in ("bf16", "fp32"))
    assert ours.dtype == torch.float32
    cosines = torch.cosine_similarity(ours.detach(), theirs.detach(), dim=1)
    assert 0.999 < float(cosines.min()) < 1.0
    ours.sum().backward()
    assert {p.grad.dtype for p in backbone.parameters()} == {torch.float32}


def test_dropout_follows_the_model_and_its_mode():
    backbone = _backbone("bert", dropout=0.3)
    features, mask = _batch([12, 30, 11, 8], 0)
    packed = PackedTraining(backbone, "fp32")

    def states(seed):
        torch.manual_seed(seed)
        return packed(**features).last_hidden_state[mask]

    assert torch.equal(states(1), states(1))
    assert not torch.allclose(states(1), states(2), atol=0.1)
    backbone.eval()
    assert torch.allclose(states(1), backbone(**features).last_hidden_state[mask], atol=2e-5)
    backbone.train()
    of_layers = ("1.attention.self.dropout", "0.attention.output.dropout", "1.output.dropout")
    for part in ("embeddings.dropout", *(f"encoder.layer.{name}" for name in of_layers)):
        backbone.eval()
        backbone.get_submodule(part).train()
        assert not torch.allclose(states(1), states(2), atol=1e-3), part
    backbone.eval()
    assert torch.equal(states(1), states(2))


@pytest.mark.parametrize("more", [1, 40])
def test_a_batch_that_is_filled_up_has_the_same_states_and_gradients(monkeypatch, more):
    backbone = _backbone("xlm-r")
    features, mask = _batch([12, 30, 11, 8], 1)
    found = []
    for filled in (lambda _, tokens: tokens, lambda _, tokens: tokens + more):
        monkeypatch.setattr(PackedTraining, "filled", filled)
        backbone.zero_grad()
        states = PackedTraining(backbone, "fp32")(**features).last_hidden_state[mask]
        states.sin().sum().backward()
        found.append([states.detach(), *(p.grad.to_dense() for p in backbone.parameters() if p.grad is not None)])
    assert all(torch.allclose(a, b, atol=2e-5) for a, b in zip(*found, strict=True))


def test_a_gpu_sees_few_numbers_of_tokens():
    packed = PackedTraining(_backbone("bert"), "fp32")
    assert {packed.filled(tokens) for tokens in (1, 777)} == {1, 777}, "a CPU computes what there is"
    packed.device = torch.device("cuda")
    sizes = {tokens: packed.filled(tokens) for tokens in range(1, 40_000)}
    assert all(tokens <= size < max(tokens + 64, tokens * 33 / 32 + 1) for tokens, size in sizes.items())
    assert len({sizes[tokens] for tokens in range(9_000, 9_500)}) <= 3
    assert len(set(sizes.values())) < 400


def test_groups_hold_sentences_of_like_length():
    groups = group_by_length([20, 17, 16, 9, 9, 3])
    assert [group.shape for group in groups] == [(3, 20), (2, 9), (1, 3)]
    assert [group.tokens for group in groups] == [53, 18, 3]
    assert (groups[0].bias == 0).sum((1, 2)).tolist() == [20, 17, 16]
    assert groups[0].bias.unique().tolist() == [float("-inf"), 0.0]
    taken = [group.places if group.taken is None else group.places[group.taken] for group in groups]
    assert [places.tolist() for places in taken] == [list(range(53)), list(range(18)), list(range(3))]


@pytest.mark.parametrize(("change", "precision"), [("adapter", "fp32"), ("act", "fp32"), ("half", "fp32"), ("none", "fp16")])
def test_other_models_and_precisions_stay_with_transformers(change, precision):
    backbone = _backbone("bert")
    if change == "adapter":
        backbone.encoder.layer[0].output.dense = nn.Sequential(backbone.encoder.layer[0].output.dense)
    elif change == "act":
        backbone.config.hidden_act = "relu"
    elif change == "half":
        backbone.half()
    assert not trains_packed(backbone, precision)
