"""Text files that are read whole, within the memory of a machine; CSV files whose texts stay texts in a spreadsheet."""

from __future__ import annotations

import csv
import os

import pytest

from crosslign.errors import InputError
from crosslign.files.text import LARGEST, csv_of, read_csv, read_text

TEXTS = [
    '=HYPERLINK("http://x","y")',
    "+ NLI",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "'+ quoted",
    "''=1",
    "'tis",
    "− a minus sign",
    "",
    "a, b",
    "two\nlines",
    "+",
    "\n=1",
    "＝1+1",
    "＠SUM(A1)",
]


def test_a_text_never_begins_as_a_formula_does() -> None:
    written = list(csv.reader(csv_of(["text"], [[text] for text in TEXTS]).splitlines(keepends=True)))[1:]
    assert not [fields for fields in written if fields and fields[0][:1] in set("=+-@\t\r\n＝＋－＠")]


@pytest.mark.parametrize("number", ["-0.5", "+1.2", "-1e-07", "-0", -3, 0.25])
def test_a_number_stays_a_number(number: object) -> None:
    assert csv_of(["value"], [[number]]) == f"value\n{number}\n"


def test_what_is_read_is_what_was_given(tmp_path) -> None:
    (tmp_path / "a.csv").write_bytes(csv_of(["text", "name"], [[text, text] for text in TEXTS]).encode())
    columns, lines = read_csv(tmp_path / "a.csv")
    assert columns == ["text", "name"]
    assert lines == [{"text": text, "name": text} for text in TEXTS]


def test_a_text_of_a_terabyte_of_holes_is_refused_and_not_read(tmp_path):
    (tmp_path / "scores.json").write_text("{}")
    os.truncate(tmp_path / "scores.json", LARGEST + 1)
    with pytest.raises(InputError, match=r"the file is too large; 1,073,741,825 bytes, the limit is 1,073,741,824") as caught:
        read_text(tmp_path / "scores.json")
    assert caught.value.where == str(tmp_path / "scores.json")
