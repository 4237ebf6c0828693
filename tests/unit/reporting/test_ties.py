"""Ties between rows: variances, groups and the smallest difference, against hand-made cases and simulated contests."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm, t

from crosslign.reporting.ties import Row, degrees_of, groups_of, ties

RESAMPLES, ITEMS, SEEDS = 1000, 500, 5
REAL = [0.080, 0.085, 0.090, 0.174, 0.186, 0.178, 0.168, 0.129, 0.107, 0.094, 0.133]
"""Verses found into English by the rows of docs/methods.md."""


def rows_of(outcomes, rng):
    """Return rows from outcomes [rows][seeds, items] of 0 and 1, all on the same resamples of the items."""
    number = outcomes[0].shape[1]
    times = rng.multinomial(number, np.full(number, 1 / number), RESAMPLES).T / number
    return [Row(own.mean(1), own @ times) for own in outcomes]


def contest(rates, rng):
    """Return the outcomes of systems of these rates: an item is as hard for all, each seed has a level of its own, and luck."""
    hard = rng.normal(size=ITEMS)
    found = []
    for rate in rates:
        level = norm.ppf(rate) * np.sqrt(1 + 0.8**2 + 0.05**2) + 0.05 * rng.normal(size=(SEEDS, 1))
        found.append((level + 0.8 * hard + rng.normal(size=(SEEDS, ITEMS)) > 0).astype(float))
    return found


def lower_bound(found, trials=200):
    """Return the lower end of Wilson's 95 % interval of a share."""
    z, p = 1.959964, found / trials
    return (p + z * z / (2 * trials) - z * np.sqrt(p * (1 - p) / trials + z * z / (4 * trials**2))) / (1 + z * z / trials)


def test_items_and_seeds_have_their_own_variances():
    rng = np.random.default_rng(1)
    items = rng.normal(size=20000) * 0.03  # what drawing items does to every run alike
    runs = np.array([0.50, 0.52, 0.48, 0.51, 0.49])
    row = Row(runs, runs[:, None] + items)
    assert row.seed_variance == pytest.approx(0.00025)
    assert row.item_variance == pytest.approx(0.0009, rel=0.05)
    assert np.var(row.drawn(rng)) == pytest.approx(0.0009 + 0.00025 / 5, rel=0.05)  # the mean of five seeds, without bias


def test_without_seeds_the_test_is_that_of_the_items():
    """Difference 2 with standard error 1: one pair, p = 0.0455, and what shows is 1.96."""
    draws = np.random.default_rng(0).normal(size=(1, 200_000))
    a, b = Row(np.array([5.0]), 5 + draws), Row(np.array([3.0]), np.full_like(draws, 3.0))
    found = ties([a, b])
    assert found.smallest == pytest.approx(norm.ppf(0.975), abs=0.01)
    assert found.groups == [[0], [1]]


def test_few_seeds_take_more_than_the_normal_distribution_says():
    """Two systems of two seeds: two degrees of freedom, so that a difference of three standard errors is not enough."""
    a, b = (Row(np.array(runs), np.repeat(np.array(runs)[:, None], 50_000, 1)) for runs in ([1.0, 3.0], [5.25, 7.25]))
    found = ties([a, b])  # Welch's t = 4.25 / sqrt(2) = 3.005, 2 degrees: p = 0.095
    assert found.groups == [[1, 0]]
    assert found.smallest == pytest.approx(t.ppf(0.975, 2) * 2**0.5, rel=0.02)


def test_groups_are_the_largest_without_a_separated_pair():
    order = [2, 0, 1, 3]
    assert groups_of(order, set()) == [[2, 0, 1, 3]]
    assert groups_of(order, {frozenset((2, 3)), frozenset((2, 1))}) == [[2, 0], [0, 1, 3]]
    rng = np.random.default_rng(3)
    for _ in range(50):
        separated = {frozenset(pair) for pair in itertools.combinations(range(6), 2) if rng.random() < 0.4}
        slow = [set(c) for n in range(1, 7) for c in itertools.combinations(range(6), n)
                if not any(frozenset(pair) in separated for pair in itertools.combinations(c, 2))]  # fmt: skip
        largest = sorted(sorted(c) for c in slow if not any(c < other for other in slow))
        assert sorted(map(sorted, groups_of(range(6), separated))) == largest


def test_the_best_group_comes_first_also_where_less_is_better():
    runs = [np.array([0.1, 0.11]), np.array([0.9, 0.91])]
    rows = [Row(own, np.repeat(own[:, None], 100, 1)) for own in runs]
    assert ties(rows).groups == [[1], [0]]
    assert ties(rows, lower_is_better=True).groups == [[0], [1]]


def test_equal_rows_are_tied_and_nothing_is_divided_by_zero():
    row = Row(np.array([0.5]), np.full((1, 10), 0.5))
    other = Row(np.array([0.6]), np.full((1, 10), 0.6))
    assert ties([row, row]).groups == [[0, 1]]
    assert ties([row, other]).groups == [[1], [0]]


@pytest.mark.long
def test_200_contests_find_what_is_there_and_nothing_else():
    """One method under two names stays in one group, and twice the smallest difference is seen: each in nine of ten contests or more."""
    rng = np.random.default_rng(20261124)
    together = seen = 0
    for _ in range(200):
        rates = [*REAL, REAL[3]]  # the fourth method once more, trained with other seeds
        found = ties(rows_of(contest(rates, rng), rng))
        together += any({3, len(REAL)} <= set(group) for group in found.groups)
        planted = [*REAL, REAL[3] + 2 * found.smallest]
        again = ties(rows_of(contest(planted, rng), rng))
        seen += not any({3, len(REAL)} <= set(group) for group in again.groups)
    assert lower_bound(together) >= 0.9, together
    assert lower_bound(seen) >= 0.9, seen


def test_a_table_prints_its_ties_or_why_it_has_none(tmp_path):
    import pyarrow as pa

    from crosslign.files import write_json, write_rows
    from crosslign.paths import resamples_path
    from crosslign.reporting.layout import lay_out

    rng, select = np.random.default_rng(4), {"task": "t", "subset": "de", "metric": "accuracy", "protocol": "", "direction": ""}
    items = rng.normal(size=400) * 0.01

    def cell(name, *values):
        scores = []
        for seed, value in enumerate(values):
            record = {
                "eval": "t",
                "value": value,
                "seed": seed if len(values) > 1 or name == "C" else None,
                "run_id": f"{name}-s{seed}",
                "n_items": 9,
            }
            path = tmp_path / "scores" / f"{name}{seed}.json"
            write_json(path, {"records": [{**select, **record}]})
            row = {**{key: [select[key]] for key in ("subset", "metric", "protocol", "direction")}, "values": [list(value + items)]}
            write_rows(resamples_path(path), pa.table(row), "resamples")
            scores.append(str(path.relative_to(tmp_path)))
        return {"scores": scores, "select": select}

    def notes(*cells):
        rows = [{"label": label} for label, _ in cells]
        table = {"id": "t", "paper": "p", "scale": "paper", "stand_in": False, "title": "T", "caption": "", "rows": rows, "footnotes": [],
                 "columns": [{"label": "x", "task": "t"}], "cells": [[own] for _, own in cells], "print": {"ties": True}}  # fmt: skip
        return [text for _, text in lay_out(table, tmp_path, tmp_path).footnotes]

    base, one, two = cell("base", 0.1), cell("A", 0.50, 0.51, 0.52), cell("B", 0.505, 0.515, 0.525)
    (said,) = [text for text in notes(("base", base), ("A", one), ("B", two)) if text.startswith("x: ")]
    assert said.startswith("x: {B; A} {base}. Standard deviation of a row's score over items 1.0, over seeds 1.0; the smallest difference ")
    items[:250] = np.nan  # more than half of the resamples leave the score undefined
    (said,) = [text for text in notes(("base", base), ("D", cell("D", 0.5, 0.6))) if text.startswith("x: ")]
    assert said == "x: ties are not judged, because too few of the resamples are defined."
    assert any(
        "x: ties are not judged, because a trained row has one seed alone." in text for text in notes(("base", base), ("C", cell("C", 0.4)))
    )


def test_variances_of_nothing_leave_no_number_that_is_none():
    """Seeds that differ where the resamples do not: the degrees of freedom are those of the seeds, and no difference is needed to show."""
    a, b = (Row(np.array(runs), np.full((2, 10), runs[0])) for runs in ([0.5, 0.5 + 1e-12], [0.6, 0.6]))
    found = ties([a, b])
    assert (found.groups, found.smallest) == ([[1], [0]], 0)
    assert degrees_of(a, b, 0.0) == 1
    # Welch's degrees lie between those of the row with the fewest seeds and the sum of both rows'.
    rng = np.random.default_rng(0)
    for sizes in ((2, 2), (2, 5), (4, 9)):
        rows = [Row(rng.normal(size=n), np.zeros((n, 1))) for n in sizes]
        variance = sum(row.seed_variance / len(row.runs) for row in rows)
        assert min(sizes) - 1 <= degrees_of(*rows, variance) <= sum(sizes) - 2 + 1e-9
