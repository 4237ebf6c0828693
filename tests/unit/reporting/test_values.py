"""Values of cells: scores of another group, whatever form they come in, and what a cell says of where it is from."""

import pytest
from test_tables import cell, resolved, score

from crosslign.files import write_json
from crosslign.reporting.layout import lay_out
from crosslign.tasks.records import find_record, origins

SCORE = "scores/A-s1/last/cls/bucc.json"
SELECT = {"task": "bucc", "subset": "avg", "metric": "f1", "protocol": "", "direction": ""}


def foreign(results, run="A-s1", **fields):
    path = results / "scores" / run / "last" / "cls" / "bucc.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"records": [{"eval": "bucc", "subset": "avg", "metric": "f1", "value": 0.5, **fields}]})
    return path.relative_to(results).as_posix()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "another group"),
        (b"\n \n", "another group"),
        (b"\xef\xbb\xbfLab A\r\nmore", "Lab A"),
        (b"Lab A", "Lab A"),
        (b"\xffLab A", "\ufffdLab A"),
    ],
)
def test_scores_of_others_never_pass_for_ours(tmp_path, content, said):
    foreign(tmp_path)
    (tmp_path / "scores" / "A-s1" / "origin.txt").write_bytes(content)
    assert origins(tmp_path, [SCORE]) == [said]


def test_of_a_note_without_end_the_beginning_is_read(tmp_path):
    foreign(tmp_path)
    with (tmp_path / "scores" / "A-s1" / "origin.txt").open("wb") as file:
        file.write(b"Lab A\n")
        file.truncate(1 << 40)
    assert origins(tmp_path, [SCORE]) == ["Lab A"]


def test_a_protocol_that_is_null_is_none(tmp_path):
    foreign(tmp_path, protocol=None, direction=None, run_id=None, n_items=None)
    record = find_record(tmp_path / SCORE, SELECT)
    assert (record["protocol"], record["direction"]) == ("", "")
    table = lay_out(
        resolved([({"label": "A"}, [{"scores": [SCORE], "select": SELECT}])], [{"label": "x", "task": "bucc"}]), tmp_path, tmp_path
    )
    assert (table.rows[0].cells[0].ours, table.rows[0].cells[0].details) == ("50.0", SCORE)


def test_a_score_file_that_was_replaced_is_read_again(tmp_path):
    """Records are kept in memory from cell to cell; those of another version of the file are not its own."""
    values = []
    for value in (0.5, 0.7, 0.3):
        foreign(tmp_path, value=value)
        values.append(find_record(tmp_path / SCORE, SELECT)["value"])
    assert values == [0.5, 0.7, 0.3]


def test_an_average_names_what_it_is_a_mean_of(tmp_path):
    cells = [{"scores": [foreign(tmp_path, run, run_id=run)], "select": SELECT} for run in ("A-s1", "B-s1")]
    columns = [{"label": "x", "task": "bucc"}, {"label": "y", "task": "bucc"}, {"label": "mean", "mean_of": ["x", "y"]}]
    table = lay_out(resolved([({"label": "A"}, [*cells, {"mean_of": ["x", "y"]}])], columns), tmp_path, tmp_path)
    assert table.rows[0].cells[2].details == "mean of 2 evaluations; runs A-s1, B-s1"


def test_a_sum_of_counts_of_which_one_is_unknown_is_unknown(tmp_path):
    parts = [{"scores": [foreign(tmp_path, run, **fields)], "select": SELECT}
             for run, fields in (("A-s1", {}), ("B-s1", {"value": None, "reason": "no text"}))]  # fmt: skip
    rows = [({"label": label}, [{"parts": own, "total": True}]) for label, own in (("A", parts[:1] * 2), ("B", parts))]
    found = [row.cells[0].value for row in lay_out(resolved(rows, [{"label": "x", "task": "bucc"}]), tmp_path, tmp_path).rows]
    assert [(cell.ours, cell.reason) for cell in found] == [(1.0, ""), (None, "no text")]


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_rows_that_rounding_alone_sets_apart_are_best_together(tmp_path, better):
    """The mean of 0.1, 0.2 and 0.3 is 0.2 less the last digit of a float."""
    other = {"higher": 0.1, "lower": 0.3}[better]
    three = [score(tmp_path, f"a-s{n}", value) for n, value in enumerate((0.1, 0.2, 0.3))]
    rows = [({"label": "A"}, [cell(*three)]), ({"label": "B"}, [cell(score(tmp_path, "b", 0.2))])]
    columns = [{"label": "x", "task": "bucc", "better": better}]
    assert [row.cells[0].best for row in lay_out(resolved(rows, columns), tmp_path, tmp_path).rows] == [False, False]
    rows.append(({"label": "C"}, [cell(score(tmp_path, "c", other))]))
    assert [row.cells[0].best for row in lay_out(resolved(rows, columns), tmp_path, tmp_path).rows] == [True, True, False]
