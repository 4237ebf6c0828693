"""xSIM against its definition in float64, written out: margins of every pair of sentences, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from build_sets import build, matrix

from crosslign.tasks.score import score


def by_definition(x, y, gold, k, margin):
    """Share of rows of x whose best of their k nearest rows of y, by margin, is none of gold."""
    x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x.astype(np.float64), y.astype(np.float64)))
    cosines = x @ y.T
    k_x, k_y = min(k, len(y)), min(k, len(x))
    of_x = [np.mean(sorted(row, reverse=True)[:k_x]) for row in cosines]
    of_y = [np.mean(sorted(row, reverse=True)[:k_y]) for row in cosines.T]
    wrong = 0
    for i, answers in gold.items():
        nearest = sorted(range(len(y)), key=lambda j: (-cosines[i, j], j))[:k_x]
        mean = {j: (of_x[i] + of_y[j]) / 2 for j in nearest}
        value = {j: {"ratio": cosines[i, j] / mean[j], "distance": cosines[i, j] - mean[j], "absolute": cosines[i, j]} for j in nearest}
        best = max(nearest, key=lambda j, value=value: value[j][margin])
        wrong += best not in answers
    return wrong / len(gold)


@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
@pytest.mark.parametrize(("k", "extra"), [(4, 0), (2, 30), (100, 5)])  # others than translations on the target side: xSIM++
def test_error_rates_are_those_of_the_definition(margin, k, extra):
    n, rng = 60, np.random.default_rng(k)
    names, others = [f"t{i}" for i in range(n)], [f"t{i}" for i in range(n + extra)]
    evaluation = build({"de": (names, others, [(i, i) for i in range(n)])})
    x = rng.standard_normal((n, 12))
    y = np.concatenate([x, x[:extra]]) + 0.9 * rng.standard_normal((n + extra, 12))
    vectors = {("xx", name): row for name, row in zip(names, x, strict=True)} | {
        ("en", name): row for name, row in zip(others, y, strict=True)
    }
    main = {"metric": "error_rate", "subset": "de", "direction": "xx2en"}
    task = {"scorer": "xsim", "texts": {"test": "tiny"}, "main": main, "k": k, "margin": margin, "resamples": 200}
    given = matrix(evaluation, vectors)
    records = {r.direction: r for r in score("xsim", task, {"test": given}, {"test": evaluation}) if r.metric == "error_rate"}
    x, y = x.astype(np.float32), y.astype(np.float32)
    expected = {
        "xx2en": by_definition(x, y, {i: {i} for i in range(n)}, k, margin),
        "en2xx": by_definition(y, x, {i: {i} for i in range(n)}, k, margin),
    }
    assert {direction: record.value for direction, record in records.items()} == pytest.approx(expected, abs=1e-9)
    assert 0 < expected["xx2en"] < 1
    assert all(record.ci_low <= record.value <= record.ci_high for record in records.values())


def test_equal_strings_are_one_sentence():
    """As LASER counts: it compares the lines, so that of a line that stands there twice either is right."""
    evaluation = build({"de": (["a", "b"], ["x", "y", "x"], [(0, 2), (1, 1)])})
    vectors = {("xx", "a"): [1, 0], ("xx", "b"): [0, 1], ("en", "x"): [1, 0.1], ("en", "y"): [0.1, 1]}
    main = {"metric": "error_rate", "subset": "de", "direction": "xx2en"}
    task = {"scorer": "xsim", "texts": {"test": "tiny"}, "main": main, "margin": "absolute", "resamples": 0}
    found = {r.direction: r.value for r in score("xsim", task, {"test": matrix(evaluation, vectors)}, {"test": evaluation})}
    assert found["xx2en"] == 0.0  # the first of the two wins, the second is the gold


def test_a_sentence_may_have_several_translations():
    evaluation = build({"de": (["a", "b"], ["x", "y", "z"], [(0, 0), (0, 1), (1, 2)])})
    vectors = {("xx", "a"): [1, 0], ("xx", "b"): [0, 1], ("en", "x"): [0.6, 0.8], ("en", "y"): [1, 0.1], ("en", "z"): [0.1, 1]}
    main = {"metric": "error_rate", "subset": "de", "direction": "xx2en"}
    task = {"scorer": "xsim", "texts": {"test": "tiny"}, "main": main, "margin": "absolute", "resamples": 0}
    found = {r.direction: r.value for r in score("xsim", task, {"test": matrix(evaluation, vectors)}, {"test": evaluation})}
    assert found == {"xx2en": 0.0, "en2xx": pytest.approx(1 / 3)}  # x is nearer to b
