"""One training step: what it sums over several sets, what parts and guards are told of it, and what stops it."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch
import trial
from tokenise import tokenised
from torch import nn

from crosslign.encoders.model import Member, Model
from crosslign.errors import CrosslignError, InputError, ResourceError
from crosslign.objectives.contract import Input, Loss
from crosslign.training.fit import fit
from crosslign.training.step import Stepper, single_sentences
from crosslign.training.terms import build_parts

HEAD = {"head": {"kind": "trial_head"}}


def paired(examples="pairs", **options):
    return {"objective": "trial_paired", "examples": examples, "batch": 8, **options}


@pytest.fixture
def train_two(tiny_encoder, pairs_file, tmp_path):
    """Train on two sets of the same pairs, which are drawn apart; return the run's curve."""

    def run(terms, parts=None, **train):
        recipe = trial.recipe(terms=terms, parts=parts or {}, train={"steps": 1, **train})
        model = Model.load({"main": tiny_encoder / "main"})
        sets = dict.fromkeys(("pairs", "more"), pairs_file)
        sets = tokenised(recipe, sets, model, tmp_path / "sets")
        fit(recipe, sets, model, build_parts(recipe, model), None, tmp_path / "run", tmp_path / "work")
        return [json.loads(line) for line in (tmp_path / "run" / "curve.jsonl").read_text().splitlines()]

    return run


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0)])
def test_the_loss_of_every_set_reaches_the_weights(train_two, weights):
    terms = [paired(name, weight=weight) for name, weight in zip(("pairs", "more"), weights, strict=True)]
    assert train_two(terms)[0]["grad_norm"] > 1e-3


def test_parts_are_told_the_vectors_of_the_first_set_that_names_them(train_two, monkeypatch):
    """And what stands in the result are the rows and texts of both."""
    compared, told, results, run = [], [], [], Stepper.run

    def loss(self, vectors, batch, parts):
        compared.append(vectors["a"].detach())
        return Loss(vectors["a"].square().sum() + vectors["b"].square().sum())

    monkeypatch.setattr(trial.Paired, "loss", loss)
    monkeypatch.setattr(trial.Head, "commit", lambda self, vectors: told.append(vectors["a"]))
    monkeypatch.setattr(Stepper, "run", lambda self, *given: results.append(run(self, *given)) or results[-1])
    train_two([paired(), paired("more", batch=5)], HEAD)
    assert [len(vectors) for vectors in compared] == [8, 5]
    assert torch.equal(told[0], compared[0])
    assert (results[0].cost.sentences, len(results[0].ids)) == (26, 13)
    assert [len(vectors) for vectors in results[0].sentences] == [8, 8, 5, 5]


def test_guards_see_single_sentences_of_the_encoder_alone():
    alone, keys, pairs = Input(["x"], ["en"]), Input(["x"], ["en"], keys=True), Input(["x"], ["en"], pair_texts=["y"])
    assert single_sentences({"keys": keys, "alone": alone, "pairs": pairs}) == ["alone"]


def test_parts_are_told_nothing_of_a_step_that_is_not_finite(train, tiny_model):
    """A queue that took its vectors in would spoil the steps that follow."""
    recipe = trial.recipe(terms=[paired(poison_at=4, head="head")], parts=HEAD, train={"steps": 6, "guards": {"not_finite": "mark"}})
    parts = build_parts(recipe, tiny_model)
    train(recipe, model=tiny_model, parts=parts)
    assert int(parts["head"].commits) == 4


def test_a_loss_that_is_infinite_is_named_as_one_that_is_nan(train, monkeypatch):
    monkeypatch.setattr(trial.Paired, "loss", lambda self, vectors, batch, parts: Loss(vectors["a"].sum() * 0 + torch.inf))
    with pytest.raises(CrosslignError, match=r"step 1: .*'trial_paired': \{'loss': inf\}"):
        train(trial.recipe())


def test_a_term_that_wants_keys_is_refused_where_no_part_has_copies(train):
    with pytest.raises(InputError, match=r"parts: .*\['head'\]; .*'main'.*momentum_queue"):
        train(trial.recipe(terms=[{"objective": "trial_keyed", "examples": "pairs", "batch": 8}], parts=HEAD))


@pytest.mark.parametrize(
    ("ranks", "own", "found", "expected"), [(1, None, None, 7), (2, None, None, 4), (2, 3, 5, 3), (1, 5, 2, 2), (4, 3, 9, 2)]
)
def test_the_smallest_bound_says_how_many_examples_are_encoded_at_a_time(ranks, own, found, expected):
    """A rank's share of a batch of seven, the terms' own bound, and what memory was found to allow."""
    accelerator = SimpleNamespace(num_processes=ranks, device="cpu")
    stepper = Stepper(nn.Module(), {}, [], SimpleNamespace(accelerator=accelerator))
    stepper.micro_batches = {"pairs": found} if found else {}
    assert stepper._size(SimpleNamespace(stream=SimpleNamespace(name="pairs", micro_batch=own), batch=range(7))) == expected


def test_what_fits_is_tried_on_every_set(train_two, monkeypatch):
    """Memory has room for ten sentences, five pairs: the first set's two always fit."""
    real = Member.forward

    def forward(self, features, *rest):
        if len(features["input_ids"]) > 10:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, features, *rest)

    monkeypatch.setattr(Member, "forward", forward)
    with pytest.raises(ResourceError, match=r"micro_batch .*\{'pairs': 1, 'more': 5\}"):
        train_two([paired(batch=2), paired("more")])
