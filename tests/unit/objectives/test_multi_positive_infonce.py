"""MPCL: numbers worked out by hand, a slow twin of every variant, and how groups become inputs."""

from __future__ import annotations

import pytest
import slow_losses
import torch

from crosslign.config.options import check_call
from crosslign.errors import InputError
from crosslign.objectives.contract import cosines

GROUPS = torch.tensor([[3, 4], [4, 3], [5, 12], [1, 0], [12, 5], [15, 8], [0, 1], [8, 15], [-3, 4]], dtype=torch.float64)
HARD = torch.tensor([[0, 1], [4, 3], [3, 4]], dtype=torch.float64)


@pytest.fixture
def grouped(batch):
    """Groups of given sizes, or of given texts."""

    def make(*groups, **columns):
        texts = [[f"g{i} {k}" for k in range(group)] if isinstance(group, int) else list(group) for i, group in enumerate(groups)]
        langs = [[("en", "de", "fr", "ru")[k] for k in range(len(group))] for group in texts]
        return batch(len(groups), "", texts=texts, langs=langs, **columns)

    return make


@pytest.fixture
def hard_columns():
    return lambda *texts: {"c_text": list(texts), "c_lang": [text and "es" for text in texts]}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"rescale": "none"}, 0.6288629421),
        ({}, 0.6776362665),
        ({"rescale": "row"}, 0.9937188424),
        ({"rescale": "none", "denominator": "positives_only"}, 0.6073340669),
    ],
)
def test_golden(term, grouped, typed, options, expected):
    loss = term("multi_positive_infonce", **options).loss(typed({"group": GROUPS}), grouped(3, 3, 3), {}).total
    assert float(loss) == typed.near(expected)


def test_golden_hard_negatives(term, grouped, hard_columns, typed):
    rows = grouped(3, 3, 3, **hard_columns("x", "y", "z"))
    objective = term("multi_positive_infonce", rescale="none")
    assert float(objective.loss(typed({"group": GROUPS, "c": HARD}), rows, {}).total) == typed.near(1.2865867534)


def test_golden_single(term, batch, typed):
    objective = term("multi_positive_infonce", rescale="none", denominator="positives_only")
    vectors = typed({"a": GROUPS[[0, 3, 6]], "b": GROUPS[[1, 4, 7]]})
    assert list(objective.inputs(batch(3), torch.Generator())) == ["a", "b"]
    assert float(objective.loss(vectors, batch(3), {}).total) == typed.near(0.3832428139)
    assert float(term("infonce").loss(vectors, batch(3), {}).total) == typed.near(0.3832428139)


def test_golden_rescaled_scores(term, typed):
    objective = term("multi_positive_infonce")
    groups = GROUPS.to(typed.dtype)
    similarities = cosines(groups[[0, 3, 6]], groups)
    keep = torch.ones(3, 9, dtype=torch.bool)
    keep[0, 0] = keep[1, 3] = keep[2, 6] = False
    wanted = [19.2888888889, 19.5213675214, 10.2222222222, 16.8091168091, 17.9259259259, 15.2592592593, 20, 2.1629629630]
    assert objective._scores(similarities, keep)[0, 1:].tolist() == pytest.approx(
        wanted, abs=1e-8 if typed.dtype is torch.float64 else 2e-5
    )


def test_golden_gradient_of_the_scaled_scores(typed):
    from crosslign.objectives.contract import kept_logsumexp

    groups = GROUPS.to(typed.dtype)
    scores = (cosines(groups[:1], groups[1:]) / 0.05).detach().requires_grad_()
    own = torch.arange(8).unsqueeze(0) < 2
    (kept_logsumexp(scores, torch.ones_like(own)) - kept_logsumexp(scores, own)).sum().backward()
    wanted = [-0.2308400978, -0.2776442557, 0.0001665907, 0.0311418886, 0.0755981370, 0.0090955436, 0.3924819168, 0.0000002768]
    assert scores.grad[0].tolist() == pytest.approx(wanted, abs=1e-9 if typed.tolerance < 1e-6 else 1e-5)
    assert float(scores.grad.sum()) == pytest.approx(0, abs=1e-12 if typed.tolerance < 1e-6 else 1e-6)


@pytest.mark.parametrize("rescale", ["global", "row", "none"])
@pytest.mark.parametrize("variant", ["all", "positives_only", "all_anchors", "hard", "own hard", "masked", "bounds"])
def test_agrees_with_the_slow_twin(term, grouped, hard_columns, agree, random_vectors, rescale, variant):
    groups, first = [0, 0, 0, 1, 1, 2, 2, 2, 2], {0, 3, 5}
    options, columns, made = {}, {}, random_vectors(group=9)
    texts = (3, 2, 4)
    left_out = lambda i, j: False  # noqa: E731
    if variant == "positives_only":
        options, left_out = {"denominator": "positives_only"}, lambda i, j: j in first
    if variant == "all_anchors":
        options = {"all_anchors": True}
    if variant == "own hard":  # candidates 9 and 10 are the hard negatives of groups 0 and 2
        options, left_out = {"hard_negatives": "own"}, lambda i, j: (i, j) in {(0, 10), (3, 9), (3, 10), (5, 9)}
    if variant == "bounds":
        options = {"rescale_gradient": True}
    if "hard" in variant or variant == "masked":
        made |= random_vectors(seed=1, c=2)
        columns = hard_columns("x", None, "p")
    if variant == "masked":  # groups 0 and 1 share a string, and the second hard negative is a member of group 2
        texts, same = (["a", "b", "c"], ["c", "d"], ["p", "q", "r", "s"]), {0: {3, 4}, 3: {0, 1, 2}, 5: {10}}
        left_out = lambda i, j: j in same[i]  # noqa: E731
    rows, objective = grouped(*texts, **columns), term("multi_positive_infonce", temperature=0.3, rescale=rescale, **options)

    def slow(v):
        anchors = range(9) if variant == "all_anchors" else sorted(first)
        hard = list(v["c"]) if "c" in v else []
        return slow_losses.mean(slow_losses.mpcl(v["group"], groups, anchors, hard, 0.3, rescale, left_out, variant == "bounds"))

    agree(lambda v: objective.loss(v, rows, {}).total, slow, made)


def test_pairs_that_share_a_sentence_are_one_meaning(term, batch, agree, random_vectors):
    """The second of pair 0 is the first of pair 2: neither pair is a negative for the other."""
    rows = batch(3, a_text=["a", "b", "same"], b_text=["same", "d", "e"])
    objective = term("multi_positive_infonce", temperature=0.3, rescale="none")

    def slow(v):
        members = [v[side][i] for i in range(3) for side in "ab"]
        apart = lambda i, j: {i // 2, j // 2} == {0, 2}  # noqa: E731
        return slow_losses.mean(slow_losses.mpcl(members, [0, 0, 1, 1, 2, 2], [0, 2, 4], temperature=0.3, left_out=apart))

    agree(lambda v: objective.loss(v, rows, {}).total, slow, random_vectors(a=3, b=3))


def test_one_group_alone_is_zero(term, grouped):
    vectors = {"group": GROUPS[:3].clone().requires_grad_()}
    for rescale in ("global", "row", "none"):
        loss = term("multi_positive_infonce", rescale=rescale).loss(vectors, grouped(3), {}).total
        loss.backward()
        assert float(loss.detach()) == 0
        assert not vectors["group"].grad.any()


def test_one_pair_alone_is_zero_though_its_scores_have_no_range(term, batch):
    vectors = {"a": GROUPS[:1].clone().requires_grad_(), "b": GROUPS[1:2]}
    loss = term("multi_positive_infonce", denominator="positives_only").loss(vectors, batch(1), {}).total
    loss.backward()
    assert float(loss.detach()) == 0
    assert torch.isfinite(vectors["a"].grad).all()


def test_the_anchor_is_drawn_and_comes_first(term, grouped, hard_columns):
    objective, rows = term("multi_positive_infonce"), grouped(4, 3, **hard_columns(None, "c1"))
    draw, anchors = torch.Generator().manual_seed(0), {}
    for _ in range(400):
        inputs = objective.inputs(rows, draw)
        texts, langs = list(inputs["group"].texts), list(inputs["group"].langs)
        anchors[texts[0], langs[0]] = anchors.get((texts[0], langs[0]), 0) + 1
        assert set(texts[:4]) == set(rows.columns["texts"][0])
        assert set(texts[4:]) == set(rows.columns["texts"][1])
    assert list(inputs["c"].texts) == ["c1"]
    assert {lang for _, lang in anchors} == {"en", "de", "fr", "ru"}
    assert all(60 < count < 140 for count in anchors.values())  # 400 draws at p = 1/4: 100 ± 4.6 standard deviations


def test_does_not_depend_on_the_order_of_groups_and_of_positives(term, grouped):
    objective = term("multi_positive_infonce")
    first = objective.loss({"group": GROUPS}, grouped(3, 3, 3), {}).total
    moved = GROUPS[[6, 8, 7, 0, 1, 2, 3, 5, 4]]
    assert torch.allclose(first, objective.loss({"group": moved}, grouped(3, 3, 3), {}).total, atol=1e-12)


def test_groups_that_do_not_fit(term, grouped):
    with pytest.raises(InputError, match=r"row .*: .*group"):
        term("multi_positive_infonce").loss({"group": GROUPS[:3]}, grouped(2, 1), {})
    with pytest.raises(InputError, match=r"here.*'positives_only'; .*'all'"):
        check_call("objectives", "multi_positive_infonce", {"all_anchors": True, "denominator": "positives_only"}, "here")


def test_gradients_through_the_bounds_are_others_and_the_value_is_the_same(term, grouped, random_vectors):
    found = {}
    for passes in (False, True):
        made = random_vectors(group=9)
        made["group"].requires_grad_()
        loss = term("multi_positive_infonce", temperature=0.3, rescale_gradient=passes).loss(made, grouped(3, 2, 4), {}).total
        loss.backward()
        found[passes] = float(loss.detach()), made["group"].grad
    assert found[False][0] == found[True][0]
    assert not torch.allclose(found[False][1], found[True][1], atol=1e-3)
