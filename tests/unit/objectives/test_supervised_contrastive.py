"""SCL: numbers worked out by hand, slow twins of its three formulas, and the positives of retrieval."""

from __future__ import annotations

import pytest
import slow_losses
import torch

from crosslign.config.options import check_call
from crosslign.errors import InputError

ANCHORS = torch.tensor([[1, 0], [3, 4], [4, 3], [0, 1]], dtype=torch.float64)
VIEWS = torch.tensor([[12, 5], [4, 3], [15, 8], [5, 12]], dtype=torch.float64)
LABELS = [0, 1, 0, 2]
PARAPHRASES = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def view(i, v=0, second=None, kind="full"):
    return {"kind": kind, "lang": "de", "a_text": f"view {i} {v}", "b_text": second}


@pytest.fixture
def labelled(batch):
    """Rows of one sentence, with labels and views."""

    def make(labels, counts=None, seconds=None):
        counts = counts or [1] * len(labels)
        seconds = seconds or [None] * len(labels)
        views = [[view(i, v, seconds[i] and f"second view {i}") for v in range(count)] for i, count in enumerate(counts)]
        langs = [second and "en" for second in seconds]
        return batch(len(labels), "a", b_text=seconds, b_lang=langs, label=[[float(y)] for y in labels], views=views)

    return make


@pytest.mark.parametrize(
    ("temperature", "positives", "expected"),
    [
        (1.0, "own", 1.0991537651),
        (1.0, "same_class", 1.2617867081),
        (0.1, "own", 0.5768445168),
        (0.1, "same_class", 0.8289081421),
    ],
)
def test_golden_classification(term, labelled, typed, temperature, positives, expected):
    objective = term("supervised_contrastive", temperature=temperature, positives=positives)
    loss = objective.loss(typed({"row": ANCHORS, "view_0": VIEWS}), labelled(LABELS), {}).total
    assert float(loss) == typed.near(expected)


@pytest.mark.parametrize(("temperature", "expected"), [(1.0, 1.2543206447), (0.1, 0.7542475086)])
def test_golden_vanilla_contrast(term, labelled, typed, temperature, expected):
    vectors = typed({"row": ANCHORS, "view_0": VIEWS})
    assert float(term("infonce", temperature=temperature).loss(vectors, labelled(LABELS), {}).total) == typed.near(expected)
    # SCL with a class of its own for every row is vanilla contrast.
    apart = term("supervised_contrastive", temperature=temperature).loss(vectors, labelled([0, 1, 2, 3]), {}).total
    assert float(apart) == typed.near(expected)


@pytest.mark.parametrize(
    ("temperature", "normalise", "expected"),
    [(1.0, False, 1.6529968688), (1.0, True, 1.1307391559), (0.1, False, 1.4052596803), (0.1, True, 0.8560102954)],
)
def test_golden_retrieval(term, batch, typed, temperature, normalise, expected):
    # Sentences 0 and 1 are paraphrases of each other; 2 and 3 are not: two rows, sides a (0, 2) and b (1, 3).
    rows = batch(2, "ab", label=[[1.0], [0.0]], views=[[view(0, second="x")], [view(1, second="y")]])
    vectors = typed({"a": ANCHORS[[0, 2]], "b": ANCHORS[[1, 3]], "view_0_a": VIEWS[[0, 2]], "view_0_b": VIEWS[[1, 3]]})
    objective = term("supervised_contrastive", form="retrieval", temperature=temperature, normalise_positives=normalise)
    assert list(objective.inputs(rows, torch.Generator())) == list(vectors)
    assert float(objective.loss(vectors, rows, {}).total) == typed.near(expected)


@pytest.mark.parametrize(("positives", "over_views"), [("own", "mean"), ("same_class", "mean"), ("own", "sum")])
def test_classification_agrees_with_the_slow_twin(term, labelled, agree, random_vectors, positives, over_views):
    labels, counts = [0, 1, 0, 2, 1], [2, 2, 1, 2, 2]
    rows = labelled(labels, counts)
    objective = term("supervised_contrastive", temperature=0.3, positives=positives, over_views=over_views)

    def slow(v):
        kept = [0, 1, 3, 4]
        first = slow_losses.scl(v["row"], v["view_0"], labels, 0.3, positives == "same_class")
        second = slow_losses.scl(v["row"][kept], v["view_1"], [labels[i] for i in kept], 0.3, positives == "same_class")
        return (slow_losses.mean(first) + slow_losses.mean(second)) / (2 if over_views == "mean" else 1)

    agree(lambda v: objective.loss(v, rows, {}).total, slow, random_vectors(row=5, view_0=5, view_1=4))


@pytest.mark.parametrize("normalise", [False, True])
def test_retrieval_agrees_with_the_slow_twin(term, labelled, agree, random_vectors, normalise):
    rows = labelled([1, 0, 1], seconds=["b0", "b1", "a0"])  # b of row 2 is a of row 0: a2, a0, b0 and b2 hang together by pairs
    positive = [[i == j for j in range(6)] for i in range(6)]
    for i, j in [(0, 3), (2, 5), (0, 5), (5, 3), (2, 0)]:  # a0–b0, a2–b2, a0 = b2, b2–b0 (as a0–b0), a2–a0 (as a2–b2)
        positive[i][j] = positive[j][i] = True
    objective = term("supervised_contrastive", form="retrieval", temperature=0.3, normalise_positives=normalise)

    def slow(v):
        anchors, views = torch.cat([v["a"], v["b"]]), torch.cat([v["view_0_a"], v["view_0_b"]])
        return slow_losses.mean(slow_losses.scl_retrieval(anchors, views, positive, 0.3, normalise))

    agree(lambda v: objective.loss(v, rows, {}).total, slow, random_vectors(a=3, b=3, view_0_a=3, view_0_b=3))


def test_retrieval_compares_the_rows_that_have_a_view(term, labelled, agree, random_vectors):
    rows = labelled([1, 1, 0], counts=[1, 0, 1], seconds=["b0", "b1", "b2"])  # row 1 has none; row 0 is a pair of paraphrases
    positive = [[i == j or {i, j} == {0, 2} for j in range(4)] for i in range(4)]
    objective = term("supervised_contrastive", form="retrieval", temperature=0.3)

    def slow(v):
        anchors, views = torch.cat([v["a"][[0, 2]], v["b"][[0, 2]]]), torch.cat([v["view_0_a"], v["view_0_b"]])
        return slow_losses.mean(slow_losses.scl_retrieval(anchors, views, positive, 0.3))

    agree(lambda v: objective.loss(v, rows, {}).total, slow, random_vectors(a=3, b=3, view_0_a=2, view_0_b=2))


def test_is_zero_when_all_labels_are_equal(term, labelled):
    vectors = {"row": ANCHORS.clone().requires_grad_(), "view_0": VIEWS}
    loss = term("supervised_contrastive").loss(vectors, labelled([1, 1, 1, 1]), {}).total
    loss.backward()
    assert float(loss.detach()) == 0
    assert torch.isfinite(vectors["row"].grad).all()
    assert float(vectors["row"].grad.abs().max()) < 1e-15


def test_retrieval_without_negatives_is_zero(term, labelled):
    rows = labelled([1], seconds=["b0"])
    vectors = {name: row.clone().requires_grad_() for name, row in zip(("a", "b", "view_0_a", "view_0_b"), ANCHORS.split(1), strict=True)}
    loss = term("supervised_contrastive", form="retrieval").loss(vectors, rows, {}).total
    loss.backward()
    assert float(loss.detach()) == 0
    assert not vectors["a"].grad.any()


def test_does_not_depend_on_the_order_of_the_batch(term, labelled, random_vectors):
    labels, vectors = [0, 1, 0, 2, 1, 1], random_vectors(row=6, view_0=6)
    order = torch.randperm(6, generator=torch.Generator().manual_seed(2))
    moved = {name: v[order] for name, v in vectors.items()}
    for positives in ("own", "same_class"):
        objective = term("supervised_contrastive", positives=positives)
        first = objective.loss(vectors, labelled(labels), {}).total
        assert torch.allclose(first, objective.loss(moved, labelled([labels[i] for i in order]), {}).total, atol=1e-12)


def test_inputs_of_pairs_and_of_chosen_kinds(term, labelled, batch):
    rows = labelled([0, 1], seconds=["b0", "b1"])
    inputs = term("supervised_contrastive").inputs(rows, torch.Generator())
    assert list(inputs) == ["row", "view_0"]
    assert list(inputs["row"].pair_texts) == ["b0", "b1"]
    assert list(inputs["view_0"].pair_texts) == ["second view 0", "second view 1"]
    assert list(inputs["view_0"].langs) == ["de", "de"]
    views = [[view(0, kind="partial"), view(0, 1)], [view(1, kind="partial")]]
    rows = batch(2, "a", b_text=[None, None], b_lang=[None, None], label=[[0.0], [1.0]], views=views)
    chosen = term("supervised_contrastive", kinds=["full"])
    inputs = chosen.inputs(rows, torch.Generator())
    assert {name: list(item.texts) for name, item in inputs.items()} == {"row": ["a0", "a1"], "view_full_0": ["view 0 1"]}
    none = term("supervised_contrastive", kinds=["code_switch"])
    vectors = {"row": ANCHORS[:2].clone().requires_grad_()}
    total = none.loss(vectors, rows, {}).total
    total.backward()
    assert float(total.detach()) == 0


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": [[0.0], None]}, r"row .*class.*None"),
        ({"views": [None, None]}, r"row .*`views`"),
        ({"b_text": ["b0", None]}, "1 of 2 "),
    ],
)
def test_rows_that_do_not_fit(term, labelled, columns, message):
    rows = labelled([0, 1])
    rows.columns.update(columns)
    objective = term("supervised_contrastive")
    with pytest.raises(InputError, match=message):  # noqa: PT012 - some are seen when inputs are named, some in the loss
        assert objective.inputs(rows, torch.Generator())
        objective.loss({"row": ANCHORS[:2], "view_0": VIEWS[:2]}, rows, {})


@pytest.mark.parametrize("options", [{"form": "retrieve"}, {"form": None}, {"positives": "all"}, {"form": "retrieval", "encode": "pair"}])
def test_options_that_do_not_fit(options):
    with pytest.raises(InputError):
        check_call("objectives", "supervised_contrastive", options, "here")
