"""Footnotes of tables: a row of several with one label is named with its group; a row or column that is not there is refused."""

import pytest
from test_papers import project

from crosslign.config import references
from crosslign.config.baselines import named_rows
from crosslign.errors import InputError

ROWS = [{"label": "A", "group": "x"}, {"label": "A", "group": "y"}, {"label": "B"}]


def test_a_row_is_named_by_its_label_its_group_or_its_number():
    assert named_rows({"row": "A"}, ROWS) == [0, 1]
    assert named_rows({"row": "A", "group": "y"}, ROWS) == [1]
    assert named_rows({"number": 2}, ROWS) == [2]


@pytest.fixture(scope="module")
def loaded():
    return project("quickstart")


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ({"row": "A"}, "2 rows are called 'A'.*'x', 'y'.*Name the row's group"),
        ({"row": "C"}, "no row 'C' for this footnote"),
        ({"row": "B", "column": "z"}, "no column 'z' for this footnote"),
    ],
)
def test_a_footnote_that_fits_no_cell_or_several_is_refused(loaded, monkeypatch, at, said):
    table = {"title": "", "columns": [{"label": "c"}], "rows": ROWS, "footnotes": [{"at": at, "text": "t"}]}
    monkeypatch.setitem(loaded.tables, "t", table)
    monkeypatch.setitem(loaded.paper_of, "t", "quickstart")
    with pytest.raises(InputError, match=said):
        references.check_references(loaded, {})
    table["footnotes"][0]["at"] = {"row": "A", "group": "y", "column": "c"}
    references.check_references(loaded, {})
