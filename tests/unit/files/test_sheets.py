"""CSV files whose texts stay texts in a spreadsheet."""

from __future__ import annotations

import csv

import pytest

from crosslign.files.sheets import as_csv, read_csv

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
    written = list(csv.reader(as_csv(["text"], [[text] for text in TEXTS]).splitlines(keepends=True)))[1:]
    assert not [fields for fields in written if fields and fields[0][:1] in set("=+-@\t\r\n＝＋－＠")]


@pytest.mark.parametrize("number", ["-0.5", "+1.2", "-1e-07", "-0", -3, 0.25])
def test_a_number_stays_a_number(number: object) -> None:
    assert as_csv(["value"], [[number]]) == f"value\n{number}\n"


def test_what_is_read_is_what_was_given(tmp_path) -> None:
    (tmp_path / "a.csv").write_bytes(as_csv(["text", "name"], [[text, text] for text in TEXTS]).encode())
    columns, lines = read_csv(tmp_path / "a.csv")
    assert columns == ["text", "name"]
    assert lines == [{"text": text, "name": text} for text in TEXTS]
