"""Rows and the rows that they are compared with."""

import pytest

from crosslign.config.baselines import baseline_rows, baseline_words
from crosslign.errors import InputError

GROUPS = [
    {"group": "mBERT", "label": "mBERT", "system": "mbert"},
    {"group": "mBERT", "label": "+ Single", "system": "a"},
    {"group": "mBERT", "label": "+ Multiple", "system": "b", "against": "+ Single"},
    {"group": "XLM-R", "label": "+ Single", "system": "c"},
    {"group": "XLM-R", "label": "+ Multiple", "system": "d", "against": "+ Single"},
]


def test_rows_are_compared_with_the_first_one_that_is_run():
    quoted = {"label": "LASER", "published": "laser"}
    assert baseline_rows([quoted, *({"label": name, "system": name} for name in "ab")]) == [1, None, 1]
    assert baseline_words([quoted, *({"label": name, "system": name} for name in "ab")]) == "the row a"
    assert baseline_rows(GROUPS[:2]) == [None, 0]
    assert baseline_words(GROUPS[:2]) == "the first row"
    assert baseline_rows([quoted, quoted]) == [None, 0]
    twice = [quoted, {"label": "a", "group": "NLI", "system": "a"}, {"label": "a", "group": "MT", "system": "b"}]
    assert baseline_words(twice) == "the row a (NLI)"


def test_rows_that_name_one_are_compared_with_it_in_their_own_group_and_no_others_are():
    assert baseline_rows(GROUPS) == [None, None, 1, None, 3]
    assert baseline_words(GROUPS) == "the row + Single above it"
    assert baseline_words(GROUPS[:3]) == "the row + Single"


def test_more_than_two_rows_of_comparison_are_listed():
    rows = [*GROUPS[:3], *({"label": name, "system": name} for name in "xy")]
    rows += [{"label": "X", "system": "u", "against": "x"}, {"label": "Y", "system": "v", "against": "y"}]
    assert baseline_words(rows) == "the row of comparison (+ Single; x; y)"


def test_of_several_in_a_group_the_nearest_above_counts():
    rows = [{**row, "group": "all"} for row in GROUPS]
    assert baseline_rows(rows) == [None, None, 1, None, 3]
    assert baseline_rows([rows[2], rows[1]]) == [1, None]


def test_a_row_of_another_group_is_found():
    rows = [{"group": "None", "label": "XLMR", "system": "a"}, {"group": "full", "label": "MVA", "system": "b", "against": "XLMR"}]
    assert baseline_rows(rows) == [None, 0]


def test_a_row_that_is_not_there_is_named():
    with pytest.raises(InputError, match=r"'x': .*'Single'.*\+ Single, \+ Multiple"):
        baseline_rows([*GROUPS, {"label": "x", "against": "Single"}])
    with pytest.raises(InputError, match=r"the row 'x': [^;]*'x'.*; "):
        baseline_rows([{"label": "x", "against": "x"}])
