import pytest

from crosslign.errors import InputError
from crosslign.registry import nearest, outline_of, use_modules
from crosslign.reporting.figures import FIGURES


def test_a_name_is_the_module_and_an_unknown_one_says_which_are_allowed():
    assert FIGURES.get("curves").__module__ == "crosslign.reporting.figures.curves"
    allowed = "bars, curves, heatmap, lines, nearest, pair_cosines, tsne"
    with pytest.raises(InputError, match=f"figure 'curve'; .*{allowed}; .*'curves'"):
        FIGURES.get("curve")


def test_helper_modules_are_no_implementations():
    assert not [name for name in FIGURES.names() if name.startswith("_")]


def test_where_nothing_is_allowed_the_message_says_so():
    assert nearest("a", []) == "there are none"


def test_of_many_names_the_nearest_are_listed_and_the_others_counted():
    many = ["mpcl_table1", *(f"emma_x_figure{number}" for number in range(99))]
    said = nearest("mpcl_tabel1", many)
    assert said.startswith("allowed: emma_x_figure")
    assert said.endswith("mpcl_table1 and 88 others; did you mean 'mpcl_table1'?")
    assert said.count(",") == 11
    assert "others" not in nearest("x", many[:20])
    assert nearest("x", many[:40]).endswith(" and 28 others")  # all would be a message of 700 characters


def test_names_that_hold_a_comma_are_told_apart():
    assert nearest("x", ["mSimCSE, English NLI", "mSimCSE"]) == "allowed: mSimCSE, 'mSimCSE, English NLI'"


def test_modules_are_read_once_by_a_process_that_has_no_plugins(tmp_path):
    (tmp_path / "mine.py").write_text("")
    use_modules({})
    before = outline_of("crosslign.reporting.figures.curves")
    use_modules({})
    assert outline_of("crosslign.reporting.figures.curves") is before
    use_modules({"crosslign.reporting.figures.curves": tmp_path / "mine.py"})
    assert outline_of("crosslign.reporting.figures.curves").body == []
    use_modules({})
    assert outline_of("crosslign.reporting.figures.curves").body != []
