"""Tables against hand-computed cells: best marks, means, deviations, reasons, footnotes, hostile text."""

import csv
import io
import json
import string

import pytest

from crosslign.errors import InputError
from crosslign.files import write_json
from crosslign.reporting.formats import as_csv, as_html, as_latex, as_markdown, build_table
from crosslign.reporting.layout import lay_out
from crosslign.reporting.summary import table_as_text

HOSTILE = '<script>alert("x")</script> \x1b[31m|_${}%&#\u202e'


def score(folder, run, value, low=None, high=None, reason="", status="ok"):
    record = {
        "eval": "bucc", "subset": "de-en", "metric": "f1", "protocol": "xtreme", "direction": "", "value": value, "n_items": 10,
        "threshold": 1.05, "threshold_from": "dev", "ci_low": low, "ci_high": high, "reason": reason, "run_id": run, "checkpoint": "last",
        "status": status,
    }  # fmt: skip
    write_json(folder / "scores" / f"{run}.json", {"records": [record]})
    return f"scores/{run}.json"


def cell(*paths):
    return {"scores": list(paths), "select": {"task": "bucc", "subset": "de-en", "metric": "f1", "protocol": "xtreme", "direction": ""}}


def resolved(rows, columns, footnotes=(), **more):
    return {
        "id": "t", "paper": "p", "scale": "paper", "stand_in": False, "title": "Title", "caption": "", "columns": columns,
        "rows": [row for row, _ in rows], "cells": [cells for _, cells in rows], "footnotes": list(footnotes), **more,
    }  # fmt: skip


@pytest.fixture
def table(tmp_path):
    one = score(tmp_path, "a-s1", 0.5, 0.4, 0.6)
    seeds = [score(tmp_path, "b-s1", 0.7), score(tmp_path, "b-s2", 0.8)]
    rows = [
        ({"label": "A", "group": "G1"}, [cell(one), cell(one), {"mean_of": ["x", "y"]}]),
        ({"label": "B", "group": "G2"}, [cell(*seeds), {"reason": "no public weights"}, {"mean_of": ["x", "y"]}]),
    ]
    columns = [{"label": "x", "task": "bucc"}, {"label": "y", "task": "bucc", "better": "lower"}, {"label": "mean", "mean_of": ["x", "y"]}]
    notes = [{"at": {"column": "x"}, "text": "about x"}, {"at": {"row": "B"}, "text": "no public weights"}]
    return lay_out(resolved(rows, columns, notes), tmp_path, tmp_path)


def test_means_deviations_and_averages_are_of_unrounded_values(table):
    (a, b) = table.rows
    assert [c.ours for c in a.cells] == ["50.0", "50.0", "50.0"]
    assert b.cells[0].ours == "75.0 ± 7.1"
    assert b.cells[0].value.std == pytest.approx(0.05 * 2**0.5, abs=1e-12)
    assert [c.best for c in b.cells] == [True, False, False]


@pytest.mark.parametrize(("kind", "share"), [("sample", 1.0), ("population", 0.5**0.5)])
def test_averages_over_seeds_are_made_seed_by_seed(tmp_path, kind, share):
    x, y = (
        [score(tmp_path, f"{name}-s{n}", value) for n, value in enumerate(values)]
        for name, values in (("x", (0.1, 0.5)), ("y", (0.3, 0.9)))
    )
    rows = [({"label": "A"}, [cell(*x), cell(*y), {"mean_of": ["x", "y"]}, {"parts": [cell(*x), cell(*y)]}])]
    columns = [
        {"label": "x", "task": "bucc"},
        {"label": "y", "task": "bucc"},
        {"label": "m", "mean_of": ["x", "y"]},
        {"label": "n", "mean_of": []},
    ]
    (row,) = lay_out(resolved(rows, columns, print={"std": kind}), tmp_path, tmp_path).rows
    assert row.cells[0].value.std == pytest.approx(share * 0.4 / 2**0.5)  # of 0.1 and 0.5
    for mean in row.cells[2:]:
        assert mean.value.ours == pytest.approx(0.45)
        assert mean.value.std == pytest.approx(share * 0.5 / 2**0.5)


def test_a_table_says_which_encoder_stands_for_which(tmp_path):
    replaced = {"xlm-r": "tiny", "labse": "tiny", "mine": "small"}
    rows = [({"label": "A"}, [cell(score(tmp_path, "a-s1", 0.5))])]
    notes = lay_out(resolved(rows, [{"label": "x", "task": "bucc"}], scale="laptop", encoders=replaced), tmp_path, tmp_path).footnotes
    said = [text for _, text in notes if "encoder " in text]
    assert said == ["At this scale the encoder tiny replaces xlm-r, labse.", "At this scale the encoder small replaces mine."]


def test_an_average_of_nothing_has_the_reason_of_its_cells_and_of_a_gap_their_name(tmp_path):
    x, none, other = cell(score(tmp_path, "x", 0.1)), {"reason": "no public weights"}, {"reason": "withdrawn"}
    mean = {"mean_of": ["x", "y"]}
    rows = [({"label": name}, [*cells, mean]) for name, cells in (("A", (none, none)), ("B", (x, none)), ("C", (none, other)))]
    columns = [{"label": "x", "task": "bucc"}, {"label": "y", "task": "bucc"}, {"label": "m", "mean_of": ["x", "y"]}]
    means = [row.cells[2].value.reason for row in lay_out(resolved(rows, columns), tmp_path, tmp_path).rows]
    assert means == ["no public weights", "no value in y: no public weights", "no value in x: no public weights"]


@pytest.mark.parametrize("order", [("x", "y", "m", "n"), ("n", "m", "y", "x")])
def test_an_average_may_be_averaged_again_wherever_it_stands(tmp_path, order):
    x, y = (
        [score(tmp_path, f"{name}-s{n}", value) for n, value in enumerate(values)]
        for name, values in (("x", (0.1, 0.5)), ("y", (0.3, 0.9)))
    )
    own = {"x": cell(*x), "y": cell(*y), "m": {"mean_of": ["x", "y"]}, "n": {"mean_of": ["m", "y"]}}
    columns = [{"label": name, **({"mean_of": own[name]["mean_of"]} if name in "mn" else {"task": "bucc"})} for name in order]
    (row,) = lay_out(resolved([({"label": "A"}, [own[name] for name in order])], columns), tmp_path, tmp_path).rows
    mean = row.cells[order.index("n")].value
    assert mean.ours == pytest.approx((0.45 + 0.6) / 2)
    assert mean.std == pytest.approx(((0.7 + 0.9) / 2 - (0.2 + 0.3) / 2) / 2**0.5)  # run by run: 0.25 and 0.8
    assert mean.seeds == 2


def test_an_absent_cell_is_a_dash_with_its_reason_and_equal_footnotes_share_a_letter(table):
    b = table.rows[1]
    assert b.cells[1].ours == "–"
    assert table.footnotes[:2] == [("a", "about x"), ("b", "no public weights")]
    assert b.letters == "b" == b.cells[1].letters
    assert b.cells[2].ours == "–"


def test_columns_of_one_name_carry_their_heading_where_the_format_has_no_room_for_it(tmp_path):
    columns = [{"group": group, "label": label, "task": "bucc"} for group, label in (("F1", "de"), ("Accuracy", "de"), ("Accuracy", "fr"))]
    rows = [({"label": "A"}, [cell(score(tmp_path, "a-s1", 0.5))] * 3)]
    table = lay_out(resolved(rows, columns), tmp_path, tmp_path)
    header = next(line for line in as_markdown(table).splitlines() if line.startswith("| |"))
    assert [name.strip() for name in header.strip("|").split("|")[1:]] == ["F1<br>de", "Accuracy<br>de", "Accuracy<br>fr"]
    assert [row["column"] for row in csv.DictReader(io.StringIO(as_csv(table)))] == ["F1: de", "Accuracy: de", "fr"]


def test_rows_of_one_label_keep_their_own_cells_in_csv_and_terminal(tmp_path):
    rows = [
        ({"label": "+ Single", "group": "G", "system": system}, [cell(score(tmp_path, f"{system}-s1", value))])
        for system, value in (("A", 0.5), ("B", 0.7))
    ]
    table = lay_out(resolved(rows, [{"label": "x", "task": "bucc"}]), tmp_path, tmp_path)
    (tmp_path / "t.csv").write_text(as_csv(table), encoding="utf-8")
    with open(tmp_path / "t.csv", encoding="utf-8") as file:
        lines = [(line["row"], line["group"], line["system"], line["ours"]) for line in csv.DictReader(file)]
    assert lines == [("G: + Single (A)", "G", "A", "0.5"), ("G: + Single (B)", "G", "B", "0.7")]
    assert [line.split()[-1] for line in table_as_text(tmp_path / "t.csv").splitlines()] == ["x", "50.0", "70.0*"]


def test_an_average_names_its_runs_its_score_files_and_records_in_csv(tmp_path):
    paths = [score(tmp_path, f"a-s{n}", value) for n, value in enumerate((0.1, 0.5))]
    columns = [{"label": "x", "task": "bucc"}, {"label": "m", "mean_of": ["x"]}]
    table = lay_out(resolved([({"label": "A"}, [cell(*paths), {"mean_of": ["x"]}])], columns), tmp_path, tmp_path)
    one, mean = csv.DictReader(io.StringIO(as_csv(table)))
    for key in ("n_seeds", "score_file", "record"):
        assert mean[key] == one[key] != ""
    assert one["n_seeds"] == "2"


def test_what_was_printed_as_text_stands_in_csv(tmp_path):
    (tmp_path / "t.csv").write_text("group,model,task,subset,metric,value,direction\n,m,bucc,avg,f1,46k,\n", encoding="utf-8")
    column = {"label": "x", "task": "bucc", "published": {"task": "bucc", "subset": "avg", "metric": "f1"}}
    table = lay_out(resolved([({"label": "A", "published": "m"}, [{"reason": "not run"}])], [column]), tmp_path, tmp_path)
    assert [line["published"] for line in csv.DictReader(io.StringIO(as_csv(table)))] == ["46k"]


def test_an_undefined_value_is_a_dash_never_zero(tmp_path):
    path = score(tmp_path, "a-s1", None, reason="constant scores")
    table = lay_out(resolved([({"label": "A"}, [cell(path)])], [{"label": "x", "task": "bucc"}]), tmp_path, tmp_path)
    assert table.rows[0].cells[0].ours == "–"
    assert ("a", "constant scores") in table.footnotes


def test_a_collapsed_run_keeps_its_value_and_says_so(tmp_path):
    paths = [score(tmp_path, f"a-s{i}", 0.002, reason="all vectors are alike", status="collapsed") for i in (1, 2)]
    rows = [({"label": "A"}, [cell(*paths)]), ({"label": "B"}, [cell(score(tmp_path, "b-s1", 0.5))])]
    table = lay_out(resolved(rows, [{"label": "x", "task": "bucc"}]), tmp_path, tmp_path)
    assert [row.cells[0].ours for row in table.rows] == ["0.2 ± 0.0", "50.0"]
    assert table.footnotes == [("a", "Collapsed: all vectors are alike.")]
    assert [row.cells[0].letters for row in table.rows] == ["a", ""]


def test_intervals_beside_the_first_row_are_marked_and_those_that_touch_do_not_differ(tmp_path):
    bounds = {"first": (0.45, 0.55), "above": (0.56, 0.7), "touches above": (0.55, 0.7), "touches below": (0.3, 0.45), "below": (0.3, 0.44)}
    rows = [({"label": name}, [cell(score(tmp_path, name.replace(" ", "-"), sum(ends) / 2, *ends))]) for name, ends in bounds.items()]
    table = lay_out(resolved(rows, [{"label": "x", "task": "bucc"}]), tmp_path, tmp_path)
    assert [row.cells[0].sign for row in table.rows] == ["", "↑", "", "", "↓"]


def seeds(folder, name, *values):
    paths = [score(folder, f"{name}-s{seed}", value) for seed, value in enumerate(values, 42)]
    for seed, path in enumerate(paths, 42):
        content = json.loads((folder / path).read_text())
        content["records"][0]["seed"] = seed
        write_json(folder / path, content)
    return cell(*paths)


def test_a_paired_t_test_marks_a_row_beside_the_one_that_it_names_and_the_average_too(tmp_path):
    single, multiple = seeds(tmp_path, "s", 0.50, 0.52, 0.51), seeds(tmp_path, "m", 0.60, 0.61, 0.62)
    rows = [
        ({"label": "base", "system": "a"}, [seeds(tmp_path, "b", 0.2), {"mean_of": ["x"]}]),
        ({"label": "Single", "system": "b"}, [single, {"mean_of": ["x"]}]),
        ({"label": "Multiple", "system": "c", "against": "Single"}, [multiple, {"mean_of": ["x"]}]),
    ]
    columns = [{"label": "x", "task": "bucc"}, {"label": "Avg", "mean_of": ["x"]}]
    table = lay_out(resolved(rows, columns, print={"significance": "paired_t"}), tmp_path, tmp_path)
    assert [[c.sign for c in row.cells] for row in table.rows] == [["", ""], ["", ""], ["↑", "↑"]]
    assert "p = 0.003 against Single" in table.rows[2].cells[0].details
    text = "above the row Single: paired t-test over seeds, p < 0.05 after Holm's correction for the rows of the column."
    assert ("↑", text) in table.footnotes


def test_a_test_that_finds_nothing_says_so(tmp_path):
    rows = [
        ({"label": "A", "system": "a"}, [seeds(tmp_path, "a", 0.50, 0.52, 0.51)]),
        ({"label": "B", "system": "b"}, [seeds(tmp_path, "b", 0.51, 0.50, 0.52)]),
    ]
    table = lay_out(resolved(rows, [{"label": "x", "task": "bucc"}], print={"significance": "paired_t"}), tmp_path, tmp_path)
    assert [text for _, text in table.footnotes if "paired t-test" in text] == [
        "No cell differs from the first row: paired t-test over seeds, p < 0.05 after Holm's correction for the rows of the column."
    ]


def test_a_published_figure_stands_beside_ours_and_never_in_its_place(tmp_path):
    (tmp_path / "t.csv").write_text("group,model,task,subset,metric,value,direction\n,m,bucc,avg,f1,93.6,higher\n", encoding="utf-8")
    column = {"label": "x", "task": "bucc", "published": {"task": "bucc", "subset": "avg", "metric": "f1"}}
    rows = [
        ({"label": "run", "published": "m"}, [cell(score(tmp_path, "a", 0.9))]),
        ({"label": "not run", "published": "m"}, [{"reason": "published figure only"}]),
    ]
    table = lay_out(resolved(rows, [column]), tmp_path, tmp_path)
    markdown = as_markdown(table)
    assert "90.0 / 93.6" in markdown
    assert "| – / 93.6<sup>a</sup> |" in markdown
    assert [row["ours"] for row in csv.DictReader(io.StringIO(as_csv(table)))] == ["0.9", ""]
    reduced = lay_out({**resolved(rows, [column]), "scale": "quick"}, tmp_path, tmp_path)
    assert [shown.rows[0].cells[0].delta for shown in (table, reduced)] == ["−3.6", ""]  # a difference at the paper's scale alone
    quoting_none = lay_out({**resolved([({"label": "run"}, rows[0][1])], [column]), "scale": "quick"}, tmp_path, tmp_path)
    assert ["in grey" in str(shown.footnotes) for shown in (table, reduced, quoting_none)] == [False, True, False]


def test_no_fitting_record_says_what_the_file_holds(tmp_path):
    path = score(tmp_path, "a", 0.5)
    wrong = {"scores": [path], "select": {"task": "bucc", "subset": "fr-en", "metric": "f1", "protocol": "xtreme", "direction": ""}}
    with pytest.raises(InputError, match=r"a\.json: 0 .*bucc.*fr-en.*xtreme.*f1/de-en/xtreme/"):
        lay_out(resolved([({"label": "A"}, [wrong])], [{"label": "x", "task": "bucc"}]), tmp_path, tmp_path)


def test_hostile_text_is_inert_in_every_format(tmp_path):
    rows = [({"label": HOSTILE, "group": HOSTILE}, [cell(score(tmp_path, "a", 0.5))])]
    table = lay_out(resolved(rows, [{"label": HOSTILE, "task": "bucc"}], title=HOSTILE), tmp_path, tmp_path)
    for text in (as_markdown(table), as_csv(table), as_latex(table), as_html(table)):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<script>alert" not in as_html(table)
    assert r"\|" in as_markdown(table)


def test_all_formats_are_written_and_repeat_byte_for_byte(tmp_path):
    entry = resolved([({"label": "A"}, [cell(score(tmp_path, "a", 0.5))])], [{"label": "x", "task": "bucc"}])
    forms = []
    for turn in ("1", "2"):
        out = {form: tmp_path / turn / f"t.{form}" for form in ("md", "csv", "tex", "html")}
        build_table(entry, tmp_path, tmp_path, out)
        forms.append({form: path.read_bytes() for form, path in out.items()})
    assert forms[0] == forms[1]
    assert json.loads(json.dumps(sorted(forms[0]))) == ["csv", "html", "md", "tex"]
    shown = table_as_text(tmp_path / "1" / "t.csv").splitlines()
    assert [line.split() for line in shown] == [["x"], ["A", "50.0"]]


def test_a_reduced_scale_and_stand_ins_are_named_in_the_title(tmp_path):
    entry = resolved([({"label": "A"}, [{"reason": "not run"}])], [{"label": "x", "task": "bucc"}])
    reduced = lay_out({**entry, "scale": "quick", "stand_in": True}, tmp_path, tmp_path)
    assert "scale quick, reduced" in reduced.title
    assert "synthetic data" in reduced.title
    assert lay_out(entry, tmp_path, tmp_path).title == "Title"


def test_scores_of_another_group_show_as_theirs_and_in_averages_too(tmp_path):
    ours, theirs = score(tmp_path, "ours-s1", 0.5), "scores/theirs-s1/last/bucc.json"
    (tmp_path / theirs).parent.mkdir(parents=True)
    (tmp_path / score(tmp_path, "theirs-s1", 0.7)).rename(tmp_path / theirs)
    (tmp_path / "scores" / "theirs-s1" / "origin.txt").write_text("the group of another city\nwrite to them\n", encoding="utf-8")
    rows = [({"label": name}, [cell(path), {"mean_of": ["x"]}]) for name, path in (("A", ours), ("B", theirs))]
    table = lay_out(resolved(rows, [{"label": "x", "task": "bucc"}, {"label": "m", "mean_of": ["x"]}]), tmp_path, tmp_path)
    assert table.footnotes[0] == ("a", "Scores of the group of another city, not computed here.")
    assert [[c.letters for c in row.cells] for row in table.rows] == [["", ""], ["a", "a"]]


def test_labels_of_several_lines_stay_in_their_row(tmp_path):
    path = score(tmp_path, "a-s1", 0.5)
    table = resolved([({"label": "two\nlines\n", "group": " g\n"}, [cell(path)])], [{"label": "x\ny", "task": "bucc"}], [{"text": "a\nb"}])
    lines = as_markdown(lay_out({**table, "title": "T\nt"}, tmp_path, tmp_path)).splitlines()
    assert lines[0] == "### T t"
    assert {"| | x y |", "| *g* | |", "| two lines | 50.0 |", "a b  "} <= set(lines)


def foreign(folder, **fields):
    """A cell of scores that hold no more than the fields of a record that a table needs, and these."""
    record = {"eval": "bucc", "subset": "de-en", "metric": "f1", "value": 0.5, **fields}
    write_json(folder / "scores" / "theirs.json", {"records": [record]})
    return {
        "scores": ["scores/theirs.json"],
        "select": {"task": "bucc", "subset": "de-en", "metric": "f1", "protocol": "", "direction": ""},
    }


@pytest.mark.parametrize("test", ["paired_t", "paired_bootstrap"])
def test_scores_that_hold_no_more_than_values_are_shown(tmp_path, test):
    rows = [({"label": name, "system": name}, [foreign(tmp_path)]) for name in "AB"]
    table = lay_out(resolved(rows, [{"label": "x", "task": "bucc"}], print={"significance": test}), tmp_path, tmp_path)
    assert [(row.cells[0].ours, row.cells[0].details) for row in table.rows] == [("50.0", "scores/theirs.json")] * 2


@pytest.mark.parametrize(
    "wrong", [{"run_id": 5}, {"note": ["a"]}, {"n_items": "ten"}, {"threshold": "1.05"}, {"seed": 1.5}, {"reason": [1]}]
)
def test_a_record_with_fields_of_another_kind_is_refused_by_name(tmp_path, wrong):
    key = next(iter(wrong))
    entry = resolved([({"label": "A"}, [foreign(tmp_path, **wrong)])], [{"label": "x", "task": "bucc"}])
    with pytest.raises(InputError, match=rf"theirs.json: bucc/de-en: {key} .*must"):
        lay_out(entry, tmp_path, tmp_path)


def test_the_best_of_a_column_is_the_lowest_where_lower_is_better_and_nothing_where_all_are_equal(tmp_path):
    paths = [score(tmp_path, f"{name}-s1", value) for name, value in (("a", 0.3), ("b", 0.5), ("c", 0.3))]
    rows = [({"label": path}, [cell(path), cell(path), cell(paths[0])]) for path in paths]
    columns = [{"label": "x", "task": "bucc"}, {"label": "y", "task": "bucc", "better": "lower"}, {"label": "z", "task": "bucc"}]
    table = lay_out(resolved(rows, columns), tmp_path, tmp_path)
    assert [[c.best for c in row.cells] for row in table.rows] == [[False, True, False], [True, False, False], [False, True, False]]


def test_footnotes_beyond_z_have_two_letters(tmp_path):
    rows = [({"label": f"row {n}"}, [{"reason": f"reason {n}"}]) for n in range(54)]
    table = lay_out(resolved(rows, [{"label": "x"}]), tmp_path, tmp_path)
    letters = [row.cells[0].letters for row in table.rows]
    assert letters == [*string.ascii_lowercase, *(f"a{letter}" for letter in string.ascii_lowercase), "ba", "bb"]


def test_a_collapsed_run_is_not_the_best_of_its_column(tmp_path):
    paths = [score(tmp_path, "a-s1", 0.9, status="collapsed"), score(tmp_path, "b-s1", 0.5), score(tmp_path, "c-s1", 0.4)]
    rows = [({"label": path}, [cell(path), {"mean_of": ["x"]}]) for path in paths]
    table = lay_out(resolved(rows, [{"label": "x", "task": "bucc"}, {"label": "m", "mean_of": ["x"]}]), tmp_path, tmp_path)
    assert [[c.best for c in row.cells] for row in table.rows] == [[False, False], [True, True], [False, False]]


def test_intervals_in_details_have_the_decimals_of_their_column(tmp_path):
    columns = [{"label": "x", "task": "bucc", "decimals": 4, "scale_by": 1}]
    table = lay_out(resolved([({"label": "A"}, [cell(score(tmp_path, "a", 0.5, 0.4321, 0.5678))])], columns), tmp_path, tmp_path)
    assert "95 % interval 0.4321 to 0.5678" in table.rows[0].cells[0].details


def test_a_csv_says_by_what_a_value_becomes_the_printed_one(tmp_path):
    columns = [{"label": "x", "task": "bucc"}, {"label": "y", "task": "bucc", "scale_by": 1}]
    path = score(tmp_path, "a", 0.5)
    (tmp_path / "t.csv").write_text("group,model,task,subset,metric,value,direction\n,m,bucc,avg,f1,48.5,higher\n", encoding="utf-8")
    columns[0]["published"] = {"task": "bucc", "subset": "avg", "metric": "f1"}
    table = lay_out(resolved([({"label": "A", "published": "m"}, [cell(path), cell(path)])], columns), tmp_path, tmp_path)
    first, second = csv.DictReader(io.StringIO(as_csv(table)))
    assert float(first["ours"]) * float(first["scale_by"]) - float(first["published"]) == float(first["delta"]) == 1.5
    assert second["scale_by"] == "1"


def test_letters_of_a_cell_stand_in_their_order(tmp_path):
    rows = [({"label": "A"}, [{"reason": "z"}, {"reason": "y"}])]
    notes = [{"at": {"row": "A", "column": "y"}, "text": "z"}, {"at": {"column": "y"}, "text": "y"}]
    table = lay_out(resolved(rows, [{"label": "x"}, {"label": "y"}], notes), tmp_path, tmp_path)
    assert table.footnotes[:2] == [("a", "y"), ("b", "z")]
    assert [c.letters for c in table.rows[0].cells] == ["b", "a,b"]


def test_brackets_with_arrows_are_explained_where_there_are_any(tmp_path):
    columns = [{"label": "x", "task": "bucc", "published": {"task": "bucc", "subset": "avg", "metric": "f1"}}]
    entry = resolved([({"label": "A", "published": "m"}, [cell(score(tmp_path, "a", 0.9))])], columns)
    for note, shown in (("printed delta +1.2", True), ("", False)):
        (tmp_path / "t.csv").write_text(
            f"group,model,task,subset,metric,value,direction,note\n,m,bucc,avg,f1,93.6,higher,{note}\n", encoding="utf-8"
        )
        texts = [text for _, text in lay_out(entry, tmp_path, tmp_path).footnotes]
        assert ("In brackets with an arrow: the improvement that the paper prints beside its figure." in texts) is shown


def test_a_footnote_that_names_the_errata_says_where_they_are(tmp_path):
    rows = [({"label": "A"}, [{"reason": "not run"}])]
    for note, said in (("does not add up (ERRATA 3).", 1), ("adds up", 0)):
        table = lay_out(resolved(rows, [{"label": "x"}], [{"at": {"row": "A"}, "text": note}]), tmp_path, tmp_path)
        assert sum("resources/published/ERRATA.md" in text for _, text in table.footnotes) == said


@pytest.mark.parametrize(("value", "shown", "latex"), [(-0.199, "−19.9", "$-$19.9"), (-0.0001, "0.0", "0.0"), (0.0, "0.0", "0.0")])
def test_negative_numbers_have_a_minus_and_zero_has_none(tmp_path, value, shown, latex):
    row = ({"label": "A"}, [foreign(tmp_path, metric="spearman", value=value)])
    row[1][0]["select"]["metric"] = "spearman"
    table = lay_out(resolved([row], [{"label": "x", "task": "bucc"}]), tmp_path, tmp_path)
    assert f"| A | {shown} |" in as_markdown(table)
    assert f"A & {latex} " in as_latex(table)


def test_a_note_that_all_values_have_is_told_once_of_the_table(tmp_path):
    rows = [({"label": name}, [foreign(tmp_path, note="few words known"), {"reason": "no weights"}]) for name in "AB"]
    columns = [{"label": "x", "task": "bucc"}, {"label": "y", "task": "bucc"}]
    table = lay_out(resolved(rows, columns), tmp_path, tmp_path)
    assert [[c.letters for c in row.cells] for row in table.rows] == [["", "a"]] * 2
    assert table.footnotes[:2] == [("a", "no weights"), ("", "few words known")]
