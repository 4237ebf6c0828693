"""Classification in its three forms, its heads, cosine regression, and the dual encoder."""

from __future__ import annotations

import pytest
import slow_losses
import torch

from crosslign.errors import InputError


@pytest.fixture
def head(part):
    return lambda **options: part("classification", dimension=5, seed=3, **({"dropout": 0.0} | options)).double()


@pytest.fixture
def labelled(batch):
    def make(labels, columns="a", **given):
        count = len(labels)
        empty = {} if "b" in columns else {"b_text": [None] * count, "b_lang": [None] * count}
        return batch(count, columns, label=labels, **(empty | given))

    return make


def logits_of(part, features):
    """RoBERTa's head without dropout, by its weights."""
    first, last = part.layers[1], part.layers[4]
    return torch.tanh(features @ first.weight.T + first.bias) @ last.weight.T + last.bias


def minus_log_softmax(row, k):
    return -torch.log(slow_losses.softmax(list(row))[k])


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_single_label_agrees_with_the_slow_twin(term, labelled, head, agree, random_vectors, smoothing):
    part, classes = head(labels=3), [2, 0, 1, 1]
    rows = labelled([[float(c)] for c in classes], supervised=[True, False, None, True])
    objective = term("cross_entropy", part="head", label_smoothing=smoothing)

    def slow(v):
        losses = []
        for i in (0, 2, 3):
            row = logits_of(part, v["row"][i : i + 1])[0]
            own = minus_log_softmax(row, classes[i])
            losses.append((1 - smoothing) * own + smoothing * slow_losses.mean(minus_log_softmax(row, k) for k in range(3)))
        return slow_losses.mean(losses)

    agree(lambda v: objective.loss(v, rows, {"head": part}).total, slow, random_vectors(row=4), single=False)


@pytest.mark.parametrize("normalise", [True, False])
def test_pairs_of_vectors_are_u_v_and_their_distance(term, labelled, head, agree, random_vectors, normalise):
    part, classes = head(labels=3, head="mlp", features="concat", hidden=7, normalise=normalise), [2, 0, 1]
    rows = labelled([[float(c)] for c in classes], "ab")
    objective = term("cross_entropy", part="head", encode="sentences")
    assert list(objective.inputs(rows, torch.Generator())) == ["a", "b"]
    assert [tuple(p.shape) for p in part.parameters()] == [(7, 15), (7,), (3, 7), (3,)]

    def slow(v):
        losses = []
        for i, c in enumerate(classes):
            u, w = (v[name][i] / (v[name][i].square().sum().sqrt() if normalise else 1.0) for name in ("a", "b"))
            hidden = torch.cat([u, w, (u - w).abs()]) @ part.layers[0].weight.T + part.layers[0].bias
            losses.append(minus_log_softmax(hidden.clamp(min=0) @ part.layers[3].weight.T + part.layers[3].bias, c))
        return slow_losses.mean(losses)

    agree(lambda v: objective.loss(v, rows, {"head": part}).total, slow, random_vectors(a=3, b=3), single=False)


def test_multiple_choice_agrees_with_the_slow_twin(term, labelled, head, agree, random_vectors):
    part = head(labels=1)
    right, groups = [0, 1, 1, 0, 0, 0], ["p", "p", "q", "q", "r", "q"]  # of r the right choice is missing
    rows = labelled([[float(c)] for c in right], "ab", group=groups)
    objective = term("cross_entropy", part="head", form="multiple_choice")
    assert list(objective.inputs(rows, torch.Generator())["row"].pair_texts) == [f"b{i}" for i in range(6)]

    def slow(v):
        score = logits_of(part, v["row"])[:, 0]
        return (minus_log_softmax(score[[0, 1]], 1) + minus_log_softmax(score[[2, 3, 5]], 0)) / 2

    made = random_vectors(row=6)
    agree(lambda v: objective.loss(v, rows, {"head": part}).total, slow, made, single=False)
    score = logits_of(part, made["row"])[:, 0]
    correct = [bool(score[1] > score[0]), bool(score[2] > max(score[3], score[5]))]
    assert objective.loss(made, rows, {"head": part}).logged == {"accuracy": sum(correct) / 2, "constant": 0.0}


def test_several_labels_agree_with_the_slow_twin(term, labelled, head, agree, random_vectors):
    part, classes = head(labels=3, head="linear"), [[0.0, 2.0], [], [1.0]]
    objective, rows = term("cross_entropy", part="head", form="multi_label"), labelled(classes)

    def slow(v):
        losses = []
        for row, wanted in zip(v["row"], classes, strict=True):
            for k in range(3):
                p = 1 / (1 + torch.exp(-(row @ part.layers[1].weight[k] + part.layers[1].bias[k])))
                losses.append(-torch.log(p if float(k) in wanted else 1 - p))
        return slow_losses.mean(losses)

    agree(lambda v: objective.loss(v, rows, {"head": part}).total, slow, random_vectors(row=3), single=False)


def test_logs_tell_constant_predictions(term, labelled, head):
    part = head(labels=2, head="linear")
    with torch.no_grad():
        part.layers[1].weight.zero_()
        part.layers[1].bias.copy_(torch.tensor([1.0, 0.0]))
    loss = term("cross_entropy", part="head").loss(
        {"row": torch.ones(4, 5)}, labelled([[0.0], [0.0], [0.0], [1.0]]), {"head": part.float()}
    )
    assert loss.logged == {"accuracy": 0.75, "largest_class": 1.0, "constant": 1.0}
    alike = term("cross_entropy", part="head").loss({"row": torch.ones(2, 5)}, labelled([[0.0], [0.0]]), {"head": part.float()})
    assert alike.logged["constant"] == 0.0  # one prediction for rows of one label says nothing


def test_logs_tell_equal_scores_of_all_choices_and_the_share_of_right_labels(term, labelled, head):
    part = head(labels=1, head="linear")
    rows = labelled([[0.0], [1.0]], group=["p", "p"])
    choice = term("cross_entropy", part="head", form="multiple_choice")
    assert choice.loss({"row": torch.ones(2, 5).double()}, rows, {"head": part}).logged["constant"] == 1.0
    part = head(labels=2, head="linear")
    with torch.no_grad():
        part.layers[1].weight.zero_()
        part.layers[1].bias.copy_(torch.tensor([1.0, -1.0]))  # class 0 for every row, class 1 for none
    several = term("cross_entropy", part="head", form="multi_label")
    logged = several.loss({"row": torch.ones(4, 5).double()}, labelled([[0.0], [0.0], [0.0, 1.0], [1.0]]), {"head": part}).logged
    assert (logged["accuracy"], logged["constant"]) == (5 / 8, 1.0)


HEADS = {
    "roberta": ["Dropout", "Linear", "Tanh", "Dropout", "Linear"],
    "mlp": ["Linear", "ReLU", "Dropout", "Linear"],
    "linear": ["Dropout", "Linear"],
}


@pytest.mark.parametrize("kind", HEADS)
def test_heads_drop_out_where_they_are_said_to(part, kind):
    """RoBERTa's before both of its layers, MoCo-BERT's on the hidden units alone."""
    layers = part("classification", dimension=8, labels=2, head=kind, dropout=0.3).layers
    assert [type(layer).__name__ for layer in layers] == HEADS[kind]
    assert {layer.p for layer in layers if hasattr(layer, "p")} == {0.3}


def test_rows_without_supervision_give_nothing(term, labelled, head):
    vectors = {"row": torch.ones(2, 5, requires_grad=True)}
    rows = labelled([[0.0], [1.0]], supervised=[False, False])
    total = term("cross_entropy", part="head").loss(vectors, rows, {"head": head(labels=2).float()}).total
    total.backward()
    assert float(total.detach()) == 0
    assert not vectors["row"].grad.any()


def test_heads_start_from_the_seed_and_drop_out_in_training(part):
    first, second, other = (part("classification", dimension=8, seed=seed, labels=2) for seed in (1, 1, 2))
    assert torch.equal(first.layers[1].weight, second.layers[1].weight)
    assert not torch.equal(first.layers[1].weight, other.layers[1].weight)
    for head in ("roberta", "mlp", "linear"):
        layers = [layer for layer in part("classification", dimension=64, labels=20, head=head).layers if hasattr(layer, "weight")]
        assert all(float(layer.weight.detach().std()) == pytest.approx(0.02, rel=0.1) for layer in layers), head
        assert not any(layer.bias.any() for layer in layers)
    vectors = torch.ones(64, 8)
    assert not torch.equal(first.train()(vectors), first(vectors))
    assert torch.equal(first.eval()(vectors), second.eval()(vectors))
    assert first(vectors.bfloat16()).dtype == torch.float32


@pytest.mark.parametrize("normalise", [True, False])
def test_features_of_half_precision_are_those_of_float32(part, random_vectors, normalise):
    a, b = (vectors.bfloat16() for vectors in random_vectors(a=4, b=4).values())
    made = part("classification", dimension=5, labels=2, features="concat", normalise=normalise)
    assert torch.equal(made.combine(a, b), made.combine(a.float(), b.float()))


@pytest.mark.parametrize(
    ("options", "kind", "columns", "message"),
    [
        ({}, {"labels": 2}, {"label": [[0.0], [2.0]]}, r"cross_entropy: .*class 2; .* 2 "),
        ({}, {"labels": 2}, {"label": [[0.0], [0.0, 1.0]]}, r"row .*class.*\[0\.0, 1\.0\]"),
        ({}, {"labels": 2}, {"label": [[0.0], [0.5]]}, r"row .*class.*\[0\.5\]"),
        ({"form": "multi_label"}, {"labels": 2}, {"label": [[0.0], [5.0]]}, r"cross_entropy: .*class 5\.0; .* 2 "),
        ({"form": "multi_label"}, {"labels": 2}, {"label": [[0.0], [0.5]]}, r"cross_entropy: .*class 0\.5; .* 2 "),
        ({"form": "multiple_choice"}, {"labels": 2}, {"group": ["p", "p"]}, r"cross_entropy: .*label; .* 2\b"),
        ({"form": "multiple_choice"}, {"labels": 1}, {"group": ["p", None]}, r"cross_entropy: .*`group`"),
        ({}, {"labels": 2, "features": "concat"}, {}, "features: concat"),
        ({"part": "other"}, {"labels": 2}, {}, "unknown part"),
    ],
)
def test_rows_and_parts_that_do_not_fit(term, labelled, head, options, kind, columns, message):
    rows = labelled([[0.0], [1.0]], **columns) if "label" not in columns else labelled(columns["label"])
    with pytest.raises(InputError, match=message):
        term("cross_entropy", **({"part": "head"} | options)).loss({"row": torch.ones(2, 5).double()}, rows, {"head": head(**kind)})


def test_cosine_regression_agrees_with_the_slow_twin(term, labelled, agree, random_vectors):
    rows = labelled([[0.0], [2.5], [5.0], [1.0]], "ab", supervised=[True, True, True, False])
    objective = term("cosine_regression", low=0.0, high=5.0)
    wanted = [0.0, 0.5, 1.0]

    def slow(v):
        return slow_losses.mean((slow_losses.cosine(v["a"][i], v["b"][i]) - wanted[i]) ** 2 for i in range(3))

    agree(lambda v: objective.loss(v, rows, {}).total, slow, random_vectors(a=4, b=4))
    with pytest.raises(InputError, match=r"cosine_regression: low .*high; low: 1\.0, high: 1\.0"):
        term("cosine_regression", low=1.0, high=1.0)
    with pytest.raises(InputError, match=r"row .*score.*\[\]"):
        objective.loss(random_vectors(a=1, b=1), labelled([[]], "ab"), {})


@pytest.mark.parametrize("masked", [False, True])
def test_dual_encoder_agrees_with_the_slow_twin(term, batch, part, agree, random_vectors, masked):
    scale, rows = part("logit_scale", initial=4.0).double(), batch(4, a_text=["p", "q", "r", "q"], b_text=["x", "y", "x", "z"])
    objective = term("dual_encoder", scale="scale", mask_same_text=masked)
    left_out = {(0, 2), (2, 0), (1, 3), (3, 1)} if masked else set()  # equal answers, equal questions

    def slow(v):
        return slow_losses.mean(slow_losses.info_nce(v["a"], v["b"], 0.25, left_out=left_out))

    made = random_vectors(a=4, b=4)
    agree(lambda v: objective.loss(v, rows, {"scale": scale}).total, slow, made, single=False)
    scale.zero_grad()
    objective.loss(made, rows, {"scale": scale}).total.backward()
    ends = [slow_losses.mean(slow_losses.info_nce(made["a"], made["b"], 1 / g, left_out=left_out)) for g in (4 + 1e-5, 4 - 1e-5)]
    assert float(scale.scale.grad) == pytest.approx(float(ends[0] - ends[1]) / 2e-5, rel=1e-3)
    assert part("logit_scale").scale.item() == 100
    assert part("logit_scale", initial=100).scale.requires_grad  # a whole number, as YAML gives it
