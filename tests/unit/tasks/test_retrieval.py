"""Tatoeba accuracy against an example worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from build_sets import build, matrix, with_cosines
from resampled import draws_of
from scipy.stats import binomtest

from crosslign.errors import InputError
from crosslign.mining.knn import neighbours
from crosslign.tasks.measures import Bootstrap, Measure
from crosslign.tasks.score import averages_of, score, score_with_resamples

GOLDEN = np.array([[0.9, 0.2, 0.1, 0.3], [0.5, 0.8, 0.8, 0.1], [0.3, 0.7, 0.7, 0.2], [0.2, 0.6, 0.4, 0.4]])
TASK = {
    "scorer": "retrieval",
    "texts": {"test": "tiny"},
    "main": {"metric": "accuracy", "subset": "avg", "direction": "xx2en"},
    "averages": {"avg": "all"},
}


def values(records, metric="accuracy", protocol=""):
    return {(r.subset, r.direction): r.value for r in records if r.metric == metric and r.protocol == protocol}


def golden_set(dtype=np.float32):
    names = [str(number) for number in range(4)]
    evaluation = build({"de": (names, names, [(i, i) for i in range(4)])})
    # Half the golden similarities: the same order and ties, and short enough for unit vectors.
    left, right = with_cosines(GOLDEN / 2)
    vectors = {("xx", name): row for name, row in zip(names, left, strict=True)}
    vectors |= {("en", name): row for name, row in zip(names, right, strict=True)}
    return evaluation, matrix(evaluation, vectors, dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_golden_nearest_sentences_of_a_tie_are_those_of_the_lowest_index(dtype):
    vectors = golden_set(dtype)[1].astype(dtype)
    near = neighbours(vectors[:4], vectors[4:], 4)
    assert near.forward_indices[:, 0].tolist() == [0, 1, 1, 1]
    assert near.backward_indices[:, 0].tolist() == [0, 1, 1, 3]
    # The highest index would have been as accurate, with other sentences right: accuracy does not tell the two apart.
    tied = near.forward_scores == near.forward_scores[:, :1]
    assert np.where(tied, near.forward_indices, -1).max(1).tolist() == [0, 2, 2, 1]
    by_column = np.take_along_axis(near.forward_scores, np.argsort(near.forward_indices, 1), 1)
    assert np.abs(2 * by_column - GOLDEN).max() < 1e-6


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_golden_accuracies_with_a_tie(dtype):
    evaluation, vectors = golden_set(dtype)
    records = score("tatoeba", TASK, {"test": vectors}, {"test": evaluation})
    assert values(records) == {(s, d): v for s in ("de", "avg") for d, v in (("xx2en", 0.5), ("en2xx", 0.75), ("mean", 0.625))}
    strict = values(records, protocol="strict")
    assert (strict["de", "xx2en"], strict["de", "en2xx"], strict["de", "mean"]) == (0.25, 0.75, 0.5)
    errors = values(records, metric="error_rate")
    assert (errors["de", "xx2en"], errors["de", "en2xx"]) == (0.5, 0.25)
    assert {r.n_items for r in records} == {4}
    (main,) = [r for r in records if r.main]
    assert (main.subset, main.direction, main.metric, main.protocol, main.value) == ("avg", "xx2en", "accuracy", "", 0.5)


def perfect_and_half(first: int, second: int):
    """Two languages: of `first` lines 9 in 10 right, of `second` lines half right; wrong ones answer with the line after them."""
    subsets, vectors = {}, {}
    for subset, n, right in (("aa", first, int(first * 0.9)), ("bb", second, second // 2)):
        names = [f"{subset}{i}" for i in range(n)]
        subsets[subset] = (names, names, [(i, i) for i in range(n)])
        for i, name in enumerate(names):
            vectors["en", name] = np.eye(n, first)[i]
            # A wrong one points at the line after it, and still leans to its own side of it.
            vectors["xx", name] = np.eye(n, first)[i if i < right else (i + 1) % n]
    evaluation = build(subsets)
    return score("tatoeba", {**TASK, "resamples": 0}, {"test": matrix(evaluation, vectors)}, {"test": evaluation})


def test_averages_are_over_languages_not_over_lines():
    records = perfect_and_half(100, 20)
    found = values(records)
    assert (found["aa", "xx2en"], found["bb", "xx2en"], found["avg", "xx2en"]) == pytest.approx((0.9, 0.5, 0.7))
    assert found["avg", "xx2en"] != pytest.approx((90 + 10) / 120)
    assert all(r.ci_low is None and r.ci_high is None for r in records)


def test_a_golden_average_counts_each_language_once():
    parts = [Measure("aa", "accuracy", 0.9, 1000), Measure("bb", "accuracy", 0.5, 205)]
    (average,) = averages_of(parts, {"avg": "all"})
    assert average.value == pytest.approx(0.7, abs=1e-8)
    weighted = sum(part.value * part.n_items for part in parts) / sum(part.n_items for part in parts)
    assert weighted == pytest.approx(0.83195021, abs=1e-8)
    assert average.value != pytest.approx(weighted, abs=0.1)


def test_identity_of_the_errata():
    def mean(head: float, tail: float) -> float:
        parts = [Measure(f"h{i}", "accuracy", head, 1) for i in range(36)] + [Measure(f"t{i}", "accuracy", tail, 1) for i in range(76)]
        return averages_of(parts, {"all": "all"})[0].value

    assert mean(91.9, 78.1) == pytest.approx(82.5357142857)
    assert mean(95.7, 77.9) == pytest.approx(83.6214285714)


def test_equal_strings_count_under_string_equal_only():
    evaluation = build({"de": (["a", "b"], ["x", "x"], [(0, 0), (1, 1)])})
    vectors = {("xx", "a"): [1, 0], ("xx", "b"): [0.9, 0.1], ("en", "x"): [1, 0]}
    records = score("tatoeba", TASK, {"test": matrix(evaluation, vectors)}, {"test": evaluation})
    assert values(records)["de", "xx2en"] == 0.5
    assert values(records, protocol="strict")["de", "xx2en"] == 0.0
    assert values(records, protocol="string_equal")["de", "xx2en"] == 1.0


def test_several_answers_and_unasked_candidates():
    evaluation = build({"de": (["a", "b", "c"], ["x", "y", "z"], [(0, 0), (0, 1), (1, 2)])})
    vectors = {("xx", "a"): [1, 0, 0], ("xx", "b"): [0, 1, 0.1], ("xx", "c"): [0, 0.1, 1]}
    vectors |= {("en", "x"): [0, 1, 0], ("en", "y"): [1, 0, 0], ("en", "z"): [0, 0, 1]}
    records = score("tatoeba", TASK, {"test": matrix(evaluation, vectors)}, {"test": evaluation})
    # a finds y, one of its two answers; b finds x, which is not its own; x finds b, y finds a, z finds c.
    assert values(records)["de", "xx2en"] == 0.5
    assert values(records)["de", "en2xx"] == pytest.approx(1 / 3)


def test_intervals_hold_the_value_and_do_not_depend_on_other_subsets():
    rng = np.random.default_rng(0)
    names = [f"s{i}" for i in range(200)]
    one = build({"de": (names, names, [(i, i) for i in range(200)])})
    two = build({sub: (names, names, [(i, i) for i in range(200)]) for sub in ("aa", "de")})
    vectors = {("en", name): rng.standard_normal(6) for name in names}
    vectors |= {("xx", name): vectors["en", name] + 0.7 * rng.standard_normal(6) for name in names}
    records = [score("tatoeba", TASK, {"test": matrix(e, vectors)}, {"test": e}) for e in (one, two)]
    chosen = [next(r for r in rs if (r.subset, r.direction, r.metric, r.protocol) == ("de", "xx2en", "accuracy", "")) for rs in records]
    assert chosen[0] == chosen[1]
    low, value, high = chosen[0].ci_low, chosen[0].value, chosen[0].ci_high
    assert low < value < high
    # The percentile interval of a share is close to the normal one: 1.96 standard errors either side.
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(value * (1 - value) / 200), rel=0.15)
    # Both subsets are the same sentences with the same vectors: two of them tell no more than one.
    average = next(r for r in records[1] if (r.subset, r.direction, r.metric, r.protocol) == ("avg", "xx2en", "accuracy", ""))
    assert (average.ci_low, average.value, average.ci_high) == pytest.approx((low, value, high), abs=1e-12)


@pytest.mark.parametrize("one_to_one", [True, False])
def test_resamples_of_the_mean_of_both_directions(one_to_one):
    """Of aligned sentences each link counts with both of its verdicts, in whatever order gold names them; others are drawn apart."""
    rng = np.random.default_rng(4)
    n = 25
    partner = rng.permutation(n)  # of each source
    base = rng.standard_normal((n, 6))
    targets = np.empty((n, 6))
    targets[partner] = base + 0.8 * rng.standard_normal((n, 6))
    links = [(i, int(partner[i])) for i in rng.permutation(n)] + ([] if one_to_one else [(0, int(partner[1]))])
    evaluation = build({"de": ([f"s{i}" for i in range(n)], [f"t{i}" for i in range(n)], links)})
    vectors = {("xx", f"s{i}"): row for i, row in enumerate(base)} | {("en", f"t{i}"): row for i, row in enumerate(targets)}
    scored = score_with_resamples("tatoeba", {**TASK, "resamples": 40}, {"test": matrix(evaluation, vectors)}, {"test": evaluation})
    found = {r.direction: values for r, values in scored if (r.subset, r.metric, r.protocol) == ("de", "accuracy", "")}
    unit = [rows / np.linalg.norm(rows, axis=1)[:, None] for rows in (base, targets)]
    cosines, gold = unit[0] @ unit[1].T, set(links)
    there = np.array([(i, int(cosines[i].argmax())) in gold for i in range(n)], dtype=float)
    back = np.array([(int(cosines[:, j].argmax()), j) in gold for j in range(n)], dtype=float)
    assert 0 < there.sum() < n
    back = back[partner] if one_to_one else back  # in the order of the sources, where each target has one
    assert there.tolist() != back.tolist()
    drawn = draws_of(Bootstrap("tatoeba", 40, 42), n)
    assert found["xx2en"] == pytest.approx(there[drawn].mean(1))
    assert found["en2xx"] == pytest.approx(back[drawn].mean(1))
    both = (there + back)[drawn].mean(1) / 2 if one_to_one else (found["xx2en"] + found["en2xx"]) / 2
    assert found["mean"] == pytest.approx(both)


@pytest.mark.parametrize("right", [True, False])
def test_no_interval_claims_certainty(right):
    """All of 40 queries are right, or none is, in every resample: the interval ends where the exact binomial one does (SciPy)."""
    n = 40
    names = [f"s{i}" for i in range(n)]
    evaluation = build({"de": (names, names, [(i, i if right else n - 1 - i) for i in range(n)])})
    vectors = {(lang, name): np.eye(n)[i] for lang in ("en", "xx") for i, name in enumerate(names)}
    records = score("tatoeba", TASK, {"test": matrix(evaluation, vectors)}, {"test": evaluation})
    for record in records:
        hits = round(record.value * n)
        assert hits in (0, n)
        exact = binomtest(hits, n).proportion_ci(0.95, method="exact")
        assert (record.ci_low, record.ci_high) == pytest.approx((exact.low, exact.high), abs=1e-12), record
        assert isinstance(record.ci_low, float)


@pytest.mark.parametrize("sizes", [(200, 200), (200, 201)])
def test_the_interval_of_an_average_over_unrelated_subsets_is_narrower(sizes):
    """Independent outcomes: sqrt(2) narrower, whether the subsets share their draws or not."""
    rng = np.random.default_rng(3)
    sets = {sub: [f"{sub}{i}" for i in range(n)] for sub, n in zip(("aa", "de"), sizes, strict=True)}
    evaluation = build({sub: (names, names, [(i, i) for i in range(len(names))]) for sub, names in sets.items()})
    vectors = {("en", name): rng.standard_normal(6) for names in sets.values() for name in names}
    vectors |= {("xx", name): vectors["en", name] + 0.7 * rng.standard_normal(6) for names in sets.values() for name in names}
    records = score("tatoeba", {**TASK, "resamples": 4000}, {"test": matrix(evaluation, vectors)}, {"test": evaluation})
    chosen = {r.subset: r for r in records if (r.direction, r.metric, r.protocol) == ("xx2en", "accuracy", "")}
    widths = {subset: record.ci_high - record.ci_low for subset, record in chosen.items()}
    assert widths["avg"] == pytest.approx(np.sqrt(widths["aa"] ** 2 + widths["de"] ** 2) / 2, rel=0.1)


def test_collapsed_vectors_are_said_to_be_collapsed():
    names = ["a", "b", "c", "d"]
    evaluation = build({"de": (names, names, [(i, i) for i in range(4)])})
    records = score("tatoeba", TASK, {"test": np.ones((8, 5), np.float32)}, {"test": evaluation})
    assert {r.status for r in records} == {"collapsed"}
    assert values(records)["de", "xx2en"] == 0.25
    assert values(records, protocol="strict")["de", "xx2en"] == 0.0


def test_a_missing_member_leaves_the_average_undefined():
    with_gap = {**TASK, "averages": {"avg": ["de", "fr"], "one": ["de"]}}
    names = ["a", "b"]
    evaluation = build({"de": (names, names, [(0, 0), (1, 1)])})
    records = score("tatoeba", with_gap, {"test": np.eye(4, dtype=np.float32)}, {"test": evaluation})
    average = [r for r in records if r.subset == "avg"]
    assert {(r.value, r.status, r.reason) for r in average} == {(None, "undefined", "no subset 'fr'")}
    assert all(r.status == "ok" for r in records if r.subset == "one")


def test_bad_input_is_refused():
    names = ["a", "b"]
    evaluation = build({"de": (names, names, [(0, 0), (1, 1)])})
    with pytest.raises(InputError, match=r"evaluation corpus 'test': .* 3 rows.* 4 "):
        score("tatoeba", TASK, {"test": np.eye(3, dtype=np.float32)}, {"test": evaluation})
    with pytest.raises(InputError, match=r"'test', subset 'de', gold line 1: .*'target7'"):
        score("tatoeba", TASK, {"test": np.eye(4, dtype=np.float32)}, {"test": build({"de": (names, names, [(0, 7)])})})
    with pytest.raises(InputError, match=r"tasks\.tatoeba\.main: `main` .*: avg accuracy north; "):
        score(
            "tatoeba",
            {**TASK, "main": {"metric": "accuracy", "subset": "avg", "direction": "north"}},
            {"test": np.eye(4)},
            {"test": evaluation},
        )
    broken = np.eye(4, dtype=np.float32)
    broken[2] = np.nan
    with pytest.raises(InputError, match=r"targets, row 2: .*NaN"):
        score("tatoeba", TASK, {"test": broken}, {"test": evaluation})
