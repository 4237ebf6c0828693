"""The choice among trials: the best dev score after the last step, and what is no score."""

import json

import pytest

from crosslign.errors import InputError
from crosslign.training.choice import write_choice

RATE = "train.learning_rate"


def chosen(tmp_path, *scores):
    """Return the choice among trials with these scores at their last evaluation; `...` is a trial that was never evaluated."""
    recipe = {"system": "T", "by": {"task": "dev_task"}, "trials": {f"T-t{n}-s1": {RATE: n / 100} for n in range(len(scores))}}
    folders = {}
    for run, score in zip(recipe["trials"], scores, strict=True):
        folders[run] = tmp_path / run
        folders[run].mkdir()
        evaluations = [] if score is ... else [{"step": 4, "scores": {"dev": 0.99}}, {"step": 8, "scores": {"dev": score}}]
        (folders[run] / "selection.json").write_text(json.dumps({"looks": evaluations}), encoding="utf-8")
    counts = write_choice(recipe, folders, tmp_path / "T.json")
    return json.loads((tmp_path / "T.json").read_text(encoding="utf-8")), counts


def test_the_best_score_after_the_last_step_chooses_and_of_equal_ones_the_first(tmp_path):
    said, counts = chosen(tmp_path, 0.2, None, 0.5, ..., 0.5)
    assert (said["run"], said["chosen"]) == ("T-t2-s1", {RATE: 0.02})
    assert [trial["score"] for trial in said["trials"]] == [0.2, None, 0.5, None, 0.5]
    assert counts == {"trials": 5, "scored": 3, "chosen": {RATE: 0.02}}


def test_without_a_score_nothing_is_chosen(tmp_path):
    with pytest.raises(InputError, match=r"/T\.json: .* T; .* 2 .*dev_task.*`tune: values:`"):
        chosen(tmp_path, None, ...)
