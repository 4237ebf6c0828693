"""Threshold search against an example worked out by hand and a loop over all thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosslign.mining.threshold import Extraction, best_threshold, extract

A = ([0.9, 0.8, 0.8, 0.7, 0.6], [1, 1, 0, 1, 0], 4)
B1 = ([0.9, 0.8, 0.8, 0.6], [1, 1, 0, 0], 2)
B2 = ([0.9, 0.8, 0.8, 0.6], [1, 0, 1, 0], 2)
C = ([0.9, 0.5], [1, 1], 2)


@pytest.fixture(params=[np.float64, np.float32], autouse=True)
def both_types(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores in float64 and in float32."""
    monkeypatch.setitem(globals(), "DTYPE", request.param)


DTYPE: type[np.floating] = np.float64


def best(case: tuple[list[float], list[int], int], ties: str) -> Extraction:
    scores, correct, gold = case
    return best_threshold(np.array(scores, dtype=DTYPE), np.array(correct, dtype=bool), gold, ties)


def at(case: tuple[list[float], list[int], int], threshold: float) -> Extraction:
    scores, correct, gold = case
    return extract(np.array(scores, dtype=DTYPE), np.array(correct, dtype=bool), gold, threshold)


def test_case_a() -> None:
    for ties in ("group", "prefix"):
        found = best(A, ties)
        assert (found.f1, found.precision, found.recall, found.extracted) == pytest.approx((0.75, 0.75, 0.75, 4))
        assert found.threshold == pytest.approx(0.65)
    scores, correct, gold = A
    prefixes = [best((scores[:n], correct[:n], gold), "prefix").f1 for n in range(1, 6)]
    assert prefixes == pytest.approx([0.4, 2 / 3, 2 / 3, 0.75, 0.75])
    assert [at((scores[:n], correct[:n], gold), 0).f1 for n in range(1, 6)] == pytest.approx(
        [0.4, 0.66666667, 0.57142857, 0.75, 0.66666667]
    )


def test_case_b1_promises_what_it_cannot_keep_only_as_prefix() -> None:
    prefix = best(B1, "prefix")
    assert (prefix.f1, prefix.threshold, prefix.extracted) == pytest.approx((1.0, 0.8, 2))
    realised = at(B1, prefix.threshold)
    assert (realised.precision, realised.recall, realised.f1, realised.extracted) == pytest.approx((0.66666667, 1, 0.8, 3))
    group = best(B1, "group")
    assert (group.f1, group.threshold) == pytest.approx((0.8, 0.7))
    assert at(B1, group.threshold) == group


def test_case_b2_shows_that_prefix_depends_on_the_order_of_ties() -> None:
    for ties in ("prefix", "group"):
        assert (best(B2, ties).f1, best(B2, ties).threshold) == pytest.approx((0.8, 0.7))


def test_ties_keep_the_order_they_are_given_in() -> None:
    """More of them than are sorted by insertion; the right ones come first."""
    case = ([0.9, 0.8] * 30, [1, 1] * 10 + [0, 1] * 10 + [0, 0] * 10, 30)
    found = best(case, "prefix")
    assert (found.extracted, found.precision) == (50, 0.6)


def test_case_c_whole_list() -> None:
    assert best(C, "group") == Extraction(1.0, 1.0, 1.0, 0.5, 2)


@pytest.mark.parametrize("case", [([], [], 3), ([0.9, 0.8], [0, 0], 3)])
def test_nothing_correct(case: tuple[list[float], list[int], int]) -> None:
    assert best(case, "group") == Extraction(0.0, 0.0, 0.0, float("inf"), 0)
    assert at(case, float("inf")) == Extraction(0.0, 0.0, 0.0, float("inf"), 0)


def test_transfer_to_another_split() -> None:
    dev = best(([1.20, 1.10, 1.05, 1.00], [1, 1, 0, 0], 3), "group")
    assert (dev.f1, dev.threshold) == pytest.approx((0.8, 1.075))
    test = ([1.30, 1.08, 1.07, 1.02, 0.90], [1, 1, 0, 1, 0], 4)
    moved = at(test, dev.threshold)
    assert (moved.extracted, moved.precision, moved.recall, moved.f1) == pytest.approx((2, 1, 0.5, 0.66666667))
    oracle = best(test, "group")
    assert (oracle.f1, oracle.threshold, oracle.extracted) == pytest.approx((0.75, 0.96, 4))


def test_midpoint_between_neighbouring_floats_keeps_the_next_one_out() -> None:
    low = 1.0
    high = np.nextafter(DTYPE(low), DTYPE(2))
    found = best(([high, low], [1, 0], 1), "group")
    assert low < found.threshold <= high
    assert at(([high, low], [1, 0], 1), found.threshold) == found


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.9]), st.booleans()), max_size=12), st.integers(0, 3))
def test_group_is_the_best_that_any_threshold_realises(candidates: list[tuple[float, bool]], missed: int) -> None:
    scores = np.array([score for score, _ in candidates])
    correct = np.array([verdict for _, verdict in candidates], dtype=bool)
    gold = max(1, int(correct.sum()) + missed)
    found = best_threshold(scores, correct, gold)
    every = [extract(scores, correct, gold, threshold) for threshold in (0.0, 0.15, 0.25, 0.4, 0.7, 1.0)]
    assert found.f1 == pytest.approx(max(one.f1 for one in every))
    realised = extract(scores, correct, gold, found.threshold)
    assert realised == found
    if found.f1 and found.precision and found.recall:
        assert found.f1 == pytest.approx(2 * found.precision * found.recall / (found.precision + found.recall))


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\b2 .*\b2 .*\b1 gold"):
        best_threshold(np.array([0.5, 0.4]), np.array([True, True]), 1)
    with pytest.raises(ValueError, match="0 gold"):
        best_threshold(np.array([0.5]), np.array([False]), 0)
    with pytest.raises(ValueError, match=r"\b2 .*\b1 .*\b1 .*\b3 gold"):
        extract(np.array([0.5, 0.4]), np.array([True]), 3, 0.0)
