"""Published figures: looked up by block and model, and refused where a score is not a number."""

import pytest

from crosslign.errors import InputError
from crosslign.reporting.published import Figure, published_of, read_published

HEAD = "paper,table,group,model,model_label,task,subset,metric,value,std,direction,note\n"
ERRATA = "table,group,model,model_label,task,subset,metric,text\n"
COLUMN = {"published": {"task": "xnli", "subset": "avg", "metric": "accuracy"}}


def table(tmp_path, *lines):
    (tmp_path / "t.csv").write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    return read_published(tmp_path, "t")


def test_one_model_in_two_blocks_has_two_figures(tmp_path):
    found = table(tmp_path, "p,1,transfer,m,M,xnli,avg,accuracy,74.9,,higher,", "p,1,train,m,M,xnli,avg,accuracy,78.2,,higher,")
    assert found.at({"group": "train", "published": "m"}, COLUMN).number == 78.2
    assert found.at({"group": "transfer", "published": "m"}, COLUMN).number == 74.9


def test_a_row_under_another_heading_finds_its_model(tmp_path):
    found = table(tmp_path, "p,1,Unsupervised,m,M,xnli,avg,accuracy,74.9,,higher,")
    assert found.at({"group": "No training", "published": "m"}, COLUMN).number == 74.9
    assert found.at({"group": "No training"}, COLUMN).number is None
    assert found.at({"published": "other"}, COLUMN).number is None


def test_settings_that_are_no_numbers_are_left_out_and_scores_refused(tmp_path):
    assert table(tmp_path, "p,9,,m,K,hyperparameter,queue,setting,409k,,,").at({"published": "m"}, COLUMN).number is None
    with pytest.raises(InputError, match=r"t\.csv:2: .*'7a'"):
        table(tmp_path, "p,1,,m,M,xnli,avg,accuracy,7a,,higher,")


def test_a_table_that_was_never_printed_has_none(tmp_path):
    assert read_published(tmp_path, "absent").at({"published": "m"}, COLUMN).number is None


def test_a_model_that_was_quoted_and_run_again_has_the_figure_of_each_label(tmp_path):
    found = table(tmp_path, "p,7,,m,M∗,xnli,avg,accuracy,55.5,,higher,", "p,7,,m,M,xnli,avg,accuracy,55.6,,higher,")
    assert found.at({"label": "M∗", "published": "m"}, COLUMN).number == 55.5
    assert found.at({"label": "M", "published": "m"}, COLUMN).number == 55.6
    assert found.at({"label": "ours", "published": "m"}, COLUMN).number == 55.5


def test_a_block_that_lacks_a_figure_does_not_take_that_of_another(tmp_path):
    found = table(tmp_path, "p,1,transfer,m,M,xnli,avg,accuracy,74.9,,higher,", "p,1,train,m,M,xnli,en,accuracy,85.0,,higher,")
    assert found.at({"group": "train", "label": "M", "published": "m"}, COLUMN).number is None


def test_a_figure_keeps_its_letters_its_deviation_and_what_does_not_add_up_about_it(tmp_path):
    lines = [
        "table,group,model,model_label,task,subset,metric,text",
        "t,,m;n,,xnli,,,no mean of its cells",
        "other,,m,,,,,of another table",
    ]
    (tmp_path / "errata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = table(tmp_path, "p,1,,m,M,xnli,avg,accuracy,50.0,0.20,higher,", "p,1,,k,K,xnli,avg,accuracy,51,,higher,")
    assert found.at({"published": "m"}, COLUMN) == Figure("50.0", "0.20", ("no mean of its cells",))
    assert found.at({"published": "k"}, COLUMN) == Figure("51")


def test_an_erratum_of_no_figure_is_refused(tmp_path):
    (tmp_path / "errata.csv").write_text(f"{ERRATA}t,,x,,,,,wrong\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"errata\.csv:2: .*erratum.*t\.csv"):
        table(tmp_path, "p,1,,m,M,xnli,avg,accuracy,50.0,,higher,")


def test_an_erratum_with_a_comma_too_many_is_refused_by_its_line(tmp_path):
    (tmp_path / "errata.csv").write_text(f"{ERRATA}t,,m,,,,,no mean, of its cells\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"errata\.csv:2: .*fields"):
        table(tmp_path, "p,1,,m,M,xnli,avg,accuracy,50.0,,higher,")


def test_a_row_says_what_was_printed_for_it_under_another_table_and_is_refused_where_nothing_was(tmp_path):
    table(tmp_path, "p,1,,m,M,xnli,avg,accuracy,50.0,,higher,")
    resolved = {"id": "strict", "rows": [{"label": "M", "published": "m"}, {"label": "N"}], "columns": [COLUMN]}
    assert published_of({**resolved, "published_from": "t"}, tmp_path).at(resolved["rows"][0], COLUMN).value == "50.0"
    with pytest.raises(InputError, match=r"table strict: .*'M'; .*strict\.csv.*'m'"):
        published_of(resolved, tmp_path)


ROW = "p,1,,m,M,xnli,avg,accuracy,74.9,,higher,"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{HEAD}{ROW}\n{ROW.replace('74.9', '47.9')}\n", r"t\.csv:3: .*twice; m .*xnli/avg/accuracy = 74\.9"),
        (HEAD.replace(",value", ""), r"t\.csv: .*'value'.*\['direction', 'group'"),
        (f"{HEAD}p,1,,m,M,xnli,avg,accuracy,74.9\n", r"t\.csv:2: .*fields"),
        (f"{HEAD}{ROW},7\n", r"t\.csv:2: .*fields"),
    ],
    ids=["twice", "a column gone", "fields gone", "a comma too many"],
)
def test_a_file_of_figures_with_a_slip_is_refused(tmp_path, text, said):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_published(tmp_path, "t")
