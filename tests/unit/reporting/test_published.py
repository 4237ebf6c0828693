"""Published figures: looked up by block and model, and refused where a score is no number."""

import pytest

from crosslign.errors import InputError
from crosslign.reporting.published import read_published

HEAD = "paper,table,group,model,model_label,task,subset,metric,value,std,direction,note\n"
COLUMN = {"published": {"task": "xnli", "subset": "avg", "metric": "accuracy"}}


def table(tmp_path, *lines):
    (tmp_path / "t.csv").write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    return read_published(tmp_path, "t")


def test_one_model_in_two_blocks_has_two_figures(tmp_path):
    found = table(tmp_path, "p,1,transfer,m,M,xnli,avg,accuracy,74.9,,higher,", "p,1,train,m,M,xnli,avg,accuracy,78.2,,higher,")
    assert found.figure({"group": "train", "published": "m"}, COLUMN) == 78.2
    assert found.figure({"group": "transfer", "published": "m"}, COLUMN) == 74.9


def test_a_row_under_another_heading_finds_its_model(tmp_path):
    found = table(tmp_path, "p,1,Unsupervised,m,M,xnli,avg,accuracy,74.9,,higher,")
    assert found.figure({"group": "No training", "published": "m"}, COLUMN) == 74.9
    assert found.figure({"group": "No training"}, COLUMN) is None
    assert found.figure({"published": "other"}, COLUMN) is None


def test_settings_that_are_no_numbers_are_left_out_and_scores_refused(tmp_path):
    assert table(tmp_path, "p,9,,m,K,hyperparameter,queue,setting,409k,,,").figure({"published": "m"}, COLUMN) is None
    with pytest.raises(InputError, match=r"t\.csv:2: value '7a' is no number"):
        table(tmp_path, "p,1,,m,M,xnli,avg,accuracy,7a,,higher,")


def test_a_table_that_was_never_printed_has_none(tmp_path):
    assert read_published(tmp_path, "absent").figure({"published": "m"}, COLUMN) is None


def test_a_model_that_was_quoted_and_run_again_has_the_figure_of_each_label(tmp_path):
    found = table(tmp_path, "p,7,,m,M∗,xnli,avg,accuracy,55.5,,higher,", "p,7,,m,M,xnli,avg,accuracy,55.6,,higher,")
    assert found.figure({"label": "M∗", "published": "m"}, COLUMN) == 55.5
    assert found.figure({"label": "M", "published": "m"}, COLUMN) == 55.6
    assert found.figure({"label": "ours", "published": "m"}, COLUMN) == 55.5


def test_a_block_that_lacks_a_figure_does_not_take_that_of_another(tmp_path):
    found = table(tmp_path, "p,1,transfer,m,M,xnli,avg,accuracy,74.9,,higher,", "p,1,train,m,M,xnli,en,accuracy,85.0,,higher,")
    assert found.figure({"group": "train", "label": "M", "published": "m"}, COLUMN) is None
