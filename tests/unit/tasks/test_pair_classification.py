"""Paraphrases by cosine alone: average precision and the best accuracy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from build_sets import build, matrix
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from crosslign.errors import InputError
from crosslign.tasks.score import score
from crosslign.tasks.scorers.pair_classification import average_precision, best_accuracy_threshold

TASK = {"scorer": "pair_classification", "texts": {"test": "tiny"}, "main": {"metric": "average_precision", "subset": "s"}}


def run(cosines, gold, dtype=np.float64, **options):
    names = [f"p{i}" for i in range(len(cosines))]
    evaluation = build({"s": (names, names, [(i, i) for i in range(len(names))])}, ("first", "second"), {"s": gold})
    vectors = {("xx", name): (1.0, 0.0) for name in names}
    vectors |= {("en", name): (c, math.sqrt(1 - c * c)) for name, c in zip(names, cosines, strict=True)}
    return score("tiny", {**TASK, **options}, {"test": matrix(evaluation, vectors).astype(dtype)}, {"test": evaluation})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_by_hand(dtype):
    # Ranked: 1, 0, 1, 0: precision 1 at the first hit, 2/3 at the second. Threshold between 0.9 and 0.7 has 3 of 4 right.
    records = {r.metric: r for r in run([0.9, 0.5, 0.7, 0.1], [1, 1, 0, 0], dtype)}
    assert records["average_precision"].value == pytest.approx((1 + 2 / 3) / 2)
    assert records["average_precision"].main
    assert records["accuracy"].value == 0.75
    assert records["accuracy"].threshold == pytest.approx(0.8, abs=1e-6)
    assert records["accuracy"].threshold_from == "same_gold"
    assert all(r.ci_low <= r.value <= r.ci_high for r in records.values())


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=30).filter(lambda rows: any(same for _, same in rows)))
def test_beside_sklearn_and_a_loop_over_thresholds(rows):
    cosines, same = np.array([a / 6 for a, _ in rows]), np.array([b for _, b in rows])
    value = average_precision(cosines, same, np.ones((1, len(rows))))[0]
    assert value == pytest.approx(average_precision_score(same, cosines))
    doubled = average_precision(cosines, same, np.full((1, len(rows)), 2.0))[0]
    assert doubled == pytest.approx(value)
    best = max(((cosines >= t) == same).mean() for t in [*cosines, np.inf])
    assert ((cosines >= best_accuracy_threshold(cosines, same)) == same).mean() == best


def test_one_class_alone_has_no_score_and_other_gold_is_refused():
    assert {(r.value, r.reason) for r in run([0.1, 0.2], [1, 1])} == {(None, "all pairs have the gold 1")}
    with pytest.raises(InputError, match=r"task 'tiny', subset 's': .* 0 .* 1$"):
        run([0.1, 0.2], [1, 3])
