"""From measures to records: averages are made of what they name, and records say of what they are made."""

from __future__ import annotations

import numpy as np
import pytest
from build_sets import build, matrix

from crosslign.errors import InputError
from crosslign.tasks.measures import Measure
from crosslign.tasks.score import averages_of, checked_measures, score

BOTH = {"both": ["de", "fr"]}
STS = {"scorer": "sts", "texts": {"test": "tiny"}, "main": {"metric": "spearman", "subset": "avg"}, "averages": {"avg": ["b", "a"]}}


def of(subset, value=0.5, n_items=3, **more):
    return Measure(subset, "accuracy", value, n_items, **more)


def graded(**options):
    """Records of two subsets of three pairs each, ranked rightly in the one and wrongly in the other."""
    sides = [f"{n}" for n in range(3)]
    links = [(n, n) for n in range(3)]
    evaluation = build({"b": (sides, sides, links), "a": (sides, sides, links)}, ("first", "second"), {"b": [0, 1, 2], "a": [2, 1, 0]})
    vectors = {("xx", side): [1.0, 0.0] for side in sides} | {("en", side): [1.0, 2.0 - n] for n, side in enumerate(sides)}
    return score("sts", {**STS, **options}, {"test": matrix(evaluation, vectors)}, {"test": evaluation})


def test_an_average_is_the_plain_mean_of_all_its_subsets():
    (made,) = averages_of([of("de", 0.5, 3, threshold_from="dev"), of("fr", 0.25, 5, threshold_from="dev"), of("sw", 0.9)], BOTH)
    assert (made.subset, made.value, made.n_items, made.threshold_from) == ("both", 0.375, 8, "dev")


@pytest.mark.parametrize(
    ("measures", "reason"),
    [([of("de")], "no subset 'fr'"), ([of("de"), of("fr", None, reason="one class")], "fr: one class")],
    ids=["lacks one", "one is undefined"],
)
def test_an_average_of_less_than_it_names_is_undefined(measures, reason):
    (made,) = averages_of(measures, BOTH)
    assert (made.value, made.reason) == (None, reason)


def test_an_average_of_subsets_that_are_not_there_is_not_made():
    assert averages_of([of("sw")], BOTH) == []


def test_an_average_has_an_interval_only_where_all_its_subsets_have_one():
    draws = [np.array([0.25, 0.75]), np.array([0.0, 0.5])]
    (made,) = averages_of([of("de", resamples=draws[0]), of("fr", resamples=draws[1])], BOTH)
    assert made.resamples.tolist() == [0.125, 0.625]
    (made,) = averages_of([of("de", resamples=draws[0]), of("fr")], BOTH)
    assert made.resamples is None


def test_an_average_of_a_collapsed_subset_says_so():
    (made,) = averages_of([of("de"), of("fr", collapsed="one class for all")], BOTH)
    assert made.collapsed == "1 of 2 subsets, in fr one class for all"


def test_what_a_scorer_averaged_itself_is_part_of_no_other_average():
    made = averages_of([of("de", 0.5), of("fr", 0.25), of("both", 0.0)], {**BOTH, "every": "all"})
    assert [(one.subset, one.value) for one in made] == [("both", 0.375), ("every", 0.375)]


def test_records_are_sorted_and_one_of_them_is_the_main_one():
    records = graded()
    assert [record.subset for record in records if record.metric == "spearman"] == ["a", "avg", "b"]
    assert {record.subset: record.value for record in records if record.metric == "spearman"} == pytest.approx({"a": -1, "avg": 0, "b": 1})
    assert [(record.subset, record.metric) for record in records if record.main] == [("avg", "spearman")]


@pytest.mark.parametrize("subset", ["c", "a"], ids=["of nothing", "of a subset and an average of its name"])
def test_a_main_score_of_no_or_of_two_records_is_refused(subset):
    with pytest.raises(InputError, match=r"tasks\.sts\.main: `main` .*a pearson; a spearman"):
        graded(main={"metric": "spearman", "subset": subset}, averages={"a": ["a", "b"]})


def test_only_a_share_that_no_resample_changes_has_an_exact_interval():
    """All pairs of "b" rank rightly in every resample; a correlation is no share, and its interval stays the point that it is."""
    (right,) = [record for record in graded(resamples=40) if (record.subset, record.metric) == ("b", "spearman")]
    assert (right.ci_low, right.ci_high) == pytest.approx((1, 1))


@pytest.mark.parametrize(("returned", "said"), [(None, "NoneType"), ([0.5], "float"), ([], "nothing")])
def test_a_scorer_that_gives_no_measures_is_named(returned, said):
    with pytest.raises(InputError) as found:
        checked_measures("mine", returned)
    assert said in found.value.why
    assert found.value.where == "scorer mine"
