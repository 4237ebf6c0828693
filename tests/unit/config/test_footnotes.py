"""Footnotes of tables: rows are named with their groups, what is not there is refused, and those made from recipes are exact."""

import pytest
from test_papers import project

from crosslign.config import references
from crosslign.config.baselines import named_rows
from crosslign.config.cells import resolve_table
from crosslign.errors import InputError

ROWS = [{"label": "A", "group": "x"}, {"label": "A", "group": "y"}, {"label": "B"}]


def test_a_row_is_named_by_its_label_its_group_or_its_number():
    assert named_rows({"row": "A"}, ROWS) == [0, 1]
    assert named_rows({"row": "A", "group": "y"}, ROWS) == [1]
    assert named_rows({"number": 2}, ROWS) == [2]


def test_a_row_is_named_by_its_system_where_no_label_is_that():
    rows = [{"label": "mSimCSE", "system": "MS-U"}, {"label": "MS-U", "system": "B"}, {"label": "C", "system": "B"}]
    assert named_rows({"row": "MS-U"}, rows) == [1]
    assert named_rows({"row": "MS-U"}, rows[:1]) == [0]
    assert named_rows({"row": "B"}, rows) == [1, 2]


@pytest.fixture(scope="module")
def loaded():
    return project("quickstart")


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ({"row": "A"}, r"tables\.t\.footnotes\.0\.at: .*2.*'A'.*'x'.*'y'"),
        ({"row": "C"}, r"tables\.t\.footnotes\.0\.at: .*'C'"),
        ({"row": "B", "column": "z"}, r"tables\.t\.footnotes\.0\.at: .*'z'"),
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


def notes_of(loaded, table, words):
    """The generated notes of a table with these words in them, by the system of their row."""
    resolved = resolve_table(loaded, table)
    found = [
        (note["at"]["number"], note["text"]) for note in resolved["footnotes"] if words in note["text"] and "number" in note.get("at", {})
    ]
    return {resolved["rows"][number]["system"]: text for number, text in found}


def test_a_row_says_by_what_the_checkpoints_that_it_shows_were_chosen():
    """MPCL chooses five checkpoints; a table of BUCC shows the one chosen by Tatoeba alone (its section 3.3)."""
    mpcl = project("mpcl", scale="paper")
    chosen = {
        "mpcl_table5": "tatoeba", "mpcl_table6": "bucc_sample", "mpcl_table7": "sts17_mteb, sts22", "mpcl_table8": "mtop_dev",
        "mpcl_table1": "bucc_sample, mtop_dev, sts17_mteb, sts22, tatoeba",
    }  # fmt: skip
    for table, tasks in chosen.items():
        assert set(notes_of(mpcl, table, "chosen by").values()) == {f"checkpoint chosen by {tasks}"}


def test_a_fine_tune_says_by_what_the_checkpoint_that_it_starts_from_was_chosen():
    found = notes_of(project("msimcse", scale="paper"), "msimcse_table5", "chosen by")
    assert found == {
        "mbert-cased": "checkpoint chosen by paws_x_dev",
        "xlm-r": "checkpoint chosen by paws_x_dev",
        "MS-U": "checkpoint chosen by paws_x_dev, stsb_dev",
        "MS-E": "checkpoint chosen by paws_x_dev, stsb_dev",
    }


def test_what_is_not_scored_need_not_be_searched_for():
    """Of BUCC's test files no gold is public, and no figure."""
    scl, emma_x = project("scl", scale="paper"), project("emma_x", scale="paper")
    assert notes_of(scl, "scl_table6", "not searched") == {}
    found = notes_of(emma_x, "emma_x_table1", "not searched")["EX-p2-gmm4"]
    assert "xcopa_test" in found
    assert "multiarc" in found
    assert "bucc" not in found
