"""Gradient caching: micro-batches give the loss and the gradient of the whole batch, dropout included; costs are as torch counts them."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import trial
from torch.utils.flop_counter import FlopCounterMode

from crosslign.encoders.model import Model
from crosslign.objectives.contract import Input
from crosslign.training import encoding
from crosslign.training.accelerator import start_accelerator
from crosslign.training.encoding import Encoding, Settings, cost_of

KEYED = [
    {"objective": "trial_paired", "examples": "pairs", "batch": 8, "micro_batch": 3},
    {"objective": "trial_keyed", "examples": "pairs", "batch": 8},
]
MOMENTUM = {"momentum": {"kind": "trial_momentum"}}


@pytest.fixture
def batch(sentence_pairs):
    en, de = zip(*sentence_pairs, strict=True)
    return {"a": Input(en, ["en"] * 20), "b": Input(de, ["de"] * 20, pooling="cls")}


def _settings():
    return Settings(start_accelerator("fp32"), 1, "mean", -1, 16, "")


def _set_dropout(model, p):
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = p
    return model.train()


def dense(gradient):
    """The embedding table's gradient is sparse: few of its rows have one."""
    return gradient.to_dense() if gradient.is_sparse else gradient


def _loss(vectors):
    a, b = (torch.nn.functional.normalize(vectors[name], dim=1) for name in ("a", "b"))
    return torch.nn.functional.cross_entropy(a @ b.T / 0.05, torch.arange(len(a)))


def _cached(model, inputs, share):
    own = Encoding(_settings(), inputs, {}, model.member, model, share, ("x", 0))
    vectors = own.vectors(gradient=True)
    loss = _loss(vectors)
    loss.backward()
    own.backward()
    return float(loss.detach()), {name: dense(p.grad) for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("share", [0.5, 0.15, 0.01])
def test_micro_batches_equal_the_plain_loss(tiny_model, batch, share):
    _set_dropout(tiny_model, 0.0)
    plain_loss, plain = _cached(copy.deepcopy(tiny_model), batch, 1.0)
    loss, gradients = _cached(tiny_model, batch, share)
    assert loss == pytest.approx(plain_loss, abs=1e-6)
    assert gradients.keys() == plain.keys()
    for name, gradient in gradients.items():
        assert (gradient - plain[name]).abs().max() <= 1e-6 * max(1.0, float(plain[name].abs().max())), name


def test_blocks_are_looked_at_once_a_run_and_module(tiny_model, batch, monkeypatch):
    seen = []
    monkeypatch.setattr(encoding, "trains_packed", lambda backbone, *_: seen.append(id(backbone)) or False)
    settings, twin = _settings(), copy.deepcopy(tiny_model)
    for model in (tiny_model, twin):
        for step in range(2):
            Encoding(settings, batch, {}, model.member, model, 0.25, ("x", step)).vectors(gradient=False)
    assert seen == [id(model.member("main").backbone) for model in (tiny_model, twin)]


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_second_pass_draws_the_same_dropout(tiny_model, batch, share):
    """The plain loss over the same micro-batches with one graph, drawn from the same seeds, has the same gradient."""
    _set_dropout(tiny_model, 0.3)
    twin = copy.deepcopy(tiny_model)
    loss, gradients = _cached(tiny_model, batch, share)
    encoding = Encoding(_settings(), batch, {}, twin.member, twin, share, ("x", 0))
    for group in encoding._groups.values():
        chunks = encoding._chunks(group)
        pieces = [encoding._forward(group, rows, number) for number, rows in enumerate(chunks)]
        places = torch.cat([torch.from_numpy(rows) for rows in chunks])
        group.leaf = torch.cat(pieces)[places.argsort()]
    plain = _loss(encoding._by_input())
    plain.backward()
    assert loss == pytest.approx(float(plain.detach()), abs=1e-6)
    for name, p in twin.named_parameters():
        if p.grad is not None:
            plain = dense(p.grad)
            assert (gradients[name] - plain).abs().max() <= 1e-6 * max(1.0, float(plain.abs().max())), name


def test_dropout_differs_between_steps_and_inputs_but_not_between_calls(tiny_model, batch):
    _set_dropout(tiny_model, 0.3)

    def encode(step):
        return Encoding(_settings(), batch, {}, tiny_model.member, tiny_model, 1.0, ("x", step)).vectors(gradient=False)["a"]

    assert torch.equal(encode(0), encode(0))
    assert not torch.equal(encode(0), encode(1))


@pytest.mark.parametrize("share", [1.0, 0.25, 0.01])
def test_same_sentence_twice_gets_two_dropout_masks(tiny_model, sentence_pairs, share):
    """In one micro-batch and in several: unsupervised contrast has nothing else to tell the two by."""
    _set_dropout(tiny_model, 0.3)
    item = Input([sentence_pairs[0][0]] * 4, ["en"] * 4)
    vectors = Encoding(_settings(), {"a": item, "b": item}, {}, tiny_model.member, tiny_model, share, ("x", 0)).vectors(gradient=False)
    assert len(torch.cat(list(vectors.values())).unique(dim=0)) == 8


def test_members_and_processes_draw_dropout_of_their_own(tiny_model, sentence_pairs):
    _set_dropout(tiny_model, 0.3)
    member = tiny_model.member("main")
    model = type(tiny_model)({"en": member, "de": copy.deepcopy(member)})
    item, drawn = Input([sentence_pairs[0][0]] * 4, ["en", "en", "de", "de"]), []
    for rank in (0, 1):  # each encodes one sentence of each member, and leaves zeros for the other
        one = SimpleNamespace(process_index=rank, num_processes=2, device=torch.device("cpu"), reduce=lambda joint, kind: joint)
        encoding = Encoding(replace(_settings(), accelerator=one), {"x": item}, {}, model.member, model, 1.0, ("x", 0))
        drawn.append(encoding.vectors(gradient=False)["x"])
    assert len((drawn[0] + drawn[1]).unique(dim=0)) == 4


def test_rows_come_back_in_their_order_from_several_members(tiny_model, sentence_pairs):
    tiny_model.eval()
    other = copy.deepcopy(tiny_model.member("main"))
    with torch.no_grad():
        for p in other.parameters():
            p.add_(0.05)
    model = type(tiny_model)({"en": tiny_model.member("main"), "de": other}).eval()
    langs = ["de", "en", "en", "de", "en"]
    texts = [sentence_pairs[i][lang == "de"] for i, lang in enumerate(langs)]
    item = Input(texts, langs)
    vectors = Encoding(_settings(), {"x": item}, {}, model.member, model, 0.4, ("x", 0)).vectors(gradient=False)["x"]
    for text, lang, vector in zip(texts, langs, vectors, strict=True):
        member = model.member(lang)
        features = {"input_ids": torch.tensor([member.tokenizer(text, truncation=True, max_length=16).input_ids])}
        assert torch.allclose(member(features, "mean"), vector, atol=1e-6)


def test_pairs_of_texts_are_one_sequence(tiny_model):
    tiny_model.eval()
    item = Input(["Yes.", "The dog."], ["en", "en"], pair_texts=["Ja.", "Ja."], pooling="cls")
    vectors = Encoding(_settings(), {"x": item}, {}, tiny_model.member, tiny_model, 1.0, ("x", 0)).vectors(gradient=False)["x"]
    features = dict(tiny_model.member("main").tokenizer("Yes.", "Ja.", return_tensors="pt"))
    assert torch.allclose(tiny_model.member("main")(features, "cls")[0], vectors[0], atol=1e-6)


def test_a_sentence_that_was_not_tokenised_beforehand_gets_the_prefix_too(tiny_model):
    tiny_model.eval()
    settings, item = replace(_settings(), prefix="the dog "), Input(["sleeps."], ["en"])
    vectors = Encoding(settings, {"x": item}, {}, tiny_model.member, tiny_model, 1.0, ("x", 0)).vectors(gradient=False)["x"]
    features = dict(tiny_model.member("main").tokenizer("the dog sleeps.", return_tensors="pt"))
    assert torch.allclose(tiny_model.member("main")(features, "mean"), vectors, atol=1e-6)


def test_trial_kinds_are_registered():
    from crosslign.objectives import OBJECTIVES

    assert OBJECTIVES.get("trial_paired") is trial.Paired


@pytest.mark.parametrize(
    ("choice", "trained"),
    [
        ({}, [True, False]),  # the readout's inner layer, 6 of 12 or 1 of 2: what lies above it has no part in the vectors
        ({"pooling": "cls"}, [True, True]),  # another pooling reads the last layer
        ({"pooling": "cls", "layer": 6}, [True, False]),
        ({"layer": -1}, [True, True]),
    ],
)
def test_the_layer_that_an_input_reads(tiny_model, sentence_pairs, choice, trained):
    item = Input([en for en, _ in sentence_pairs], ["en"] * 20, **choice)
    encoding = Encoding(replace(_settings(), layer=6), {"x": item}, {}, tiny_model.member, tiny_model, 1.0, ("x", 0))
    encoding.vectors(gradient=True)["x"].square().sum().backward()
    encoding.backward()
    blocks = tiny_model.member("main").backbone.encoder.layer
    assert [any(p.grad is not None and bool(p.grad.any()) for p in block.parameters()) for block in blocks] == trained


@pytest.mark.parametrize(
    ("pooling", "layer", "computed"), [("mean", 6, 1), ("mean", 0, 0), ("mean", -1, 2), ("avg_first_last", 1, 2), ("pooler", 6, 2)]
)
def test_blocks_above_the_layer_that_is_read_are_not_computed(tiny_model, sentence_pairs, monkeypatch, pooling, layer, computed):
    """In training and in encoding; layer 6 of 12 is layer 1 of 2."""
    from crosslign.encoders.encode import encode
    from crosslign.encoders.packed import inference, training

    done = []
    for owner, name in ((inference._Layer, "__call__"), (training.PackedTraining, "_layer")):
        monkeypatch.setattr(owner, name, _counted(getattr(owner, name), done))
    texts = [en for en, _ in sentence_pairs]
    item = Input(texts, ["en"] * 20, pooling=pooling, layer=layer)
    tiny_model.eval()
    trained = Encoding(_settings(), {"x": item}, {}, tiny_model.member, tiny_model, 1.0, ("x", 0)).vectors(gradient=False)["x"]
    assert len(done) == computed
    encoded = encode(tiny_model, texts, ["en"] * 20, {"pooling": pooling, "layer": layer, "max_length": 16, "normalise": False})
    assert len(done) == 2 * computed
    assert torch.allclose(trained, torch.from_numpy(encoded), atol=1e-5)


def _counted(real, done):
    def count(self, *given, **named):
        done.append(1)
        return real(self, *given, **named)

    return count


def test_one_sentence_read_at_two_layers(tiny_model, sentence_pairs):
    tiny_model.eval()
    texts = [en for en, _ in sentence_pairs]
    inputs = {f"at{layer}": Input(texts, ["en"] * 20, pooling="mean", layer=layer) for layer in (6, -1)}
    vectors = Encoding(_settings(), inputs, {}, tiny_model.member, tiny_model, 1.0, ("x", 0)).vectors(gradient=False)
    features = tiny_model.member("main").tokenizer(texts[:1], return_tensors="pt")
    states = tiny_model.member("main").backbone(**features, output_hidden_states=True).hidden_states
    for layer, block in ((6, 1), (-1, 2)):
        assert torch.allclose(vectors[f"at{layer}"][0], states[block][0].mean(0), atol=1e-5)


@pytest.mark.parametrize(("pooling", "layer"), [("mean", -1), ("mean", 1), ("cls", -1)])
def test_flops_of_a_sentence_are_those_that_torch_counts(tiny_encoder, pooling, layer):
    """Torch counts the products of the whole pass; blocks above an inner layer, and the pooler, are no part of the vector."""
    member = Model.load({"main": tiny_encoder / "main"}).eval().member("main")
    member.backbone.pooler = None
    member.backbone.set_attn_implementation("eager")  # torch does not count the products inside its kernel of attention
    blocks = member.blocks_read(pooling, layer)
    member.backbone.encoder.layer = member.backbone.encoder.layer[:blocks]
    for length in (3, 11):
        ids = torch.arange(5, 5 + length).unsqueeze(0)
        counter = FlopCounterMode(display=False)
        with counter, torch.no_grad():
            member.backbone(input_ids=ids)
        member.blocks = blocks  # those that are left
        assert cost_of(member, [np.arange(length)], blocks, gradient=False).flops == counter.get_total_flops()
        assert cost_of(member, [np.arange(length)], blocks, gradient=True).flops == 3 * counter.get_total_flops()


def test_tokens_with_gradient_count_three_times_and_keys_once(train, tiny_model, sentence_pairs):
    """Three inputs with gradient and one without, each of 8 of 20 rows, 20 rows an epoch: counted by hand for one epoch."""
    summary, _ = train(trial.recipe(terms=KEYED, parts=MOMENTUM, train={"steps": 3, "max_length": 64}))
    member = tiny_model.member("main")
    lengths = [[len(ids) for ids in member.tokenise(list(texts), None, 64).ids] for texts in zip(*sentence_pairs, strict=True)]
    a, b = map(sum, lengths)
    encoded = summary["encoded"]
    assert (encoded["sentences"], encoded["tokens"], encoded["tokens_with_gradient"]) == (80, 2 * a + 2 * b, 2 * a + b)
    flops = [sum(cost_of(member, [np.arange(n)], member.blocks, gradient).flops for n in side) for side, gradient in
             ((lengths[0], True), (lengths[1], True), (lengths[0], True), (lengths[1], False))]  # fmt: skip
    assert encoded["flops"] == pytest.approx(sum(flops))
