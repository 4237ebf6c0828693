"""Bootstrap draws hang on what they must alone; intervals are made of what is defined."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from crosslign.tasks.measures import Bootstrap, centred, interval


def drawn(task, seed, n, *names):
    return np.concatenate(list(Bootstrap(task, 20, seed).draws(n, *names))).tolist()


def test_draws_hang_on_task_names_seed_and_number_of_items():
    first = drawn("tatoeba", 42, 9, "", "xx2en")
    assert drawn("tatoeba", 42, 9, "", "xx2en") == first
    others = [("flores", 42, 9, "", "xx2en"), ("tatoeba", 1, 9, "", "xx2en"), ("tatoeba", 42, 9, "", "en2xx"), ("tatoeba", 42, 9)]
    others += [("tatoeba", 42, 9, "xx2en", "")]
    assert first not in [drawn(*other) for other in others]
    assert {place for draw in drawn("tatoeba", 42, 8) for place in draw} == set(range(8))
    assert [draw[:8] for draw in first] != [draw[:8] for draw in drawn("tatoeba", 42, 10, "", "xx2en")]
    assert list(Bootstrap("tatoeba", 0, 42).draws(9)) == list(Bootstrap("tatoeba", 20, 42).draws(0)) == []


def test_blocks_of_draws_change_nothing(monkeypatch):
    whole, values = drawn("tatoeba", 42, 9), np.random.default_rng(0).random((9, 2))
    means = Bootstrap("tatoeba", 20, 42).means(values)
    monkeypatch.setattr("crosslign.tasks.measures._KEPT", 0)
    assert drawn("tatoeba", 42, 9) == whole
    monkeypatch.setattr("crosslign.tasks.measures._CHUNK", 30)
    assert len(list(Bootstrap("tatoeba", 20, 42).draws(9))) == 7
    assert drawn("tatoeba", 42, 9) == whole
    assert means == pytest.approx(np.array([values[draw].mean(0) for draw in whole]), rel=1e-12)
    assert Bootstrap("tatoeba", 20, 42).means(values) == pytest.approx(means)


def test_draws_that_are_kept_for_the_next_subset_cannot_be_changed():
    bootstrap = Bootstrap("tatoeba", 20, 42)
    for blocks in (bootstrap.draws(9), bootstrap.counts(9)):
        with pytest.raises(ValueError, match="read-only"):
            next(blocks)[0] += 1


def test_an_interval_needs_half_of_the_resamples():
    gap = np.nan
    assert interval(np.array([gap, gap, 0.5])) == (None, None)
    assert interval(np.array([gap, 0.25, 0.25, gap])) == (0.25, 0.25)
    assert interval(np.array([gap, gap])) == interval(None) == (None, None)
    low, high = interval(np.arange(101) / 100)
    assert (low, high) == pytest.approx((0.025, 0.975))


@pytest.mark.parametrize("right", [0, 10])
def test_a_share_that_is_equal_in_all_resamples_has_the_exact_interval(right):
    expected = binomtest(right, 10).proportion_ci(0.95, "exact")
    same = np.full(50, right / 10)
    assert interval(same, share_of=10) == pytest.approx((expected.low, expected.high))
    assert interval(same) == (right / 10, right / 10)  # no share
    assert interval(np.full(50, 0.5), share_of=10) == (0.5, 0.5)  # neither all right nor all wrong


def test_centred_resamples_lie_around_the_score_within_its_range():
    assert centred(np.array([0.5, 1.0, np.nan]), 0.95) == pytest.approx([0.7, 1.0, np.nan], nan_ok=True)
    assert centred(np.array([0.1, 0.5]), 0.05) == pytest.approx([0.0, 0.25])
    assert centred(np.array([1.0, 3.0]), 4.0, np.inf) == pytest.approx([3.0, 5.0])
    assert centred(None, 0.5) is None
