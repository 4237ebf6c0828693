"""MVA: numbers worked out by hand and slow twins of its four similarities."""

from __future__ import annotations

import pytest
import slow_losses
import torch
from torch import nn

from crosslign.config.options import check_call
from crosslign.errors import InputError

ANCHORS = torch.tensor([[1, 0], [3, 4], [4, 3], [0, 1]], dtype=torch.float64)
VIEWS = torch.tensor([[12, 5], [4, 3], [15, 8], [5, 12]], dtype=torch.float64)


@pytest.fixture
def rows(batch):
    return lambda count: batch(
        count,
        "a",
        b_text=[None] * count,
        b_lang=[None] * count,
        label=[[0.0]] * count,
        views=[[{"kind": "full", "lang": "de", "a_text": f"v{i}", "b_text": None}] for i in range(count)],
    )


@pytest.fixture
def identity(part):
    """A classification part whose logits are the vector itself."""

    def make(dimension):
        head = part("classification", dimension=dimension, labels=dimension, head="linear", dropout=0.0).double()
        nn.init.eye_(head.layers[-1].weight)
        return head

    return make


@pytest.mark.parametrize(("similarity", "expected"), [("cosine", -0.9485972851), ("mse", 0.1028054299)])
def test_golden_of_vectors(term, rows, typed, similarity, expected):
    loss = term("alignment", similarity=similarity).loss(typed({"row": ANCHORS, "view_0": VIEWS}), rows(4), {}).total
    assert float(loss) == typed.near(expected)


def test_on_pairs_the_second_sentence_is_the_view(term, batch):
    objective = term("alignment", similarity="cosine")
    assert list(objective.inputs(batch(4), torch.Generator())) == ["a", "b"]
    assert float(objective.loss({"a": ANCHORS, "b": VIEWS}, batch(4), {}).total) == pytest.approx(-0.9485972851, abs=1e-9)


@pytest.mark.parametrize(
    ("similarity", "swap", "expected"), [("kl", 0, 0.2360004401), ("kl", 1, 0.2676707853), ("symmetric_kl", 0, 0.5036712254)]
)
def test_golden_of_posteriors(term, rows, identity, typed, similarity, swap, expected):
    p, q = torch.tensor([[2.0, 0.5, -1.0]], dtype=torch.float64), torch.tensor([[1.0, 1.0, -0.5]], dtype=torch.float64)
    vectors = typed({"row": q, "view_0": p} if swap else {"row": p, "view_0": q})
    head = identity(3).to(typed.dtype)
    loss = term("alignment", similarity=similarity, part="head").loss(vectors, rows(1), {"head": head}).total.detach()
    assert float(loss) == typed.near(expected)


def unit(u):
    length = sum(x * x for x in u) ** 0.5
    return [x / length for x in u]


def twin(similarity, distributions, u, v):
    if similarity == "cosine":
        return -slow_losses.cosine(u, v)
    if similarity == "mse":
        return sum((x - y) ** 2 for x, y in zip(unit(u), unit(v), strict=True))
    p, q = (slow_losses.softmax(list(w) if distributions == "classes" else unit(w)) for w in (u, v))
    return slow_losses.kl(p, q) + (slow_losses.kl(q, p) if similarity == "symmetric_kl" else 0)


@pytest.mark.parametrize("distributions", ["classes", "embedding"])
@pytest.mark.parametrize("similarity", ["cosine", "mse", "kl", "symmetric_kl"])
def test_agrees_with_the_slow_twin(term, rows, agree, identity, random_vectors, similarity, distributions):
    objective = term("alignment", similarity=similarity, distributions=distributions, part="head")
    parts = {"head": identity(5)}

    def slow(v):
        return slow_losses.mean(twin(similarity, distributions, u, w) for u, w in zip(v["row"], v["view_0"], strict=True))

    agree(lambda v: objective.loss(v, rows(4), parts).total, slow, random_vectors(row=4, view_0=4), single=False)


@pytest.mark.parametrize(("over_views", "share"), [("mean", 0.5), ("sum", 1.0)])
def test_over_two_views(term, batch, agree, random_vectors, over_views, share):
    views = [[{"kind": "full", "lang": "de", "a_text": f"v{i}", "b_text": None}] * 2 for i in range(3)]
    rows = batch(3, "a", b_text=[None] * 3, b_lang=[None] * 3, label=[[0.0]] * 3, views=views)
    objective = term("alignment", similarity="cosine", over_views=over_views)

    def slow(v):
        sums = [slow_losses.mean(-slow_losses.cosine(v["row"][i], v[name][i]) for i in range(3)) for name in ("view_0", "view_1")]
        return share * sum(sums)

    agree(lambda v: objective.loss(v, rows, {}).total, slow, random_vectors(row=3, view_0=3, view_1=3))


def test_identical_views_are_the_minimum(term, rows, identity):
    vectors = {"row": ANCHORS, "view_0": ANCHORS}
    for similarity, lowest in (("cosine", -1.0), ("mse", 0.0), ("kl", 0.0), ("symmetric_kl", 0.0)):
        loss = term("alignment", similarity=similarity, part="head").loss(vectors, rows(4), {"head": identity(2)}).total.detach()
        assert float(loss) == pytest.approx(lowest, abs=1e-12)


def test_kl_of_unit_vectors_is_tiny_but_that_of_posteriors_is_not(term, rows, random_vectors):
    # Why the posterior reading is the default (docs/papers/scl.md).
    vectors = random_vectors(dimension=768, row=8, view_0=8)
    loss = term("alignment", distributions="embedding").loss(vectors, rows(8), {}).total
    assert float(loss) < 5e-3


@pytest.mark.parametrize("options", [{}, {"similarity": "euclid"}, {"similarity": "kl", "distributions": "tokens"}])
def test_options_that_do_not_fit(options):
    with pytest.raises(InputError):
        check_call("objectives", "alignment", options, "here")
