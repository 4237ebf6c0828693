"""Tables of the papers beside the printed ones: every figure letter by letter, in its cell, in printed order, with its errata."""

import csv
import io
import re

import pytest
from paper_tables import PAPERS, PUBLISHED, ROOT, laid_out, printed_tables, resolved_tables

from crosslign.config.baselines import baseline_rows
from crosslign.paths import CATALOG
from crosslign.reporting.formats import as_csv


def figures(table):
    """The lines of a table's CSV of printed figures."""
    with open(PUBLISHED / f"{table}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def asked(row, column):
    """(model, task, subset, metric) that a cell asks for; None where it asks for nothing."""
    own, shared = row.get("published"), column.get("published")
    if not own or not shared:
        return None
    known = {"model": own} if isinstance(own, str) else {"model": "", **own}
    return known["model"], *(known.get(key, shared.get(key, "")) for key in ("task", "subset", "metric"))


def cells(table):
    """Yield (row, column, what is asked for, printed cell) of a table."""
    resolved, laid = resolved_tables()[table], laid_out(table)
    for row, line in zip(resolved["rows"], laid.rows, strict=True):
        for column, cell in zip(resolved["columns"], line.cells, strict=True):
            yield row, column, asked(row, column), cell


def cell_of(table, line):
    """The cells that show a line of the printed figures: those of its group and label before others."""
    key = tuple(line[name] for name in ("model", "task", "subset", "metric"))
    found = [(row, cell) for row, _, wanted, cell in cells(table) if wanted == key]
    for same in (
        [cell for row, cell in found if (row.get("group", ""), row["label"]) == (line["group"], line["model_label"])],
        [cell for row, cell in found if row.get("group", "") == line["group"]],
        [cell for _, cell in found],
    ):
        if same:
            return same
    return []


@pytest.mark.parametrize("table", printed_tables())
def test_every_printed_figure_stands_in_its_cell_letter_by_letter(table):
    for line in figures(table):
        wanted = line["value"] + (f" ± {line['std']}" if line["std"] else "")
        gain = re.search(r"printed delta \+([\d.]+)", line["note"])
        wanted += f" (↑{gain[1]})" if gain else ""
        assert wanted in [cell.published for cell in cell_of(table, line)], line


def test_the_arrows_of_mpcl_table_1_are_shown():
    """The printed table has 29 (ERRATA.md, 3: one disagrees, 28 agree)."""
    shown = [row["published_gain"] for row in csv.DictReader(io.StringIO(as_csv(laid_out("mpcl_table1")))) if row["published_gain"]]
    assert len(shown) == 29
    assert "97.6 ± 0.19 (↑4.1)" in {cell.published for _, column, _, cell in cells("mpcl_table1") if column["label"] == "BUCC"}


@pytest.mark.parametrize("table", sorted(resolved_tables()))
def test_every_row_that_was_published_shows_what_was(table):
    for row in zip(resolved_tables()[table]["rows"], laid_out(table).rows, strict=True):
        assert "published" not in row[0] or any(cell.published for cell in row[1].cells), row[0]["label"]


@pytest.mark.parametrize("table", printed_tables())
def test_rows_stand_in_printed_order(table):
    lines = figures(table)
    place = {}
    for number, line in enumerate(lines):
        for key in ((line["group"], line["model_label"], line["model"]), (line["group"], line["model"]), (line["model"],)):
            for of_count in ((), (line["task"], line["subset"]), (line["task"],), (line["subset"],)):
                place.setdefault((*key, *of_count), number)
    order = []
    for row in resolved_tables()[table]["rows"]:
        own = row.get("published")
        if not own:
            continue
        known = {"model": own} if isinstance(own, str) else {"model": "", **own}
        counted = tuple(known[key] for key in ("task", "subset") if key in known)
        keys = ((row.get("group", ""), row["label"], known["model"]), (row.get("group", ""), known["model"]), (known["model"],))
        order.append(next(place[(*key, *counted)] for key in keys if (*key, *counted) in place))
    assert order == sorted(order)


@pytest.mark.parametrize("table", printed_tables())
def test_columns_stand_in_printed_order(table):
    """Figures of one printed row stand in its order; rows that count something, and settings, are columns of their own in print."""
    resolved = resolved_tables()[table]
    models = {row["published"] for row in resolved["rows"] if isinstance(row.get("published"), str)}
    printed = [column["published"] for column in resolved["columns"] if "published" in column]
    places = {tuple(column.get(key, "") for key in ("task", "subset", "metric")): place for place, column in enumerate(printed)}
    orders = {}
    for line in figures(table):
        if line["model"] in models:
            row = (line["group"], line["model_label"], line["model"])
            orders.setdefault(row, []).append(places[line["task"], line["subset"], line["metric"]])
    assert all(order == sorted(order) for order in orders.values()), orders


def errata():
    with open(PUBLISHED / "errata.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def texts_of(table, cell):
    """The footnotes that a cell's letters stand for."""
    texts = dict(laid_out(table).footnotes)
    return {texts[letter] for letter in cell.letters.split(",") if letter}


@pytest.mark.parametrize("table", printed_tables())
def test_every_erratum_and_every_ambiguous_mark_has_its_letter_in_its_cell(table):
    own = [row for row in errata() if row["table"] == table]
    keys = ("group", "model", "model_label", "task", "subset", "metric")
    for line in figures(table):
        wanted = {row["text"] for row in own if all(not row[key] or line[key] in row[key].split(";") for key in keys)}
        assert wanted or "AMBIGUOUS" not in line["note"], line
        assert any(wanted <= texts_of(table, cell) for cell in cell_of(table, line)), line


def test_a_cell_that_nobody_filled_does_not_speak_of_a_published_figure():
    """BUCC has no training set, for which the paper prints a dash."""
    found = {
        (row["label"], column["label"]): texts_of("emma_x_table9", cell)
        for row, column, _, cell in cells("emma_x_table9")
        if not cell.value.ours
    }
    assert found["BUCC", "Train"] == {"no published figure and none of ours"}


@pytest.mark.parametrize("table", printed_tables())
def test_an_erratum_stands_in_no_other_cell(table):
    keys = ("group", "model", "model_label", "task", "subset", "metric")
    named = {}
    for row in (row for row in errata() if row["table"] == table):
        lines = [line for line in figures(table) if all(not row[key] or line[key] in row[key].split(";") for key in keys)]
        named.setdefault(row["text"], set()).update(line["value"] for line in lines)
    for text, values in named.items():
        marked = {cell.value.printed for *_, cell in cells(table) if text in texts_of(table, cell)}
        assert marked == values, text


def test_every_average_that_does_not_add_up_is_an_erratum():
    text = (PUBLISHED / "ERRATA.md").read_text(encoding="utf-8").split("## 3.")[1].split("## 4.")[0]
    found = re.findall(r"^\| (\w+) Table (\d+)[^|]*\| [^|]*\| [^|]*\| ([\d.]+)", text, flags=re.MULTILINE)
    assert len(found) == 23
    missing = [
        (paper, number, mean)
        for paper, number, mean in found
        if not any(row["table"] == f"{paper}_table{number}" and f" {mean}" in row["text"] for row in errata())
    ]
    assert missing == []


@pytest.mark.parametrize("table", sorted(resolved_tables()))
def test_row_and_column_name_one_cell(table):
    lines = list(csv.DictReader(io.StringIO(as_csv(laid_out(table)))))
    assert len({(line["row"], line["column"]) for line in lines}) == len(lines)
    assert [line["system"] for line in lines[:: len(laid_out(table).columns)]] == [
        row.get("system", "") for row in resolved_tables()[table]["rows"]
    ]


@pytest.mark.parametrize("table", [name for name in resolved_tables() if name.endswith("_protocols")])
def test_a_table_of_protocols_has_the_systems_of_its_table(table):
    printed = [row for row in resolved_tables()[table.removesuffix("_protocols")]["rows"] if "system" in row]
    found = 0
    for row in resolved_tables()[table]["rows"]:
        same = {other["system"] for other in printed if other["label"].partition(" (")[0] == row["label"]}
        assert not same or row["system"] in same, row
        found += bool(same)
    assert found


RELEASED = {"MP-xlmr-multihn-main": "msimcse_all", "MP-mscse-multi-main": "msimcse_all", "MP-labse-multi-main": "labse"}
"""What MPCL's Table 1 prints above a Multiple that it has no Single of: its partner with hard negatives, or what it started from."""


@pytest.mark.parametrize("table", printed_tables())
def test_multiple_is_compared_with_a_single_of_its_own_data_or_with_the_model_printed_above_it(table):
    resolved = resolved_tables()[table]
    compared = {
        row["system"]: resolved["rows"][place]["system"]
        for row, place in zip(resolved["rows"], baseline_rows(resolved["rows"]), strict=True)
        if "-multi" in row.get("system", "") and place is not None
    }
    wanted = {system: system.replace("-multi-", "-single-") for system in compared}
    assert compared == {**wanted, **(RELEASED if table == "mpcl_table1" else {})}


def test_the_readme_counts_the_systems_of_each_paper():
    counted = {}
    for paper in PAPERS:
        text = (CATALOG / "papers" / f"{paper}.yaml").read_text(encoding="utf-8")
        systems = re.split(r"^(?=\S)", text.partition("\nsystems:\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
        counted[paper] = len(re.findall(r"^  [\w-]+:$", systems, flags=re.MULTILINE))
    said = re.findall(
        r"^\| [^|]+ \| (\d+)[^|]* \| [^|]+ \| \[(\w+)\]", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert {paper: int(count) for count, paper in said} == counted
