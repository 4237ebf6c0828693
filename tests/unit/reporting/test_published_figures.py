"""The papers' printed figures: in range, once each, and averages that agree with their cells but where the errata say so."""

import csv
import re
from collections import defaultdict
from decimal import Decimal

import pytest

from crosslign.paths import CATALOG, PUBLISHED

FOLDER = CATALOG / PUBLISHED
TABLES = sorted(path for path in FOLDER.glob("*_table*.csv"))
STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")
BY_LANGUAGE = [
    "scl_table1", "scl_table2", "scl_table6", "mpcl_table5", "mpcl_table8",
    *(f"emma_x_table{n}" for n in (10, 11, 12, 14, 15, 16, 17, 18, 19)),
]  # fmt: skip


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rows_of(table):
    """Printed values by (task, subset), row by row of a table; a row is one block heading, model and label."""
    rows = defaultdict(dict)
    for line in read(FOLDER / f"{table}.csv"):
        rows[line["group"], line["model"], line["model_label"]][line["task"], line["subset"]] = line["value"]
    return rows


def averages():
    """Yield (table, label, cells, weights, printed average)."""
    for table in ("moco_bert_table3", "moco_bert_table8"):
        for (_, _, label), row in rows_of(table).items():
            yield table, label, [row[task, "en"] for task in STS], [1] * 7, row["sts7", "avg"]
    for table in BY_LANGUAGE:
        for (_, _, label), row in rows_of(table).items():
            cells = [value for (_, subset), value in row.items() if subset != "avg"]
            printed = [value for (_, subset), value in row.items() if subset == "avg"]
            if cells and printed:
                yield table, label, cells, [1] * len(cells), printed[0]
    for (_, _, label), row in rows_of("mpcl_table1").items():
        if ("mpcl_avg6", "avg") in row:
            cells = [value for (task, _), value in row.items() if task != "mpcl_avg6"]
            yield "mpcl_table1", label, cells, [1] * len(cells), row["mpcl_avg6", "avg"]
    for (_, _, label), row in rows_of("mpcl_table6").items():
        if ("tatoeba", "avg_in") in row:
            yield "mpcl_table6", label, [row["tatoeba", lang] for lang in ("de", "fr", "es", "ru", "zh")], [1] * 5, row["tatoeba", "avg_in"]
    for (_, _, label), row in rows_of("mpcl_table7").items():
        for task, weights in (("sts17", [5, 6]), ("sts22", [10, 7])):
            yield "mpcl_table7", label, [row[task, "in"], row[task, "ex"]], weights, row[task, "avg"]


def half(printed):
    """Half a unit of the last printed digit."""
    return Decimal(1).scaleb(Decimal(printed).as_tuple().exponent) / 2


def test_averages_agree_with_their_cells_but_in_the_four_places_that_the_errata_name():
    checked, beyond = 0, set()
    for table, _label, cells, weights, printed in averages():
        checked += 1
        mean = sum(Decimal(cell) * weight for cell, weight in zip(cells, weights, strict=True)) / sum(weights)
        slack = half(printed) + sum(half(cell) * weight for cell, weight in zip(cells, weights, strict=True)) / sum(weights)
        if abs(Decimal(printed) - mean) > slack:
            beyond.add((table, printed))
    text = (FOLDER / "ERRATA.md").read_text(encoding="utf-8")
    counted = int(re.search(r"(\d+) recomputed", text)[1])
    block = text.split("Beyond any rounding of the cells")[1].split("Off by more than")[0]
    named = re.findall(r"^\| (\w+) Table (\d+)[^|]*\|[^|]*\| ([\d.]+)", block, flags=re.MULTILINE)
    assert checked == counted
    assert beyond == {(f"{paper}_table{number}", printed) for paper, number, printed in named}


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_scores_are_numbers_in_range_and_no_figure_stands_twice(path):
    seen = set()
    for number, line in enumerate(read(path), start=2):
        where = f"{path.name}:{number}"
        assert f"{line['paper']}_table{line['table']}" == path.stem, where
        key = (line["group"], line["model"], line["model_label"], line["task"], line["subset"], line["metric"])
        assert key not in seen, where
        seen.add(key)
        if line["direction"]:
            assert line["direction"] in ("higher", "lower"), where
            top = {"ch_i": 1000, "kl_d": 1000}.get(line["metric"], 100)
            assert -1 <= float(line["value"]) <= top, where
            assert not line["std"] or 0 <= float(line["std"]) < 20, where


def test_every_model_of_a_table_is_in_the_list_of_ids():
    known = {line["id"] for line in read(FOLDER / "ids.csv")}
    unknown = {line["model"] for path in TABLES for line in read(path) if line["model"]} - known
    assert unknown == set()
