"""Losses of sentence-transformers as objectives of the workflow: the judges are those losses, on a model of their own."""

import inspect

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import losses
from test_sentence_transformers import assert_gradients, collated, own_steps, rows  # noqa: F401

from crosslign.config.borrowed import REFUSED
from crosslign.config.borrowed import losses as known
from crosslign.encoders.model import Model
from crosslign.errors import InputError
from crosslign.objectives import OBJECTIVES
from crosslign.objectives.borrowed import borrowed_loss
from crosslign.objectives.contract import Batch

BORROWED = {
    "CoSENTLoss": ("graded", {"scale": 10.0}),
    "AnglELoss": ("graded", {}),
    "MultipleNegativesRankingLoss": ("triplets", {}),
    "MultipleNegativesSymmetricRankingLoss": ("pairs", {"scale": 10.0}),
    "TripletLoss": ("triplets", {"triplet_margin": 1.0}),
    "MatryoshkaLoss": ("pairs", {"loss": "MultipleNegativesRankingLoss", "matryoshka_dims": [32, 8]}),
    "MatryoshkaLoss of an inner scale": (
        "pairs",
        {"loss": {"loss": "MultipleNegativesRankingLoss", "options": {"scale": 5.0}}, "matryoshka_dims": [32, 16]},
    ),
    "MSELoss": ("taught", {}),
    "SoftmaxLoss": ("labelled", {"num_labels": 2}),
}


@pytest.mark.parametrize("name", BORROWED)
def test_a_loss_of_sentence_transformers_is_an_objective_with_its_own_gradients(name, rows, own_steps, tiny_encoder, tmp_path):  # noqa: F811
    (shape, options), name = BORROWED[name], name.split()[0]
    columns = dict(rows["pairs" if shape == "taught" else shape])
    if shape == "taught":
        del columns["positive"]
        teacher = torch.randn(len(columns["anchor"]), 32, generator=torch.Generator().manual_seed(1))
    if shape == "labelled":
        columns = {key: values for key, values in columns.items() if not key.startswith("view")}
    weighted = name == "SoftmaxLoss"  # its weights are a part
    parts = {"weights": {"kind": "loss_weights", "loss": name, "options": options}} if weighted else {}
    term = {"part": "weights"} if weighted else {"loss": name, "options": options}
    term["objective"] = "sentence_transformers_loss"
    steps, _ = own_steps(shape, columns | ({"label": teacher.tolist()} if shape == "taught" else {}), [term], parts)
    model = Model.load({"main": tiny_encoder / "main"})
    config = model.member("main").backbone.config
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    model.save(tmp_path / "plain", {"pooling": "mean", "max_length": 64, "normalise": False})
    judge = SentenceTransformer(str(tmp_path / "plain" / "main"), device="cpu")
    made = options | ({"embedding_dimension": judge.get_embedding_dimension()} if weighted else {})
    if "loss" in made:
        scale = made["loss"]["options"]["scale"] if isinstance(made["loss"], dict) else 20.0
        made["loss"] = losses.MultipleNegativesRankingLoss(judge, scale=scale)
    loss = getattr(losses, name)(judge, **made)
    for numbers, _, weights, heads, grads, expected in steps:
        loss.load_state_dict({key.removeprefix("built."): value for key, value in heads.get("weights", {}).items()}, strict=False)
        own = {key.replace("_registered.0.backbone.", ""): value for key, value in weights.items() if "special_ids" not in key}
        judge[0].model.load_state_dict(own)
        judge.zero_grad()
        features, labels = collated(judge, columns, numbers)
        features = [{key: value for key, value in column.items() if key not in ("texts", "column")} for column in features]
        found = loss(features, teacher[numbers] if shape == "taught" else labels.long() if weighted else labels)
        found = sum(found.values()) if isinstance(found, dict) else found
        assert float(found.detach()) == pytest.approx(expected, rel=1e-5, abs=1e-6)
        found.backward()
        assert_gradients(grads, judge)


@pytest.mark.parametrize("name", [*REFUSED, "CosentLoss"])
def test_losses_that_cannot_be_computed_on_vectors_are_refused_by_name(name):
    with pytest.raises(InputError, match=f"{name}; .*" if name in REFUSED else f"sentence-transformers .*'{name}'"):
        borrowed_loss(name, {}, 8, torch.device("cpu"))


def test_every_loss_that_sentence_transformers_has_is_taken_or_refused_with_the_reason():
    classes = {name for name, kind in vars(losses).items() if isinstance(kind, type) and issubclass(kind, torch.nn.Module)}
    assert classes - set(known()) == {"ContrastiveTensionLossInBatchNegatives"}
    assert set(REFUSED) <= classes


@pytest.mark.parametrize("name", ["ContrastiveLoss", "TripletLoss"])
def test_rows_that_a_loss_cannot_read_are_refused_in_words(name):
    """With a hard negative where the loss is of pairs, without where it is of triplets."""
    sides = "ab" if name == "TripletLoss" else "abc"
    columns = {f"{side}_text": ["x", "y"] for side in sides} | {f"{side}_lang": ["en"] * 2 for side in sides} | {"label": [[0.0], [1.0]]}
    term, vectors = OBJECTIVES.get("sentence_transformers_loss")(loss=name), {side: torch.eye(2) for side in sides}
    with pytest.raises(InputError, match=f"row r: {name} "):
        term.loss(vectors, Batch(["r", "s"], columns), {})


def test_options_of_a_borrowed_loss_are_checked_against_its_signature_and_weights_belong_to_a_part():
    with pytest.raises(InputError, match="scale"):
        borrowed_loss("CoSENTLoss", {"scales": 3}, 8, torch.device("cpu"))
    for inner in ({"options": {"scale": 2}}, {"loss": "CoSENTLoss", "option": {"scale": 2}}, {"loss": "CoSENTLoss", "options": [2]}, 3, ""):
        with pytest.raises(InputError, match=r"inside.*name|sentence-transformers .* ''"):
            borrowed_loss("MatryoshkaLoss", {"loss": inner, "matryoshka_dims": [8]}, 8, torch.device("cpu"))
    for name, given, missing in (("SoftmaxLoss", {}, "num_labels"), ("MatryoshkaLoss", {"loss": "CoSENTLoss"}, "matryoshka_dims")):
        with pytest.raises(InputError, match=f"{name} .*'{missing}'"):
            borrowed_loss(name, given, 8, torch.device("cpu"))
    term = OBJECTIVES.get("sentence_transformers_loss")(loss="SoftmaxLoss", options={"num_labels": 2})
    with pytest.raises(InputError, match="loss_weights"):
        term.loss({"a": torch.ones(2, 8), "b": torch.ones(2, 8)}, Batch(["x", "y"], {"label": [[0.0], [1.0]]}), {})


def test_multiple_negatives_ranking_is_infonce():
    """The control: at temperature 1/scale, with hard negatives."""
    draw = torch.Generator().manual_seed(3)
    given = {side: torch.randn(6, 16, dtype=torch.float64, generator=draw) for side in "abc"}
    columns = {f"{side}_text": [f"{side}{row}" for row in range(6)] for side in "abc"} | {f"{side}_lang": ["en"] * 6 for side in "abc"}
    found = []
    for objective in (
        OBJECTIVES.get("infonce")(temperature=0.04),
        OBJECTIVES.get("sentence_transformers_loss")(loss="MultipleNegativesRankingLoss", options={"scale": 25.0}),
    ):
        vectors = {side: value.clone().requires_grad_() for side, value in given.items()}
        total = objective.loss(vectors, Batch([str(row) for row in range(6)], columns), {}).total
        total.backward()
        found.append((total.detach(), *(vector.grad for vector in vectors.values())))
    for own, other in zip(*found, strict=True):
        torch.testing.assert_close(own, other, rtol=0, atol=1e-9)


def test_the_options_that_are_known_are_those_of_the_signatures():
    classes = {name: getattr(losses, name) for name in dir(losses) if name.endswith("Loss")}
    assert set(classes) == set(known())
    for name in set(classes) - set(REFUSED):
        own = list(inspect.signature(classes[name].__init__).parameters.values())[2:]
        needed = {one.name: one.default is one.empty and one.name != "embedding_dimension" for one in own}
        assert known()[name] == {one: must for one, must in needed.items() if one != "gather_across_devices"}
