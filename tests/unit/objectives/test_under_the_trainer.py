"""Every objective under the one trainer: the loss falls on a few rows. That a killed run ends in the same bytes: training/test_kills."""

from __future__ import annotations

import json

import pytest
import torch
from methods import QUEUE, SYSTEMS, recipe, term, write_examples
from safetensors.torch import load_file
from tokenise import tokenised

from crosslign.encoders.model import Model
from crosslign.errors import InputError
from crosslign.objectives.contract import plan_of
from crosslign.objectives.saved_parts import make_part, take_over
from crosslign.training.fit import fit
from crosslign.training.terms import build_parts, open_streams


@pytest.fixture(scope="module")
def example_files(tmp_path_factory, sentence_pairs, pairs_file, groups_file):
    """Training sets of all shapes."""
    return write_examples(tmp_path_factory.mktemp("examples"), sentence_pairs, pairs_file, groups_file)


@pytest.fixture
def train(tiny_encoder, example_files, tmp_path):
    """Train a fresh tiny model by a system's terms and parts; return the run's folder."""

    def run(system, name, members=("main",), steps=6, **changes):
        terms, parts = SYSTEMS[system]
        settings = recipe(system, terms, parts, steps, **changes)
        model = Model.load(dict.fromkeys(members, tiny_encoder / "main"))
        used = {entry["examples"]: example_files[entry["examples"]] for entry in terms}
        sets = tokenised(settings, used, model, tmp_path / f"{name}-sets")
        run.summary = fit(settings, sets, model, build_parts(settings, model), None, tmp_path / name, tmp_path / f"{name}-work")
        return tmp_path / name

    return run


def curve(folder):
    return [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]


POOLED = [name for name in SYSTEMS if name != "masked language model"]
"""Systems whose terms read vectors of sentences."""


@pytest.mark.parametrize("system", POOLED)
def test_every_term_passes_its_pooling_and_layer_on(system, tiny_model, example_files, tmp_path):
    terms, parts = SYSTEMS[system]
    settings = recipe(system, [entry | {"pooling": "cls", "layer": 1} for entry in terms], parts)
    used = {entry["examples"]: example_files[entry["examples"]] for entry in terms}
    for stream in open_streams(settings, tokenised(settings, used, tiny_model, tmp_path), tiny_model):
        batch, _ = stream.store.batch(stream.order.at(0), 0)
        inputs = [item for one in stream.terms for item in plan_of(one.name, one.objective, batch, torch.Generator()).values()]
        assert inputs
        assert {(item.pooling, item.layer) for item in inputs} == {("cls", 1)}


FALL = ["mSimCSE", "SCL", "MVA", "CL", "SCL retrieval", "MPCL", "EMMA-X 1", "regression", "dual encoder", "masked language model"]


@pytest.mark.parametrize("system", FALL)
def test_the_loss_falls(system, train):
    losses = [line["loss"] for line in curve(train(system, "run", steps=42))]
    assert sum(losses[-6:]) < 0.9 * sum(losses[:6])  # six steps are two epochs: batches of 8, 8 and 4 rows, twice


def test_moco_with_a_member_per_language(train):
    folder = train("MoCo-BERT with NLI", "run", members=("de", "en"))
    assert (folder / "last" / "de" / "model.safetensors").is_file()
    filled = [line["terms"]["momentum_contrast"]["queue_filled"] for line in curve(folder)]
    assert filled[0] == 0  # the first batch sees an empty queue
    assert filled[1:3] == pytest.approx([8 / 12, 1.0])


def test_queues_and_momentum_copies_are_kept_for_resume_alone(train, stopped_before, tmp_path):
    with stopped_before(3):
        train("EMMA-X 1", "run")
    kept = load_file(tmp_path / "run-work" / "step-00000002" / "parts.safetensors")
    folder = train("EMMA-X 1", "run")
    saved = load_file(folder / "last" / "parts.safetensors")
    assert {name.split(".")[0] for name in kept} == {"queue", "gmm", "scores"}
    assert "queue.ring" in kept
    assert {name.split(".")[0] for name in saved} == {"gmm", "scores"}
    part = make_part("queue", QUEUE, Model.load({"main": folder / "last" / "main"}), 0, "here")
    with pytest.raises(InputError, match=r"here: .*start_from"):
        take_over(part, "queue", folder / "last", "here")


def test_micro_batches_give_the_same_loss(train, monkeypatch):
    monkeypatch.setattr("crosslign.training.encoding.Encoding._forward", _without_dropout)
    whole = curve(train("EMMA-X 1", "whole", steps=1))
    terms, parts = SYSTEMS["EMMA-X 1"]
    monkeypatch.setitem(SYSTEMS, "EMMA-X 1", ([entry | {"micro_batch": 3} for entry in terms], parts))
    split = curve(train("EMMA-X 1", "split", steps=1))
    assert split[0]["loss"] == pytest.approx(whole[0]["loss"], abs=1e-6)
    assert split[0]["grad_norm"] == pytest.approx(whole[0]["grad_norm"], rel=1e-4)


def _without_dropout(self, group, rows, number):
    group.module.eval()
    return group.module(group.module.collate(group.ids, None, rows), group.pooling, -1).float()


def vectors_of(folder, sentence_pairs):
    """Return the unit vectors of the English sentences and of their translations."""
    from crosslign.encoders.encode import encode

    readout = {"pooling": "mean", "layer": -1, "max_length": 16, "normalise": True, "precision": "fp32", "prefix": ""}
    model = Model.load({member.name: member for member in (folder / "last").iterdir() if member.is_dir()})
    sides = zip(*sentence_pairs, strict=True)
    return [torch.as_tensor(encode(model, side, [lang] * len(side), readout)) for side, lang in zip(sides, ("en", "de"), strict=True)]


@pytest.mark.parametrize(("momentum", "lowest", "highest"), [(0.0, 0.0, 0.2), (0.99, 0.8, 1.0)])
def test_without_momentum_nothing_is_learnt(train, monkeypatch, sentence_pairs, momentum, lowest, highest):
    # MoCo-BERT's table 5: with m = 0 retrieval falls to chance, here one in twenty.
    terms = [term("momentum_contrast", "pairs", queue="queue", temperature=0.05)]
    monkeypatch.setitem(SYSTEMS, "MoCo", (terms, {"queue": QUEUE | {"momentum": momentum, "size": 16}}))
    guards = {"every": 5, "patience": 4, "after": 60}
    folder = train("MoCo", "run", members=("de", "en"), steps=100, learning_rate=5e-3, guards=guards)
    english, german = vectors_of(folder, sentence_pairs)
    accuracy = ((english @ german.T).argmax(1) == torch.arange(len(english))).float().mean()
    assert lowest <= float(accuracy) <= highest
    assert ("last" in train.summary["collapsed"]) == (momentum == 0)


@pytest.mark.parametrize(
    ("entry", "lowest", "highest"),
    [
        (term("alignment", "labelled", similarity="cosine", encode="sentences"), 0.99, 1.0),
        (term("supervised_contrastive", "labelled", form="retrieval", temperature=0.1), -0.2, 0.2),
    ],
)
def test_alignment_alone_makes_all_sentences_equal(train, monkeypatch, sentence_pairs, entry, lowest, highest):
    # SCL's tables 6 and 7: MVA, which pushes nothing apart, collapses where SCL does not.
    monkeypatch.setitem(SYSTEMS, "aligned", ([entry], {}))
    english, german = vectors_of(train("aligned", "run", steps=60), sentence_pairs)
    others = (english @ german.T)[~torch.eye(len(english), dtype=torch.bool)]
    assert lowest <= float(others.mean()) <= highest


UNFIT = {
    "groups where sides are read": ([term("infonce", "groups")], {}, r"'groups' do not fit the term infonce; its rows are groups"),
    "groups where labels are read": (
        [term("cross_entropy", "groups", part="head")],
        {"head": {"kind": "classification", "labels": 2}},
        r"groups of sentences, but cross_entropy reads labelled",
    ),
    "no labels to regress to": ([term("cosine_regression", "pairs")], {}, r"row .*: these examples have no labels"),
    "no labels of several": (
        [term("cross_entropy", "pairs", part="head", form="multi_label")],
        {"head": {"kind": "classification", "labels": 2}},
        r"these examples have no labels.*labelled_rows",
    ),
    "no labels to tell meanings by": ([term("supervised_contrastive", "pairs", form="retrieval")], {}, r"row .*labels; "),
    "no momentum copies": ([term("momentum_contrast", "pairs", queue="queue")], {}, r"parts: .*momentum_queue"),
    "ranks that do not fit": (
        [term("rank_infonce", "pairs", queue="queue", classifier="gmm", scores="scores")],
        {"queue": QUEUE, "gmm": {"kind": "gaussian_mixture", "ranks": 4}, "scores": {"kind": "rank_scores", "ranks": 2}},
        r"'scores'.*classifier; .* 4 ranks, .* 2\b",
    ),
    "ranks of labelled pairs that do not fit": (
        [term("gmm_ranks", "pairs", classifier="gmm", scores="scores")],
        {"gmm": {"kind": "gaussian_mixture", "ranks": 2}, "scores": {"kind": "rank_scores"}},
        r"classifier.* 2 ranks, .* 4\b",
    ),
    "a layer that is not there": ([term("infonce", "pairs", layer=99)], {}, r"layer 99; .* 2 blocks"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_a_term_cannot_read_is_said_in_words(case, train, monkeypatch):
    terms, parts, said = UNFIT[case]
    monkeypatch.setitem(SYSTEMS, "unfit", (terms, parts))
    with pytest.raises(InputError, match=said):
        train("unfit", "run")
