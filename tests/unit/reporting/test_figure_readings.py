"""What figures show in words, from the numbers of a picture of vectors, of changes and of a line."""

import pytest

from crosslign.reporting.figure_readings import seen_in


@pytest.fixture
def numbers(tmp_path):
    def write(*lines):
        path = tmp_path / "figure.csv"
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        return path

    return write


def test_the_number_beside_each_picture(numbers):
    path = numbers("panel,lang,group,x,y,neighbour_rate", "XLM-R,en,g,0,0,0.25", "XLM-R,de,g,1,1,0.25", "ours,en,g,0,0,1.0")
    assert seen_in(path) == "Nearest in another language is the translation: XLM-R 25.0 %; ours 100.0 %."


def test_who_learns_nothing_is_named_with_the_reason(numbers):
    head = "system,step,loss,learning_rate,at_zero"
    said = seen_in(numbers(head, "a,1,0.0,1e-5,1", "a,2,0.0,1e-5,1", "b,1,3.0,1e-5,"))
    assert said.startswith("These rows learn nothing: a. Their loss is 0.00 from the first step on, because")
    assert seen_in(numbers(head, "b,1,3.0,1e-5,")) == ""


def test_what_rises_above_each_base(numbers):
    path = numbers(
        "system,evaluation,value,against,against_value,change",
        "single,sts de,0.5,LaBSE,0.4,0.1", "single,sts fr,0.4,LaBSE,0.4,0.0",
        "multiple,sts de,0.6,LaBSE,0.4,0.2", "multiple,sts fr,,LaBSE,,",
        "single,sts de,0.1,mSimCSE,0.2,-0.1",
    )  # fmt: skip
    assert seen_in(path) == (
        "Above LaBSE: single in 1 of 2 evaluations; multiple in 1 of 1 evaluation. Above mSimCSE: single in 0 of 1 evaluation."
    )


def test_where_a_line_is_highest(numbers):
    head = "system,x,value,std,reason"
    assert seen_in(numbers(head, "small,1,0.72,,", "middle,2,0.77,,", "large,3,0.765,,")) == (
        "72.00 at small, 76.50 at large; highest at middle with 77.00."
    )
    assert seen_in(numbers(head, "small,1,0.5,,", "large,3,0.5,,")) == "50.00 at small, 50.00 at large; the same everywhere."
    assert not seen_in(numbers(head, "small,1,0.72,,", "large,3,,,not run"))


def test_figures_that_say_it_themselves_have_no_words(numbers):
    assert not seen_in(numbers("system,reason", "theirs,no weights"))
    assert not seen_in(numbers("panel,query,rank,cosine,sentence", "ours,a dog,1,0.8,a hound"))
