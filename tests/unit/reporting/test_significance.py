"""Paired tests between systems, beside hand counts and their promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.paths import resamples_path
from crosslign.reporting.cell import Cell
from crosslign.reporting.significance import holm, mark_differences, paired_bootstrap, read_resamples
from crosslign.tasks.records import Record
from crosslign.tasks.score import score_with_resamples
from crosslign.tasks.write import write_resamples


def test_a_difference_by_hand():
    """Differences 1, 2, 3, -1: one of four lies below zero, so p = 2 (1 + 1) / (4 + 1)."""
    found = paired_bootstrap(np.array([[2.0, 3, 4, 0]]), np.array([[1.0, 1, 1, 1]]))
    assert (found.difference, found.p_value) == (1.25, pytest.approx(0.8))
    assert (found.ci_low, found.ci_high) == tuple(np.percentile([1, 2, 3, -1], [2.5, 97.5]))


def test_equal_systems_do_not_differ():
    values = np.random.default_rng(0).normal(size=(1, 1000))
    assert paired_bootstrap(values, values).p_value == 1
    assert paired_bootstrap(values + 1, values).p_value == pytest.approx(2 / 1001)


def test_seeds_widen_the_interval():
    rng = np.random.default_rng(1)
    items = rng.normal(0, 0.01, 1000)
    baseline = items[None]
    one = paired_bootstrap(items[None] + 0.05, baseline)
    several = paired_bootstrap(items + np.array([[0.15], [-0.05], [0.05]]), baseline)
    assert one.ci_high - one.ci_low < 1e-9
    assert several.ci_high - several.ci_low > 0.1
    assert one.p_value < 0.01 < several.p_value


def test_resamples_that_are_not_defined_are_left_out():
    values = np.array([[1.0, np.nan, 3]])
    assert paired_bootstrap(values, np.zeros((1, 3))).difference == 2
    assert paired_bootstrap(np.full((1, 3), np.nan), np.zeros((1, 3))) is None
    assert paired_bootstrap(values, np.zeros((1, 4))) is None


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_keeps_the_order_and_never_lowers(values):
    corrected = holm(values)
    assert all(value <= other <= 1 for value, other in zip(values, corrected, strict=True))
    for at, value in enumerate(values):
        assert all(corrected[at] <= corrected[other] for other, larger in enumerate(values) if larger > value)


TASK = {"scorer": "classification", "texts": {"test": "demo"}, "output": "logits", "main": {"metric": "accuracy", "subset": "de"}}


def scored(wrong, n=200):
    """A system that errs on the items below `wrong`."""
    builder = EvaluationBuilder("demo")
    for number in range(n):
        builder.item(str(number), "de", "pair", "de", f"text {number}", pair_text="b", label=[number % 2])
    gold = np.arange(n) % 2
    logits = np.eye(2)[np.where(np.arange(n) < wrong, 1 - gold, gold)]
    return score_with_resamples("xnli", TASK, {"test": logits}, {"test": builder.build()})


def cell(results, name, wrong):
    pairs = scored(wrong)
    score = results / f"{name}.json"
    write_resamples(resamples_path(score), pairs)
    record: Record = next(record for record, _ in pairs if record.main)
    return Cell(ours=record.value, score_files=[score.name], records=[vars(record)])


def test_a_table_marks_what_differs_from_its_first_row(tmp_path):
    """One more error of 200 is chance; thirty more are none, and small intervals of single systems would not tell."""
    grid = [[cell(tmp_path, name, wrong)] for name, wrong in (("base", 40), ("same", 40), ("near", 41), ("worse", 55), ("best", 20))]
    grid.append([Cell(reason="no weights")])
    mark_differences(grid, tmp_path)
    assert [row[0].marks for row in grid] == [[], [], [], ["below"], ["above"], []]
    assert [row[0].p_value is None for row in grid] == [True, False, False, False, False, True]
    assert grid[1][0].p_value == 1


def test_resamples_are_kept_for_the_main_metric_alone(tmp_path):
    pairs = scored(10)
    score = tmp_path / "xnli.json"
    write_resamples(resamples_path(score), pairs)
    record, values = pairs[0]
    assert read_resamples(score, vars(record)) == pytest.approx(values.astype(np.float32))
    assert read_resamples(score, {**vars(record), "metric": "macro_f1"}) is None
    assert read_resamples(tmp_path / "other.json", vars(record)) is None
    assert resamples_path(score).stat().st_size < 5000
