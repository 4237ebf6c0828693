"""InfoNCE: numbers worked out by hand, a slow twin, dropout pairs, triplets, masks, and the train-only projection."""

from __future__ import annotations

import pytest
import slow_losses
import torch

from crosslign.errors import InputError

Z1 = torch.tensor([[3, 4], [1, 0], [0, 2]], dtype=torch.float64)
Z2 = torch.tensor([[4, 3], [12, 5], [5, 12]], dtype=torch.float64)
Z3 = torch.tensor([[0, 1], [3, 4], [8, 15]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("options", "vectors", "expected"),
    [
        ({}, {"a": Z1, "b": Z2}, 0.3115343978),
        ({}, {"a": Z1, "b": Z2, "c": Z3}, 1.2523732806),
        ({"hard_negative_weight": 1}, {"a": Z1, "b": Z2, "c": Z3}, 1.2955076553),
        ({}, {"a": Z2, "b": Z1}, 0.5181838419),
        ({"temperature": 1}, {"a": Z1, "b": Z2}, 0.9365262396),
    ],
)
def test_golden(term, batch, options, vectors, expected):
    rows = batch(3, "abc" if "c" in vectors else "ab")
    assert float(term("infonce", **options).loss(vectors, rows, {}).total) == pytest.approx(expected, abs=1e-9)
    single = {name: v.float() for name, v in vectors.items()}
    assert float(term("infonce", **options).loss(single, rows, {}).total) == pytest.approx(expected, abs=1e-4)


def test_golden_gradient_of_the_cosines(term, batch, typed, monkeypatch):
    """Of the first anchor's loss, which is a third of the mean, through the objective itself."""
    from crosslign.objectives.terms import infonce

    seen = []

    def watched(left, right):
        seen.append(cosines(left, right).detach().requires_grad_())
        return seen[-1]

    cosines = infonce.cosines
    monkeypatch.setattr(infonce, "cosines", watched)
    term("infonce").loss(typed({"a": Z1, "b": Z2}), batch(3), {}).total.backward()
    softmax = (seen[0].detach()[0] / 0.05).softmax(0)
    assert softmax.tolist() == pytest.approx([0.4269271629, 0.0595837360, 0.5134891012], abs=typed.tolerance)
    gradient = (3 * seen[0].grad[0]).tolist()
    assert gradient == pytest.approx([-11.4614567428, 1.1916747197, 10.2697820231], abs=1e-7 if typed.tolerance < 1e-6 else 1e-3)


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_agrees_with_the_slow_twin(term, batch, agree, random_vectors, temperature):
    rows = batch(4, "abc", c_text=["c0", None, "c2", None])
    vectors = random_vectors(a=4, b=4, c=2)
    objective = term("infonce", temperature=temperature, hard_negative_weight=0.7)
    assert list(objective.inputs(rows, torch.Generator())["c"].texts) == ["c0", "c2"]

    def slow(v):
        return slow_losses.mean(slow_losses.info_nce(v["a"], v["b"], temperature, v["c"], [0, 2], 0.7))

    agree(lambda v: objective.loss(v, rows, {}).total, slow, vectors)


def test_masks_what_is_no_negative(term, batch, agree, random_vectors):
    rows = batch(4, "abc", a_text=["x", "x", "y", "z"], b_text=["p", "q", "r", "p"], c_text=["y", "c1", "r", "x"])
    left_out = {
        (0, 1), (1, 0),  # equal anchors: each other's positives
        (0, 3), (3, 0),  # equal positives
        (2, 4), (2, 6),  # a hard negative equal to the anchor, and one equal to the positive, of row 2
        (0, 7), (1, 7),
    }  # fmt: skip
    vectors, objective = random_vectors(a=4, b=4, c=4), term("infonce", mask_same_text=True)

    def slow(v):
        return slow_losses.mean(slow_losses.info_nce(v["a"], v["b"], 0.05, v["c"], range(4), 0.0, left_out))

    masked = agree(lambda v: objective.loss(v, rows, {}).total, slow, vectors)
    assert masked < term("infonce").loss(vectors, rows, {}).total


def test_a_positive_that_is_another_rows_anchor_is_no_negative_for_it(term, batch, agree, random_vectors):
    rows = batch(3, a_text=["x", "y", "z"], b_text=["p", "x", "q"])
    objective = term("infonce", temperature=1.0, mask_same_text=True)

    def slow(v):
        return slow_losses.mean(slow_losses.info_nce(v["a"], v["b"], 1.0, left_out={(0, 1)}))

    agree(lambda v: objective.loss(v, rows, {}).total, slow, random_vectors(a=3, b=3))


def test_over_views_masks_rows_of_equal_text_among_those_that_have_the_view(term, batch, agree, random_vectors):
    views = [[{"kind": "full", "lang": "de", "a_text": f"v{i}", "b_text": None}] * (1 + (i != 1)) for i in range(4)]
    texts = ["x", "y", "x", "y"]  # rows 0, 2 and 3 have a second view
    rows = batch(4, "a", a_text=texts, b_text=[None] * 4, b_lang=[None] * 4, label=[[0.0]] * 4, views=views)
    objective = term("infonce", temperature=1.0, mask_same_text=True)

    def slow(v):
        first = slow_losses.info_nce(v["row"], v["view_0"], 1.0, left_out={(0, 2), (2, 0), (1, 3), (3, 1)})
        second = slow_losses.info_nce(v["row"][[0, 2, 3]], v["view_1"], 1.0, left_out={(0, 1), (1, 0)})
        return (slow_losses.mean(first) + slow_losses.mean(second)) / 2

    agree(lambda v: objective.loss(v, rows, {}).total, slow, random_vectors(row=4, view_0=4, view_1=3))


def test_dropout_pairs_are_the_same_sentence_twice(term, batch):
    rows = batch(3, "ab", b_text=["b0", None, None], b_lang=["de", None, None])
    inputs = term("infonce").inputs(rows, torch.Generator())
    assert list(inputs) == ["a", "b"]
    assert list(inputs["b"].texts) == ["b0", "a1", "a2"]
    assert list(inputs["b"].langs) == ["de", "en", "en"]
    monolingual = term("infonce").inputs(batch(2, "a"), torch.Generator())
    assert list(monolingual["b"].texts) == ["a0", "a1"]


def test_does_not_depend_on_the_order_of_the_batch(term, batch, random_vectors):
    vectors, objective = random_vectors(a=6, b=6, c=6), term("infonce", mask_same_text=True)
    order = torch.randperm(6, generator=torch.Generator().manual_seed(3))
    texts = {"a_text": list("uvwxyu"), "b_text": list("pqrstp"), "c_text": list("ijklmn")}
    rows = batch(6, "abc", **texts)
    shuffled = batch(6, "abc", **{name: [column[i] for i in order] for name, column in texts.items()})
    moved = {name: v[order] for name, v in vectors.items()}
    assert torch.allclose(objective.loss(vectors, rows, {}).total, objective.loss(moved, shuffled, {}).total, atol=1e-12)


@pytest.mark.parametrize("over_views", ["mean", "sum"])
def test_over_views_is_the_mean_or_the_sum_over_the_views(term, batch, agree, random_vectors, over_views):
    views = [[{"kind": "full", "lang": "de", "a_text": f"v{i}", "b_text": None}] * (1 + (i != 1)) for i in range(3)]
    rows = batch(3, "a", b_text=[None] * 3, b_lang=[None] * 3, label=[[0.0]] * 3, views=views)
    objective = term("infonce", temperature=1.0, over_views=over_views)
    inputs = objective.inputs(rows, torch.Generator())
    assert {name: len(item.texts) for name, item in inputs.items()} == {"row": 3, "view_0": 3, "view_1": 2}

    def slow(v):
        second = torch.stack([v["row"][0], v["row"][2]])
        losses = [slow_losses.info_nce(v["row"], v["view_0"], 1.0), slow_losses.info_nce(second, v["view_1"], 1.0)]
        return sum(slow_losses.mean(view) for view in losses) / (2 if over_views == "mean" else 1)

    agree(lambda v: objective.loss(v, rows, {}).total, slow, random_vectors(row=3, view_0=3, view_1=2))


def test_projection_is_tanh_of_a_dense_layer(term, batch, part, random_vectors):
    mlp, vectors = part("mlp_train_only", dimension=5, seed=4), {k: v.float() for k, v in random_vectors(a=3, b=3).items()}
    projected = {name: torch.tanh(v @ mlp.dense.weight.T + mlp.dense.bias) for name, v in vectors.items()}
    expected = term("infonce").loss(projected, batch(3), {}).total
    assert torch.equal(term("infonce", projection="mlp").loss(vectors, batch(3), {"mlp": mlp}).total, expected)
    again = part("mlp_train_only", dimension=5, seed=4)
    assert torch.equal(again.dense.weight, mlp.dense.weight)
    assert mlp.dense.weight.std().item() == pytest.approx(0.02, rel=0.5)
    assert not mlp.dense.bias.any()


def test_a_missing_projection_is_an_error(term, batch, part, random_vectors):
    vectors = random_vectors(a=2, b=2)
    with pytest.raises(InputError, match=r"'mlpp'.*'mlp'"):
        term("infonce", projection="mlpp").loss(vectors, batch(2), {"mlp": part("mlp_train_only")})
