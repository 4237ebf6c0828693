"""The budget under a table: what its rows took, and a row that is off is refused."""

import pytest

from crosslign.errors import InputError
from crosslign.files.lineage import Lineage
from crosslign.reporting.budget import budget_note, tuning_note
from crosslign.reporting.counts import write_counts

ROWS = [{"label": "none"}, {"label": "both"}, {"label": "direct"}]


@pytest.fixture
def note(tmp_path):
    """Return what a table of budget 1e9 says of a row of two trainings and one of one, by the FLOPs that these took."""

    def said(warm, main, direct):
        folders = {}
        for name, flops in (("W-s1", warm), ("M-s1", main), ("D-s1", direct)):
            folders[name] = tmp_path / "systems" / name
            folders[name].mkdir(parents=True)
            encoded = {"encoded": {"sentences": 3, "tokens": 9, "tokens_with_gradient": 9, "flops": flops}} if flops else {}
            Lineage("rule", {}, [], tmp_path, counts={"steps": 5, **encoded}).write(folders[name], "system")
        write_counts({"systems": folders}, tmp_path / "scores" / "counts" / "t.json")
        table = {"id": "t", "budget": 1e9, "rows": ROWS, "spent": [[], [["M-s1", "W-s1"]], [["D-s1"]]]}
        return budget_note(table, tmp_path)

    return said


def test_a_table_prints_its_budget_and_the_row_that_is_furthest_from_it(note):
    said = note(2.5e8, 7.44e8, 1.003e9)
    assert "1e+09 FLOPs" in said
    assert "both, -0.60 %" in said


def test_a_row_that_is_off_by_more_than_a_hundredth_is_refused(note):
    with pytest.raises(
        InputError, match=r"the row 'direct' is off the table's budget; it took 1\.011e\+09 FLOPs of 1e\+09, and 1% is allowed"
    ):
        note(2.5e8, 7.5e8, 1.011e9)


def test_a_run_whose_tokens_nobody_counted_is_named(note):
    with pytest.raises(InputError, match=r"M-s1: what this run encoded was not counted; it was trained by an earlier version"):
        note(2.5e8, None, 1e9)


def test_a_table_without_a_budget_or_without_trainings_says_nothing(tmp_path):
    assert budget_note({"id": "t", "rows": ROWS}, tmp_path) == ""
    assert budget_note({"id": "t", "budget": 1e9, "rows": ROWS[:1], "spent": [[]]}, tmp_path) == ""


def test_a_table_says_how_often_what_was_chosen(tmp_path):
    folders, rate, heat = {}, "train.learning_rate", "terms.0.temperature"
    for name, chosen in (("A-s1", {rate: 1e-4}), ("A-s2", {rate: 1e-4}), ("B-s1", {rate: 4e-4, heat: 0.05}), ("C-s1", {rate: 4e-4})):
        folders[name] = tmp_path / "systems" / name
        folders[name].mkdir(parents=True)
        encoded = {"sentences": 3, "tokens": 9, "tokens_with_gradient": 9, "flops": 1e9}
        Lineage("rule", {}, [], tmp_path, counts={"steps": 5, "encoded": encoded, "chosen": chosen}).write(folders[name], "system")
    write_counts({"systems": folders}, tmp_path / "scores" / "counts" / "t.json")
    spent = [[["A-s1"], ["A-s2"]], [["B-s1"]], [["C-s1"]]]
    said = tuning_note({"id": "t", "rows": ROWS, "spent": spent, "tuned": {"trials": 4, "by": ["dev_task"]}}, tmp_path)
    assert "4 trials, beside this budget, judged by dev_task" in said
    assert "terms.0.temperature 0.05 in 1 of 1 systems; train.learning_rate 0.0001 in 1 of 3 systems, 0.0004 in 2 of 3 systems." in said
    assert tuning_note({"id": "t", "rows": ROWS, "spent": spent}, tmp_path) == ""
