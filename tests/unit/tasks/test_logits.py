"""Classification, multiple choice and several labels from logits, beside scikit-learn and hand counts."""

from __future__ import annotations

import numpy as np
import pytest
from resampled import draws_of
from sklearn.metrics import f1_score

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.errors import InputError
from crosslign.tasks.measures import Bootstrap
from crosslign.tasks.score import score, score_with_resamples
from crosslign.tasks.scorers.classification import class_counts, macro_f1
from crosslign.tasks.scorers.multi_label import item_outcomes
from crosslign.tasks.scorers.multiple_choice import judge_choices

XNLI = {
    "scorer": "classification",
    "texts": {"test": "demo"},
    "output": "logits",
    "main": {"metric": "accuracy", "subset": "avg"},
    "averages": {"avg": ["de", "en"]},
    "resamples": 200,
}


def pairs(labels, seconds=None):
    """A set of pairs: {subset: class numbers}."""
    builder = EvaluationBuilder("demo")
    for subset, numbers in labels.items():
        for at, number in enumerate(numbers):
            second = seconds[subset][at] if seconds else "because"
            builder.item(str(at), subset, "pair", subset, f"{subset} {at}", pair_text=second, label=[number])
    return builder.build()


def by(records, **wanted):
    (found,) = [r for r in records if all(getattr(r, key) == value for key, value in wanted.items())]
    return found


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_accuracy_of_each_language_and_their_plain_mean(dtype):
    sets = pairs({"de": [0, 1, 2, 0], "en": [2, 1]})
    logits = np.array([[3, 1, 2], [0, 5, 5], [2, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=dtype)  # ties: the lowest class wins
    records = score("xnli", XNLI, {"test": logits}, {"test": sets})
    assert by(records, subset="de").value == 0.75
    assert by(records, subset="en").value == 0.5
    assert by(records, subset="avg").value == 0.625
    assert by(records, subset="avg").main
    assert {r.status for r in records} == {"ok"}


def test_one_prediction_for_all_items_is_a_collapse():
    sets = pairs({"de": [0, 1, 2], "en": [0, 1, 2]})
    logits = np.array([[9, 0, 0]] * 3 + [[1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32)
    records = score("xnli", XNLI, {"test": logits}, {"test": sets})
    assert (by(records, subset="de").status, by(records, subset="de").value) == ("collapsed", pytest.approx(1 / 3))
    assert by(records, subset="en").status == "ok"
    assert by(records, subset="avg").reason == "1 of 2 subsets, in de class 0 for every item"


def test_placeholder_rows_stay_in_the_main_score_and_leave_the_clean_one():
    seconds = {"de": ["x", "NS", "y", "NS"], "en": ["x", "y", "z", "w"]}
    sets = pairs({"de": [1, 0, 0, 1], "en": [1, 0, 0, 1]}, seconds)
    logits = np.array([[0, 1], [0, 1], [1, 0], [1, 0]] * 2, dtype=np.float32)
    records = score("pawsx", {**XNLI, "placeholder": "NS"}, {"test": logits}, {"test": sets})
    clean, whole = by(records, subset="de", protocol="clean"), by(records, subset="de", protocol="")
    assert (clean.value, clean.n_items, whole.value, whole.n_items) == (1.0, 2, 0.5, 4)


def test_a_placeholder_may_stand_on_the_first_side():
    builder = EvaluationBuilder("demo")
    for at, (first, second) in enumerate((("x", "y"), (" NS ", "y"), ("x", "NS and more"))):
        builder.item(str(at), "de", "pair", "de", first, pair_text=second, label=[at % 2])
    evaluation = builder.build()
    assert evaluation.texts["text"].to_pylist() == ["x", " NS ", "x"]
    records = score(
        "pawsx",
        {**XNLI, "averages": {}, "main": {"metric": "accuracy", "subset": "de"}, "placeholder": "NS"},
        {"test": np.eye(3)},
        {"test": evaluation},
    )
    assert by(records, protocol="clean").n_items == 2


def test_macro_f1_is_that_of_scikit_learn_and_mae_counts_stars():
    rng = np.random.default_rng(1)
    gold, logits = rng.integers(0, 5, 60), rng.normal(size=(60, 5))
    task = {**XNLI, "metrics": ["macro_f1", "mae"], "main": {"metric": "mae", "subset": "de"}, "averages": {}}
    records = score("multiarc", task, {"test": logits}, {"test": pairs({"de": gold.tolist()})})
    predicted = logits.argmax(1)
    assert by(records, metric="macro_f1").value == pytest.approx(f1_score(gold, predicted, average="macro"))
    assert by(records, metric="mae").value == pytest.approx(np.abs(gold - predicted).mean())
    assert by(records, metric="macro_f1").ci_low < by(records, metric="macro_f1").value < by(records, metric="macro_f1").ci_high
    counts = class_counts(np.array([0, 0, 1]), np.array([0, 1, 1]))
    assert macro_f1(counts.sum(0)) == pytest.approx(2 / 3)
    # A resample without the class 1: of what is left the class 0 is all right, and the class 1 does not count as an F1 of 0.
    assert macro_f1(np.stack([counts.sum(0), counts[[0, 0, 0]].sum(0)])) == pytest.approx([2 / 3, 1.0])


@pytest.mark.parametrize(
    ("labels", "logits", "message"),
    [
        ([0, 3], [[1, 0, 0], [0, 1, 0]], r"subset 'de': .*class 3; .* 3 "),
        ([0, -1], [[1, 0, 0], [0, 1, 0]], r"subset 'de': .*class -1; .* 3 "),
        ([0, 1.5], [[1, 0, 0], [0, 1, 0]], r"subset 'de': item '1' .*1\.5; "),
        ([0, np.nan], [[1, 0, 0], [0, 1, 0]], r"subset 'de': item '1' .*nan; "),
        ([0, 1], [[1, 0, 0], [np.nan, 1, 0]], r"subset 'de': .*logit .*'1' .*NaN.*1 "),
    ],
)
def test_wrong_labels_and_logits_are_named(labels, logits, message):
    with pytest.raises(InputError, match=message):
        score("xnli", XNLI, {"test": np.array(logits)}, {"test": pairs({"de": labels})})


def choices(questions, contexts=None):
    """A multiple-choice set from [[label of each choice] of each question]."""
    builder = EvaluationBuilder("demo")
    for question, labels in enumerate(questions):
        for at, label in enumerate(labels):
            builder.item(
                f"{question}:{at}",
                "it",
                "choice",
                "it",
                f"premise {question}",
                pair_text=f"choice {at}",
                label=[label],
                group=str(question),
                cluster=contexts[question] if contexts else None,
            )
    return builder.build()


COPA = {"scorer": "multiple_choice", "texts": {"test": "demo"}, "output": "logits", "main": {"metric": "accuracy", "subset": "it"}}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_highest_logit_of_a_question_answers_it(dtype):
    sets = choices([[1, 0], [0, 1], [0, 1, 0], [1, 0]])
    logits = np.array([2, 1, 5, 4, -1, -0.5, -3, 7, 7], dtype=dtype)[:, None]  # right, wrong, right, tie: the first wins
    (record,) = score("xcopa", COPA, {"test": logits}, {"test": sets})
    assert (record.value, record.n_items, record.status) == (0.75, 4, "ok")
    assert score("xcopa", COPA, {"test": logits + 9}, {"test": sets}) == [record]  # logits of one sign are no vectors that are alike
    (flat,) = score("xcopa", COPA, {"test": np.ones((9, 1))}, {"test": sets})
    assert (flat.status, flat.value) == ("collapsed", 0.5)


def test_questions_of_one_context_are_drawn_together():
    logits = np.array([1.0, 0] * 3 + [0, 1.0] * 3)[:, None]  # those of the first context are answered rightly, of the second none
    ((record, values),) = score_with_resamples("siqa", COPA, {"test": logits}, {"test": choices([[1, 0]] * 6, "aaabbb")})
    assert (record.value, set(values.tolist())) == (0.5, {0.0, 0.5, 1.0})


def test_questions_without_one_right_choice_are_named():
    for labels, message in (([[1, 0], [0, 0]], r"subset 'it': question 2 .* 2 .* 0 "), ([[1]], r"subset 'it': question 1 .* 1 .* 1 ")):
        sets = choices(labels)
        with pytest.raises(InputError, match=message):
            score("xcopa", COPA, {"test": np.zeros((sets.items.num_rows, 1))}, {"test": sets})
    with pytest.raises(InputError, match=r"task 'xcopa', subset 'it': .*logit.* 2 "):
        score("xcopa", COPA, {"test": np.zeros((2, 2))}, {"test": choices([[1, 0]])})


def test_choices_need_not_stand_together():
    right, spread = judge_choices(np.array([0, 1, 0, 1]), np.array([1.0, 2, 3, 2]), np.array([False, True, True, False]), "")
    assert (right.tolist(), spread.tolist()) == ([True, True], [True, False])


EURLEX = {"scorer": "multi_label", "texts": {"test": "demo"}, "output": "logits", "main": {"metric": "top1_in_gold", "subset": "de"}}


def documents(labels):
    builder = EvaluationBuilder("demo")
    for at, classes in enumerate(labels):
        builder.item(str(at), "de", "sentence", "de", f"document {at}", label=classes)
    return builder.build()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_several_labels_by_hand(dtype):
    """Item 1: gold {0, 2}, two highest 0 and 1. Item 2: gold {1}, highest 1. Item 3: gold {0, 1, 2}, all of the three highest."""
    logits = np.array([[3, 1, -1, -2], [-1, 2, -3, -4], [1, -0.5, -0.1, -2]], dtype=dtype)
    records = score("multieurlex", EURLEX, {"test": logits}, {"test": documents([[0, 2], [1], [0, 1, 2]])})
    assert by(records, metric="mean_r_precision").value == pytest.approx((1 / 2 + 1 + 1) / 3)
    assert by(records, metric="exact_match").value == pytest.approx(1 / 3)
    assert by(records, metric="top1_in_gold").value == 1.0
    assert by(records, metric="micro_f1").value == pytest.approx(2 * 3 / (6 + 4))


def test_a_class_is_predicted_where_its_sigmoid_reaches_the_threshold():
    """Sigmoids of 1 and 1.5 are 0.731 and 0.818, that of 0 is 0.5."""
    logits, sets = np.array([[1.5, 1.0, -1.0], [1.0, 1.5, -2.0]]), documents([[0], [1]])
    for threshold, exact in ((0.5, 0.0), (0.8, 1.0), (0.9, 0.0)):
        records = score("multieurlex", {**EURLEX, "threshold": threshold}, {"test": logits}, {"test": sets})
        assert by(records, metric="exact_match").value == exact, threshold
    records = score("multieurlex", EURLEX, {"test": np.array([[0.0, -1.0], [-1.0, 1.0]])}, {"test": documents([[0], [1]])})
    assert by(records, metric="exact_match").value == 1.0


def test_micro_f1_of_resamples_is_that_of_the_drawn_items():
    rng = np.random.default_rng(5)
    gold, logits = rng.random((20, 4)) < 0.5, rng.normal(size=(20, 4))
    gold[np.flatnonzero(~gold.any(1)), 0] = True
    sets = documents([np.flatnonzero(row).tolist() for row in gold])
    scored = score_with_resamples("multieurlex", {**EURLEX, "resamples": 30}, {"test": logits}, {"test": sets})
    values = next(values for record, values in scored if record.metric == "micro_f1")
    draws = draws_of(Bootstrap("multieurlex", 30, 42), 20)
    assert values == pytest.approx([f1_score(gold[draw], logits[draw] > 0, average="micro") for draw in draws])


def test_several_labels_beside_scikit_learn():
    rng = np.random.default_rng(2)
    gold = rng.random((50, 6)) < 0.4
    gold[np.flatnonzero(~gold.any(1)), 0] = True
    logits = rng.normal(size=(50, 6))
    labels = [np.flatnonzero(row).tolist() for row in gold]
    records = score("multieurlex", EURLEX, {"test": logits}, {"test": documents(labels)})
    assert by(records, metric="micro_f1").value == pytest.approx(f1_score(gold, logits > 0, average="micro"))
    slow = [len(set(np.argsort(-x)[: len(g)].tolist()) & set(g)) / len(g) for x, g in zip(logits, labels, strict=True)]
    assert by(records, metric="mean_r_precision").value == pytest.approx(np.mean(slow))
    tied = item_outcomes(np.zeros((1, 3)), np.zeros((1, 3), bool), np.array([[True, False, False]]))
    assert (tied["top1_in_gold"], tied["mean_r_precision"]) == (1, 1)


@pytest.mark.parametrize(("labels", "found"), [([], "no "), ([1, 1.5], r"\[1\.0, 1\.5\]"), ([np.nan], r"\[nan\]")])
def test_a_document_without_labels_or_with_numbers_that_are_none_is_an_error(labels, found):
    with pytest.raises(InputError, match=rf"subset 'de': item '0' .*{found}"):
        score("multieurlex", EURLEX, {"test": np.zeros((1, 3))}, {"test": documents([labels])})


def test_two_systems_are_resampled_alike():
    """Equal systems have equal resamples, and a system that is right wherever another one is never lies below it in any resample."""
    gold = np.arange(40) % 3
    sets = pairs({"de": gold.tolist(), "en": gold.tolist()})
    better = np.tile(np.eye(3)[gold], (2, 1))
    worse = better.copy()
    worse[::4] = np.roll(worse[::4], 1, axis=1)
    drawn = [dict(score_with_resamples("xnli", XNLI, {"test": logits}, {"test": sets})) for logits in (better, better.copy(), worse)]
    values = [next(resamples for record, resamples in found.items() if record.main) for found in drawn]
    assert (values[0] == values[1]).all()
    assert (values[0] >= values[2]).all()
    assert (values[0] > values[2]).any()
