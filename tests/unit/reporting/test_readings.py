"""What tables show in words: rows of one label apart, figures printed as words, units that differ."""

import pytest

from crosslign.reporting.headline import headline
from crosslign.reporting.layout import PrintedCell, PrintedRow, PrintedTable
from crosslign.reporting.published import printed_number
from crosslign.reporting.readings import from_paper, seen
from crosslign.reporting.values import Cell


def cell(ours=None, printed="", scale_by=100, best=False, text="", sign="", status=None):
    number = float(printed) if printed.replace(".", "").isdigit() else None
    records = [{"status": status, "eval": "counts" if status == "counted" else "t"}] if status else []
    value = Cell(ours=ours, published=number, printed=printed, text=text, records=records)
    return PrintedCell("", printed, "", sign, best, "", value, scale_by)


def table(*rows):
    columns = [{"group": "", "label": f"c{n}", "name": f"c{n}"} for n in range(len(rows[0][1]))]
    lines = [PrintedRow("", "G", name.partition(" ")[0], "", cells, name) for name, cells in rows]
    return PrintedTable("t", "t", "", columns, lines, [], False)


def test_the_leader_is_one_row_and_not_all_of_its_label():
    rows = [("SCL (a)", [cell(0.9, best=True), cell(0.9, best=True), cell(0.1)]), ("SCL (b)", [cell(0.1), cell(0.1), cell(0.9, best=True)])]
    assert "SCL (a) is best in 2 of the 3 columns" in seen(table(*rows))
    shown = table(("SCL (a)", [cell(0.9, "91.0")]), ("SCL (b)", [cell(0.5, "40.0")]))
    assert from_paper(shown) == (
        "Over the 2 cells that have both, ours differ from the published figures by 5.50 points on average, at most by 10.00 (SCL (b), c0)."
    )


def test_rows_that_lead_together_are_named_together():
    best, other = [cell(0.9, best=True), cell(0.1)], [cell(0.9, best=True), cell(0.1, best=True)]
    assert "A and B are each best in the only column in which systems differ." in seen(
        table(("A", best), ("B", best), ("C", [cell(0.1), cell(0.1)]))
    )
    assert "3 rows are each best in the only column" in seen(table(*((name, best) for name in "ABC")))
    assert "B is best in 2 of the 2 columns" in seen(table(("A", best), ("B", other)))


@pytest.mark.parametrize(
    ("text", "number"), [("46k", 46e3), ("16M", 16e6), ("392,702", 392702), ("1.5M", 1.5e6), ("738-750", None), ("", None)]
)
def test_numbers_are_read_as_they_are_printed(text, number):
    assert printed_number(text) == number


def test_unlike_units_are_compared_by_their_share():
    said = from_paper(table(("A", [cell(15e6, "16M", 1), cell(0.44, "0.4", 1), cell(0.5, "49")])))
    assert "Over the 1 cell that has both, ours differ from the published figures by 1.00 points" in said
    assert "Over the 2 cells that have both, no percentages, ours differ from the published figures by 8.12 % of them" in said
    assert "at most by 10.00 (A, c1)" in said


def test_settings_of_a_recipe_are_values_of_ours():
    shown = table(("A", [cell(text="mean", printed="mean")]))
    assert seen(shown) == "1 of 1 cell has a value of ours."
    assert from_paper(shown) == "1 cell has a published value beside ours, in words."


def test_collapsed_systems_are_counted_and_lead_nothing():
    fallen = [cell(0.4, status="collapsed"), cell(0.4, status="collapsed")]
    assert seen(table(("A", fallen), ("B", fallen))) == ("4 of 4 cells have a value of ours. In all of them the system has collapsed.")
    assert "In 1 of them" in seen(table(("A", [cell(0.4, status="collapsed")]), ("B", [cell(0.2, status="ok")])))


def test_equal_systems_are_said_to_be_equal():
    equal = [cell(0.4, status="ok"), cell(0.4, status="ok"), cell(0.4, status="collapsed")]
    assert seen(table(("A", equal), ("B", equal))).endswith("Systems are equal in the 2 columns that can be compared.")
    counts = [cell(40.0, status="counted"), cell(40.0)]  # of one record, and the sum of several
    assert seen(table(("A", counts), ("B", counts))) == "4 of 4 cells have a value of ours."


def test_one_cell_beyond_chance_is_one_cell():
    shown = table(("A", [cell(0.4), cell(0.4)]), ("B", [cell(0.5, sign="↑"), cell(0.3, sign="↓")]))
    assert seen(shown).endswith("Beyond chance, 1 cell lies above the first row (A) and 1 below it.")


def test_the_headline_names_the_least_where_less_is_better():
    shown = table(("A", [cell(0.4)]), ("B", [cell(0.3)]), ("C", [cell(0.5)]))
    assert headline(shown).words == "c0: 40.0 for A, 50.0 for C."
    shown.columns[0]["better"] = "lower"
    assert headline(shown).words == "c0: 40.0 for A, 30.0 for B."
    assert headline(table(("A", [cell(0.4)]), ("B", [cell(0.4)]))).words == "c0: 40.0 for A, and no system lies above it."
    shown.rows = shown.rows[::-2]
    shown.rows.append(shown.rows.pop(0))
    assert headline(shown).words == "c0: 40.0 for A, and no system lies below it."
