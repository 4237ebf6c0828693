"""Parts that are built for a recipe's terms."""

from __future__ import annotations

import pytest
from tokenise import tokenised
from torch import nn
from trial import recipe

from crosslign.encoders.dense import Dense
from crosslign.encoders.model import Member, Model
from crosslign.errors import InputError
from crosslign.training.terms import build_parts, open_streams


@pytest.fixture
def narrow(tiny_model):
    """An encoder whose own dense layer gives shorter vectors than its states, as distiluse's does."""
    member = tiny_model.member("main")
    dense = Dense("mean", [(nn.Linear(member.dimension, 10), nn.Identity())])
    return Model({"main": Member(member.backbone, member.tokenizer, dense)})


MLP = {"mlp": {"kind": "mlp_train_only"}}
SCALE = {"scale": {"kind": "logit_scale"}}


def _term(**options):
    return {"examples": "pairs", "batch": 8, **options}


@pytest.mark.parametrize(
    ("parts", "term", "readout"),
    [
        (MLP, _term(objective="infonce", projection="mlp"), "pooler"),
        (MLP, _term(objective="infonce", projection="mlp", pooling="pooler"), "mean"),
        ({"queue": {"kind": "momentum_queue", "size": 4}}, _term(objective="momentum_contrast", queue="queue"), "pooler"),
    ],
)
def test_a_part_under_vectors_of_another_length_is_refused(narrow, parts, term, readout):
    with pytest.raises(InputError, match=r"terms: .*pooler .* 10 .* 32\b.*pooling"):
        build_parts(recipe(parts=parts, terms=[term], readout={"pooling": readout}), narrow)


def test_parts_that_fit_are_built(narrow):
    """A factor of cosines takes vectors of any length."""
    dual = recipe(parts=SCALE, terms=[_term(objective="dual_encoder", scale="scale")], readout={"pooling": "pooler"})
    assert build_parts(dual, narrow).keys() == {"scale"}
    other = recipe(parts=MLP, terms=[_term(objective="infonce", projection="mlp", pooling="mean")], readout={"pooling": "pooler"})
    assert build_parts(other, narrow).keys() == {"mlp"}


def test_parts_of_one_kind_start_from_weights_of_their_own(tiny_model):
    terms = [_term(objective="infonce", projection=name) for name in ("one", "other")]
    made = build_parts(recipe(parts={"one": MLP["mlp"], "other": MLP["mlp"]}, terms=terms), tiny_model)
    assert not (made["one"].dense.weight == made["other"].dense.weight).any()


def test_of_the_micro_batches_of_one_set_the_smallest_counts(tiny_model, pairs_file, tmp_path):
    terms = [_term(objective="infonce", **micro) for micro in ({"micro_batch": 4}, {}, {"micro_batch": 2}, {"micro_batch": 3})]
    (stream,) = open_streams(recipe(terms=terms), tokenised(recipe(terms=terms), {"pairs": pairs_file}, tiny_model, tmp_path), tiny_model)
    assert stream.micro_batch == 2
