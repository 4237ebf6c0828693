"""Paired tests between systems, beside hand counts and their promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.paths import resamples_path
from crosslign.reporting.significance import TESTS, holm, mark_differences, paired_bootstrap, paired_t, resamples_reader, runs_of
from crosslign.reporting.values import Cell
from crosslign.tasks.records import Record
from crosslign.tasks.score import score_with_resamples, write_resamples


def test_a_difference_by_hand():
    """Differences 1, 2, 3, -1: one of four lies below zero, so p = 2 (1 + 1) / (4 + 1)."""
    found = paired_bootstrap(np.array([[2.0, 3, 4, 0]]), np.array([[1.0, 1, 1, 1]]))
    assert (found.difference, found.p_value) == (1.25, pytest.approx(0.8))


def test_equal_systems_do_not_differ():
    values = np.random.default_rng(0).normal(size=(1, 1000))
    assert paired_bootstrap(values, values).p_value == 1
    assert paired_bootstrap(values + 1, values).p_value == pytest.approx(2 / 1001)


def test_seeds_that_differ_may_be_chance():
    rng = np.random.default_rng(1)
    items = rng.normal(0, 0.01, 1000)
    baseline = items[None]
    one = paired_bootstrap(items[None] + 0.05, baseline)
    several = paired_bootstrap(items + np.array([[0.15], [-0.05], [0.05]]), baseline)
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
    mark_differences(grid, [None, 0, 0, 0, 0, 0], ["base", "", "", "", "", ""], TESTS["paired_bootstrap"](tmp_path))
    assert [row[0].marks for row in grid] == [[], [], [], ["below"], ["above"], []]
    assert [row[0].p_value is None for row in grid] == [True, False, False, False, False, True]
    assert grid[1][0].p_value == 1
    assert {row[0].against for row in grid[1:5]} == {"base"}


def test_a_stricter_level_marks_less(tmp_path):
    for level, marks in ((0.05, ["below"]), (1e-9, [])):
        grid = [[cell(tmp_path, name, wrong)] for name, wrong in (("base", 40), ("worse", 55))]
        mark_differences(grid, [None, 0], ["base", ""], TESTS["paired_bootstrap"](tmp_path), level)
        assert grid[1][0].marks == marks
        assert 1e-9 < grid[1][0].p_value < 0.05


def test_systems_on_other_items_are_not_compared(tmp_path):
    first, second = cell(tmp_path, "base", 40), cell(tmp_path, "fewer", 20)
    second.records = [{**record, "n_items": 150} for record in second.records]
    mark_differences([[first], [second]], [None, 0], ["base", ""], TESTS["paired_bootstrap"](tmp_path))
    assert (second.p_value, second.marks) == (None, [])


def test_resamples_are_kept_for_the_main_metric_alone(tmp_path):
    pairs = scored(10)
    score = tmp_path / "xnli.json"
    write_resamples(resamples_path(score), pairs)
    record, values = pairs[0]
    read = resamples_reader()
    assert read(score, vars(record)) == pytest.approx(values.astype(np.float32))
    assert read(score, {**vars(record), "metric": "macro_f1"}) is None
    assert read(tmp_path / "other.json", vars(record)) is None
    assert resamples_path(score).stat().st_size < 50_000


SLEEP = ([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
"""Student's hours of sleep under two drugs (Cushny and Peebles, 1905); R prints t = -4.0621, p = 0.002833."""


def test_a_paired_t_test_agrees_with_students_own_example():
    first, second = (dict(enumerate(hours)) for hours in SLEEP)
    found = paired_t(first, second)
    assert (found.difference, found.p_value) == (pytest.approx(-1.58), pytest.approx(0.00283289, abs=5e-9))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=6))
def test_a_paired_t_test_agrees_with_the_area_under_the_density(pairs):
    """The density of t, summed in small steps of x = atan(t / sqrt(n)), where it is a power of a cosine."""
    differences = np.array([one - other for one, other in pairs])
    found = paired_t(dict(enumerate(one for one, _ in pairs)), dict(enumerate(other for _, other in pairs)))
    if np.ptp(differences) < 1e-12:
        assert found is None
        return
    n = len(pairs) - 1
    t = abs(differences.mean()) / (differences.std(ddof=1) / np.sqrt(len(pairs)))
    angles = np.linspace(0, np.pi / 2, 20_001)
    density = np.cos((angles[1:] + angles[:-1]) / 2) ** (n - 1)
    tail = density[angles[:-1] >= np.arctan(t / np.sqrt(n))].sum() / density.sum()
    assert found.p_value == pytest.approx(tail, abs=3e-4)


def test_a_paired_t_test_reads_seeds_that_both_have_and_no_others():
    system, baseline = {42: 0.5, 43: 0.7, 44: 0.9}, {44: 0.4, 43: 0.5, 42: 0.4, 99: 0.0}
    assert paired_t(system, baseline) == paired_t(system, {seed: baseline[seed] for seed in system})
    assert paired_t(system, {42: 0.1}) is None
    assert paired_t(system, {seed: value - 0.1 for seed, value in system.items()}) is None


def seeded(*values, first=42):
    records = [{"seed": first + at, "value": value, "n_items": 10} for at, value in enumerate(values)]
    return Cell(ours=sum(values) / len(values), records=records)


def test_an_average_is_tested_by_the_average_of_each_seed():
    average = Cell(ours=0.5, parts=[seeded(0.1, 0.2, 0.4), Cell(ours=0.6, parts=[seeded(0.3, 0.4, 0.6), seeded(0.5, 0.6)])])
    assert runs_of(average) == {42: pytest.approx(0.25), 43: pytest.approx(0.35)}


def test_an_encoder_without_training_stands_beside_every_seed():
    """As scipy's t-test of one sample: its single run has no seed."""
    released = Cell(ours=0.5, records=[{"seed": None, "value": 0.5}])
    values = (0.52, 0.55, 0.53, 0.56, 0.51)
    found = TESTS["paired_t"](None)(seeded(*values), released)
    assert found.p_value == pytest.approx(ttest_1samp(values, 0.5).pvalue)
    assert found.difference == pytest.approx(0.034)
    average = Cell(ours=0.5, parts=[released, released])
    assert TESTS["paired_t"](None)(Cell(ours=0.5, parts=[seeded(*values)] * 2), average).p_value == pytest.approx(found.p_value)
    assert TESTS["paired_t"](None)(released, seeded(*values)) is None
    assert TESTS["paired_t"](None)(released, released) is None


def test_each_row_is_tested_against_the_row_that_it_names():
    """Of two groups, the second row against the first; a single run cannot be tested, and the rows that name none are not."""
    single, multiple = seeded(0.50, 0.52, 0.51, 0.53, 0.50), seeded(0.60, 0.61, 0.62, 0.63, 0.59)
    other, near = seeded(0.70, 0.72, 0.71, 0.74, 0.69), seeded(0.71, 0.71, 0.70, 0.75, 0.69)
    grid = [[seeded(0.1)], [single], [multiple], [other], [near]]
    labels = ["XLM-R", "+ Single", "+ Multiple", "+ Single", "+ Multiple"]
    mark_differences(grid, [None, 0, 1, None, 3], labels, TESTS["paired_t"](None))
    assert [row[0].marks for row in grid] == [[], [], ["above"], [], []]
    assert [row[0].against for row in grid] == ["", "", "+ Single", "", "+ Single"]
    differences = np.array([0.10, 0.09, 0.11, 0.10, 0.09])
    assert grid[2][0].p_value == pytest.approx(2 * paired_t(dict(enumerate(differences)), dict.fromkeys(range(5), 0.0)).p_value)
