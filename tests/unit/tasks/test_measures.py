"""Bootstrap draws hang on what they must alone; intervals are made of what is defined."""

from __future__ import annotations

import numpy as np
import pytest
from resampled import draws_of
from scipy.stats import binomtest

from crosslign.tasks.measures import Bootstrap, centred, interval


def drawn(task, seed, n):
    return draws_of(Bootstrap(task, 20, seed), n).tolist()


def test_draws_hang_on_task_seed_and_number_of_items():
    first = drawn("tatoeba", 42, 9)
    assert drawn("tatoeba", 42, 9) == first
    assert first not in [drawn("flores", 42, 9), drawn("tatoeba", 1, 9)]
    assert {place for draw in drawn("tatoeba", 42, 8) for place in draw} == set(range(8))
    assert [draw[:8] for draw in first] != [draw[:8] for draw in drawn("tatoeba", 42, 10)]
    assert list(Bootstrap("tatoeba", 0, 42).counts(9)) == list(Bootstrap("tatoeba", 20, 42).counts(0)) == []
    assert Bootstrap("tatoeba", 0, 42).mean(np.ones(9)) is Bootstrap("tatoeba", 20, 42).mean(np.ones(0)) is None


def test_blocks_of_draws_change_nothing(monkeypatch):
    whole, values = drawn("tatoeba", 42, 9), np.random.default_rng(0).random((9, 2))
    means = Bootstrap("tatoeba", 20, 42).means(values)
    monkeypatch.setattr("crosslign.tasks.measures._KEPT", 0)
    assert drawn("tatoeba", 42, 9) == whole
    monkeypatch.setattr("crosslign.tasks.measures._CHUNK", 30)
    assert len(list(Bootstrap("tatoeba", 20, 42).counts(9))) == 7
    assert drawn("tatoeba", 42, 9) == whole
    assert means == pytest.approx(np.array([values[draw].mean(0) for draw in whole]), rel=1e-12)
    assert Bootstrap("tatoeba", 20, 42).means(values) == pytest.approx(means)


def test_what_is_done_with_draws_does_not_change_those_of_the_next_subset():
    bootstrap = Bootstrap("tatoeba", 20, 42)
    before = [block.copy() for block in bootstrap.counts(9)]
    for block in bootstrap.counts(9):
        block[:] = 0
    assert np.array_equal(np.concatenate(before), np.concatenate(list(bootstrap.counts(9))))


CLUSTERS = ["a", "b", None, "a", "c", None, "b", "a"]


def test_items_of_a_cluster_are_drawn_together():
    """Five units: a with three items, b with two, c, and two items of their own; as many units are drawn as there are."""
    times = np.concatenate(list(Bootstrap("lareqa", 200, 42).over(CLUSTERS).counts(8)))
    assert (times[:, [0, 3, 7]] == times[:, [0]]).all()
    assert (times[:, 1] == times[:, 6]).all()
    assert (times[:, [0, 1, 2, 4, 5]].sum(1) == 5).all()
    assert len({tuple(row) for row in times[:, [2, 5]]}) > 4  # items without a cluster come apart
    values = np.random.default_rng(0).random((8, 3))
    expected = [(row[:, None] * values).sum(0) / row.sum() for row in times]
    assert Bootstrap("lareqa", 200, 42).over(CLUSTERS).means(values) == pytest.approx(np.array(expected))
    assert Bootstrap("lareqa", 20, 42).over([None] * 8) == Bootstrap("lareqa", 20, 42)


def test_languages_with_the_same_clusters_share_their_draws():
    german, french = (Bootstrap("lareqa", 30, 42).over(names) for names in (["1", "1", "2"], ["x", "x", "y"]))
    assert np.array_equal(np.concatenate(list(german.counts(3))), np.concatenate(list(french.counts(3))))


def coverage(clustered, spread, size=5, number=100, runs=400):
    """Return how often the interval holds the true mean of answers whose clusters differ by so much, and its mean width."""
    rng, held, widths = np.random.default_rng(7), 0, []
    clusters = [str(at // size) for at in range(size * number)]
    bootstrap = Bootstrap("simulated", 400, 42)
    bootstrap = bootstrap.over(clusters) if clustered else bootstrap
    for _ in range(runs):
        shared = np.repeat(rng.normal(0, spread, number), size)
        low, high = interval(bootstrap.mean(shared + rng.normal(0, 1, size * number)))
        held, widths = held + (low <= 0 <= high), [*widths, high - low]
    return held / runs, float(np.mean(widths))


def test_intervals_of_clustered_items_hold_the_truth_as_often_as_they_say():
    """Items that share half of their variance: the interval of independent items holds the true mean too seldom."""
    together, wide = coverage(True, 0.7)
    apart, narrow = coverage(False, 0.7)
    assert together >= 0.92
    assert apart <= 0.88
    assert wide > 1.3 * narrow
    assert coverage(True, 0.0)[0] >= 0.92  # where clusters share nothing, nothing is lost


def test_many_units_are_drawn_in_bundles_and_the_interval_stays_as_wide(monkeypatch):
    values = np.random.default_rng(3).random(9000)
    monkeypatch.setattr("crosslign.tasks.measures.MOST", 10**6)
    one_by_one = np.std(Bootstrap("bucc", 1000, 42).mean(values))
    monkeypatch.setattr("crosslign.tasks.measures.MOST", 8192)
    bundled = Bootstrap("bucc", 1000, 42).mean(values)
    assert np.std(bundled) == pytest.approx(one_by_one, rel=0.1)
    assert np.std(bundled) == pytest.approx(values.std() / np.sqrt(9000), rel=0.1)
    assert np.mean(bundled) == pytest.approx(values.mean(), abs=2e-4)


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
