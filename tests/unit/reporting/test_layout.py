"""A table ready to print: letters of footnotes, and the budget under it: what its rows took, and a row that is off is refused."""

import itertools

import numpy as np
import pytest

from crosslign.config.budgets import off
from crosslign.errors import InputError
from crosslign.files.lineage import Lineage
from crosslign.reporting.counts import budget_note, tuning_note, write_counts
from crosslign.reporting.layout import _Footnotes, by_letter
from crosslign.training.optimiser import steps_within

ROWS = [{"label": "none"}, {"label": "both"}, {"label": "direct"}]
NAMES = [row["label"] for row in ROWS]


def test_equal_texts_share_a_letter_and_two_letters_follow_z():
    notes = _Footnotes()
    letters = [notes.of(f"note {number}") for number in range(702)]
    assert letters[:3] + letters[25:28] + letters[51:53] + letters[-1:] == ["a", "b", "c", "z", "aa", "ab", "az", "ba", "zz"]
    assert len(set(letters)) == 702
    assert sorted(letters, key=by_letter) == letters
    again = _Footnotes()
    assert again.join(["x", "y\nz", "x"]) == "a,b"
    assert (again.of("y z"), again.letters) == ("b", {"x": "a", "y z": "b"})


@pytest.fixture
def note(tmp_path):
    """Return what a table of budget 1e9 says of a row of two trainings and one of one, by their FLOPs, in so many steps each."""
    calls = itertools.count()

    def said(warm, main, direct, steps=(500, 500, 500)):
        results, folders = tmp_path / str(next(calls)), {}
        for name, flops, taken in zip(("W-s1", "M-s1", "D-s1"), (warm, main, direct), steps, strict=True):
            folders[name] = results / "systems" / name
            folders[name].mkdir(parents=True)
            encoded = {"encoded": {"sentences": 3, "tokens": 9, "tokens_with_gradient": 9, "flops": flops}} if flops else {}
            Lineage("rule", {}, [], results, counts={"steps": taken, **encoded}).write(folders[name], "system")
        write_counts({"systems": folders}, results / "scores" / "counts" / "t.json")
        table = {"id": "t", "budget": 1e9, "rows": ROWS, "spent": [[], [["M-s1", "W-s1"]], [["D-s1"]]]}
        return budget_note(table, results, NAMES)

    return said


def test_a_table_prints_its_budget_and_what_each_row_took_of_it(note):
    said = note(2.5e8, 7.44e8, 1.003e9)
    assert "1e+09 FLOPs" in said
    assert "both 99.4; direct 100.3." in said


def test_runs_of_a_row_that_took_unequally_much_are_told_from_least_to_most(tmp_path):
    folders = {}
    for run, flops in (("D-s1", 1.003e9), ("D-s2", 0.996e9), ("D-s3", 1e9)):
        folders[run] = tmp_path / "systems" / run
        folders[run].mkdir(parents=True)
        encoded = {"sentences": 3, "tokens": 9, "tokens_with_gradient": 9, "flops": flops}
        Lineage("rule", {}, [], tmp_path, counts={"steps": 500, "encoded": encoded}).write(folders[run], "system")
    write_counts({"systems": folders}, tmp_path / "scores" / "counts" / "t.json")
    table = {"id": "t", "budget": 1e9, "rows": ROWS[2:], "spent": [[[run] for run in folders]]}
    assert "direct 99.6 to 100.3." in budget_note(table, tmp_path, NAMES[2:])


def test_a_row_that_is_off_by_more_than_a_hundredth_is_refused(note):
    with pytest.raises(
        InputError,
        match=r"table t: .*'direct'.* 1\.011e\+09 .* 1e\+09; .* 1 %",
    ):
        note(2.5e8, 7.5e8, 1.011e9)


def test_a_row_of_few_long_steps_may_be_off_by_one_of_each_of_its_trainings(note):
    assert "both 102.8; direct 100.0." in note(2.54e8, 7.74e8, 1e9, steps=(20, 40, 500))  # steps of 1.27 % and 1.94 %
    with pytest.raises(InputError, match=r"table t: .*'both'.* 1\.035e\+09"):
        note(2.58e8, 7.77e8, 1e9, steps=(20, 40, 500))


def test_what_the_trainer_ends_at_is_never_refused():
    """Chains of one to three trainings with steps of 0.5 to 4 % of the budget, of which nearly half of a step is missed here and there."""
    rng, missed = np.random.default_rng(1), []
    for trainings, size in [(t, s) for t in (1, 2, 3) for s in (5e6, 2e7, 4e7)] * 20:
        spent, step = 0.0, 0.0
        for _ in range(trainings):
            own = rng.uniform(0.7, 1.3, 300) * size
            taken = steps_within(1e9 / trainings, own.__getitem__, "S")
            spent, step = spent + own[:taken].sum(), step + own[:taken].mean()
        missed.append(abs(spent - 1e9))
        assert not off(spent, 1e9, step)
    assert max(missed) > 2e7  # so that a fixed hundredth would have refused some


def test_a_run_whose_tokens_nobody_counted_is_named(note):
    with pytest.raises(InputError, match=r"systems/M-s1: .*counted"):
        note(2.5e8, None, 1e9)


def test_a_table_without_trainings_says_nothing_of_its_budget(tmp_path):
    assert budget_note({"id": "t", "budget": 1e9, "rows": ROWS[:1], "spent": [[]]}, tmp_path, NAMES[:1]) == ""


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
    assert "4 trials for each trained row, in addition to its budget, judged by dev_task" in said
    assert "terms.0.temperature 0.05 in 1 of 1 system; train.learning_rate 0.0001 in 1 of 3 systems, 0.0004 in 2 of 3 systems." in said
