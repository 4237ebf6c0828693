"""STS aggregation against an example worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from build_sets import build, matrix
from hypothesis import given
from hypothesis import strategies as st
from resampled import draws_of
from scipy import stats

from crosslign.errors import InputError
from crosslign.tasks.measures import Bootstrap
from crosslign.tasks.score import score, score_with_resamples
from crosslign.tasks.scorers.sts import correlation

GOLD = {"s1": [5, 3, 1, 0], "s2": [2, 4, 4], "s3": [0, 1, 2, 3, 5]}
SYSTEM = {"s1": [0.9, 0.8, 0.3, 0.35], "s2": [0.1, 0.7, 0.6], "s3": [0.2, 0.1, 0.5, 0.4, 0.95]}
TASK = {
    "scorer": "sts",
    "texts": {"test": "tiny"},
    "main": {"metric": "spearman", "subset": "avg"},
    "averages": {"avg": ["s1", "s2", "s3"]},
}


def run(gold, system, dtype=np.float32, **options):
    subsets = {
        s: ([f"{s}a{i}" for i in range(len(v))], [f"{s}b{i}" for i in range(len(v))], [(i, i) for i in range(len(v))])
        for s, v in gold.items()
    }
    evaluation = build(subsets, ("first", "second"), gold)
    vectors = {}
    for subset, cosines in system.items():
        for i, cosine in enumerate(cosines):
            vectors["xx", f"{subset}a{i}"] = [3.0, 0.0]
            vectors["en", f"{subset}b{i}"] = [cosine, math.sqrt(1 - cosine**2)]
    return score("sts12", {**TASK, **options}, {"test": matrix(evaluation, vectors, dtype)}, {"test": evaluation})


def value(records, subset, metric, protocol=""):
    (record,) = [r for r in records if (r.subset, r.metric, r.protocol) == (subset, metric, protocol)]
    return record.value


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-7), (np.float32, 1e-6)])
def test_golden_subsets_and_aggregations(dtype, tolerance):
    records = run(GOLD, SYSTEM, dtype, aggregation=["all", "wmean"])
    expected = {
        ("s1", ""): (0.8000000000, 0.9379445280),
        ("s2", ""): (0.8660254038, 0.9878291611),
        ("s3", ""): (0.8000000000, 0.9112133459),
        ("avg", "all"): (0.8283510207, 0.8348870641),
        ("avg", ""): (0.8220084679, 0.9456623450),
        ("avg", "wmean"): (0.8165063509, 0.9392776938),
    }
    for (subset, protocol), (spearman, pearson) in expected.items():
        assert value(records, subset, "spearman", protocol) == pytest.approx(spearman, abs=1e-10)
        assert value(records, subset, "pearson", protocol) == pytest.approx(pearson, abs=tolerance)
    assert {r.n_items for r in records if r.subset == "avg"} == {12}
    assert [r.subset for r in records if r.main] == ["avg"]


def test_pairs_that_point_the_same_way_tie_wherever_they_point():
    n, rng = 200, np.random.default_rng(0)
    texts = [f"{i}" for i in range(n)]
    evaluation = build({"s1": (texts, texts, [(i, i) for i in range(n)])}, ("first", "second"), {"s1": rng.uniform(0, 5, n).tolist()})
    # One coordinate far beyond the others, as encoders of the XLM-R family have it: its rounding makes rows a little longer or shorter.
    vectors = {text: rng.normal(size=32) + 30.0 * np.eye(32)[0] for text in texts}
    both = {(lang, text): times * vector for lang, times in (("xx", 1.0), ("en", 3.0)) for text, vector in vectors.items()}
    records = score("sts12", {**TASK, "averages": {"avg": ["s1"]}}, {"test": matrix(evaluation, both)}, {"test": evaluation})
    assert {(record.value, record.reason) for record in records if record.subset == "s1"} == {(None, "all cosines are equal")}


def test_golden_pearson_in_float64():
    assert correlation(np.array(SYSTEM["s1"]), np.array(GOLD["s1"]), "pearson") == pytest.approx(0.9379445280, abs=1e-10)


def test_fr_pl_value_that_recurs():
    # Eight items, gold in two levels of 3 and 5 as in the tie pattern that gives 5/sqrt(35).
    ranks = np.array([1, 2, 3, 4, 5, 6, 7, 8.0])
    found = {round(float(correlation(ranks, np.array(gold), "spearman")), 10) for gold in np.ndindex(*(2,) * 8) if 0 < sum(gold) < 8}
    assert all(-1 <= one <= 1 for one in found)
    assert 5 / math.sqrt(35) == pytest.approx(0.8451542547)
    assert round(5 / math.sqrt(35), 10) in found


@pytest.mark.parametrize(
    ("gold", "system", "reason"),
    [
        ([1, 2, 3], [0.5] * 3, "all cosines are equal"),
        ([2, 2, 2], [0.1, 0.2, 0.3], "all gold scores are equal"),
        ([2], [0.1], "fewer than two pairs"),
    ],
)
def test_constant_scores_are_undefined_and_never_zero(gold, system, reason):
    records = run({**GOLD, "s2": gold}, {**SYSTEM, "s2": system}, aggregation=["wmean"])
    bad = [r for r in records if r.subset == "s2"]
    assert {(r.value, r.status, r.reason) for r in bad} == {(None, "undefined", reason)}
    average = [r for r in records if r.subset == "avg"]
    assert {(r.value, r.status, r.reason) for r in average} == {(None, "undefined", f"s2: {reason}")}
    assert value(records, "s1", "spearman") == pytest.approx(0.8)


def test_equal_sentences_everywhere_are_a_constant():
    evaluation = build({"s1": (["a", "b", "c"], ["x", "y", "z"], [(0, 0), (1, 1), (2, 2)])}, ("first", "second"), {"s1": [1, 2, 3]})
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((3, 50))
    vectors = {("xx", name): row for name, row in zip("abc", rows, strict=True)} | {
        ("en", name): 2 * row for name, row in zip("xyz", rows, strict=True)
    }
    records = score("sts", {**TASK, "averages": {"avg": ["s1"]}}, {"test": matrix(evaluation, vectors)}, {"test": evaluation})
    assert {r.value for r in records} == {None}


def test_intervals_are_those_of_a_bootstrap_written_as_a_loop():
    rng = np.random.default_rng(5)
    gold = np.round(rng.uniform(0, 5, 120), 1)
    system = np.clip(gold / 6 + 0.15 * rng.standard_normal(120), -1, 1)
    records = run({"s1": gold.tolist()}, {"s1": system.tolist()}, averages={"avg": ["s1"]}, resamples=2000)
    (record,) = [r for r in records if r.subset == "s1" and r.metric == "spearman"]
    loop = [stats.spearmanr(gold[at], system[at]).statistic for at in (rng.integers(0, 120, 120) for _ in range(2000))]
    assert (record.ci_low, record.ci_high) == pytest.approx(tuple(np.percentile(loop, [2.5, 97.5])), abs=0.02)
    assert record.ci_low < record.value < record.ci_high
    again = run({"s1": gold.tolist()}, {"s1": system.tolist()}, averages={"avg": ["s1"]}, resamples=2000)
    assert again == records
    assert run({"s1": gold.tolist()}, {"s1": system.tolist()}, averages={"avg": ["s1"]}, resamples=2000, seed=1) != records


def test_resamples_of_aggregations_are_those_of_their_pairs():
    """Of `wmean` the mean of the subsets' own resamples, weighted by pairs; of `all` one correlation over the pairs that are drawn."""
    rng = np.random.default_rng(3)
    gold = {"s1": rng.uniform(0, 5, 30), "s2": rng.uniform(0, 5, 8)}
    system = {name: np.clip(grades / 6 + 0.2 * rng.standard_normal(len(grades)), -0.99, 0.99) for name, grades in gold.items()}
    evaluation = build(
        {
            s: ([f"{s}a{i}" for i in range(len(v))], [f"{s}b{i}" for i in range(len(v))], [(i, i) for i in range(len(v))])
            for s, v in gold.items()
        },
        ("first", "second"),
        {s: v.tolist() for s, v in gold.items()},
    )
    vectors = {("xx", f"{s}a{i}"): [1.0, 0.0] for s in gold for i in range(len(gold[s]))}
    vectors |= {("en", f"{s}b{i}"): [c, math.sqrt(1 - c * c)] for s in gold for i, c in enumerate(system[s])}
    task = {**TASK, "averages": {"avg": ["s1", "s2"]}, "aggregation": ["all", "wmean"], "resamples": 50}
    scored = score_with_resamples("sts12", task, {"test": matrix(evaluation, vectors, np.float64)}, {"test": evaluation})
    found = {(record.subset, record.protocol): values for record, values in scored if record.metric == "pearson"}
    own = {}
    for name, n in (("s1", 30), ("s2", 8)):
        draws = draws_of(Bootstrap("sts12", 50, 42), n)
        own[name] = [stats.pearsonr(gold[name][draw], system[name][draw]).statistic for draw in draws]
        assert found[name, ""] == pytest.approx(own[name], abs=1e-5)
    assert found["avg", "wmean"] == pytest.approx(np.average([own["s1"], own["s2"]], axis=0, weights=[30, 8]), abs=1e-5)
    assert found["avg", ""] == pytest.approx(np.mean([own["s1"], own["s2"]], axis=0), abs=1e-5)
    every = [np.concatenate([side["s1"], side["s2"]]) for side in (gold, system)]
    draws = draws_of(Bootstrap("sts12", 50, 42), 38)
    assert found["avg", "all"] == pytest.approx([stats.pearsonr(every[0][d], every[1][d]).statistic for d in draws], abs=1e-5)


pairs = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=2, max_size=12)


@given(pairs)
def test_correlation_equals_scipy_and_is_undefined_where_scipy_is(values):
    x, y = (np.array(side, dtype=float) for side in zip(*values, strict=True))
    constant = np.ptp(x) == 0 or np.ptp(y) == 0
    for metric, function in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
        found = float(correlation(x, y, metric))
        if constant:
            assert math.isnan(found)
        else:
            assert found == pytest.approx(function(x, y).statistic, abs=1e-12)
            assert found == pytest.approx(float(correlation(y, x, metric)), abs=1e-12)
            assert found == pytest.approx(float(correlation(3 * x + 7, y, metric)), abs=1e-9)
            assert found == pytest.approx(float(correlation(x[::-1], y[::-1], metric)), abs=1e-12)


def test_a_missing_gold_score_is_refused():
    evaluation = build({"s1": (["a", "b"], ["x", "y"], [(0, 0), (1, 1)])}, ("first", "second"), {"s1": [1.0, None]})
    with pytest.raises(InputError, match=r"task 'sts', subset 's1': .*gold"):
        score("sts", {**TASK, "averages": {}}, {"test": np.eye(4)}, {"test": evaluation})
