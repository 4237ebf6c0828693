"""Columns of another trainer's data set: what they stand for, and which of them terms read."""

import pytest
import torch

from crosslign.errors import InputError
from crosslign.objectives.columns import Given, batch_of, encoded_twice
from crosslign.objectives.contract import Input, plan_of
from crosslign.training.terms import named_terms

INFONCE, SEVERAL, SCORES = {"objective": "infonce"}, {"objective": "multi_positive_infonce"}, {"objective": "cosine_regression"}
SENTENCES = {"objective": "infonce", "encode": "sentences"}
COSINES = {"objective": "alignment", "similarity": "cosine", "encode": "sentences"}
MOMENTUM = {"objective": "momentum_contrast", "queue": "queue"}


def looked_at(columns, *entries):
    """Return the batch of some columns, and whether their sentences are encoded twice for some of the terms."""
    labels = columns.get("score")
    names = [name for name in columns if name != "score"]
    terms = [term for term, _ in named_terms(entries, "test")]
    groups = all(term.objective.shape == "groups" for term in terms)
    batch = batch_of(names, [columns[name] for name in names], labels, {}, groups, 0)
    plans = [plan_of(term.name, term.objective, batch, torch.Generator()) for term in terms]
    return batch, encoded_twice(names, batch, {term.name: term.objective.shape for term in terms}, plans)


@pytest.mark.parametrize(
    ("terms", "columns", "said"),
    [
        ([SEVERAL], {"a": ["x", "y"]}, "row 0 of the batch: a group needs at least two sentences; the data set has one column"),
        ([COSINES], {"a": ["x", "y"]}, "alignment compares two sentences; the data set has one column"),
        ([SCORES], {"a": ["x", "y"], "score": [0.1, 0.9]}, "cosine_regression compares two sentences"),
        ([INFONCE, SCORES], {"a": ["x", "y"], "score": [0.1, 0.9]}, "cosine_regression compares two sentences"),
        ([SEVERAL], {"a": ["x", "y"], "b": ["z", ""]}, "row 1 of the batch: .*group"),
        ([SEVERAL], {"a": ["x", ""], "b": ["z", ""], "c": ["y", "y"]}, "row 1 of the batch: .*group"),
        ([INFONCE], {"a": ["x", "y"], "b": ["z", ""]}, "row 1 of the batch: .*'b'"),
        ([INFONCE], {"a": ["x", ""]}, "row 1 of the batch: .*'a'"),
        ([INFONCE], {"a": ["x", ""], "b": ["z", "u"]}, "row 1 of the batch: .*'a'"),
        ([INFONCE], {"negative": ["x", "y"]}, "columns: negative"),
        ([SENTENCES], {"a": ["x"], "b": ["y"], "view": ["z"]}, "column 'b' "),
        ([COSINES], {"a": ["x"], "b": ["y"], "view_b": ["z"]}, "view_b has no view_a"),
        ([INFONCE], {"a": ["x"], "view_a": ["z"], "view_b": ["z"]}, "column 'view_b' "),
        ([INFONCE], {"a": ["x"], "view": ["y"], "negative": ["z"]}, "column 'negative' .*views"),
        ([MOMENTUM], {"a": ["x"], "b": ["y"], "negative": ["z"]}, "column 'negative' "),
        ([MOMENTUM], {"a": ["x"], "b": ["y"], "view": ["z"]}, "column 'view' "),
        ([INFONCE | {"kinds": ["partial"]}], {"a": ["x"], "view": ["z"]}, "column 'view' "),
    ],
)
def test_what_no_term_could_learn_from_is_refused(terms, columns, said):
    with pytest.raises(InputError, match=said):
        looked_at(columns, *terms)


def test_columns_that_one_of_several_terms_reads_are_taken():
    pair = {"a": ["x", "y"], "b": ["z", "u"]}
    looked_at(pair | {"view": ["v", "w"], "score": [0.1, 0.9]}, COSINES, SCORES)
    looked_at(pair | {"negative": ["", "n"]}, MOMENTUM, INFONCE)
    for empty in ("negative", "view"):  # of this batch
        looked_at(pair | {empty: ["", ""]}, MOMENTUM)
    batch, twice = looked_at({"a": ["x", "y"], "b": ["z", ""], "c": ["", "v"]}, SEVERAL)
    assert (batch.columns["texts"], twice) == ([["x", "z"], ["y", "v"]], False)


def test_one_column_is_encoded_twice_for_what_reads_it_as_dropout_pairs():
    assert looked_at({"a": ["x", "y"]}, INFONCE)[1]
    assert looked_at({"a": ["x", "y"]}, MOMENTUM)[1]
    assert not looked_at({"a": ["x", "y"], "b": ["x", "y"]}, INFONCE)[1]
    assert not looked_at({"a": ["x", "y"], "view": ["z", "u"]}, INFONCE)[1]
    assert not looked_at({"a": ["x", "y"], "score": [0, 1]}, {"objective": "sentence_transformers_loss", "loss": "BatchAllTripletLoss"})[1]


def test_a_text_of_several_places_is_handed_out_from_one_after_another():
    given = Given([["x", "x"], ["x", "y"]], [torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [4.0]])])
    a, b = Input(["x", "x"], ["und"] * 2), Input(["x", "y"], ["und"] * 2)
    assert [given.of(name, item).flatten().tolist() for name, item in (("a", a), ("b", b), ("a", a))] == [[1, 2], [3, 4], [1, 2]]
    with pytest.raises(InputError, match=r"terms: .*'a'"):
        given.of("a", b)
