"""Text files that are read whole, within the memory of a machine; CSV files whose texts stay texts in a spreadsheet; sealed JSON."""

from __future__ import annotations

import csv
import json
import os
import random
from contextlib import suppress

import pytest

from crosslign.errors import InputError
from crosslign.files.text import LARGEST, csv_of, read_csv, read_sealed, read_text, write_sealed

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
    with pytest.raises(InputError, match=r"scores\.json: .*1,073,741,825 bytes, .*1,073,741,824") as caught:
        read_text(tmp_path / "scores.json")
    assert caught.value.where == str(tmp_path / "scores.json")


CONTENT = {"step": 120, "seconds": 7.25, "seen": {"a": [1, 2, None]}, "text": "é", "skipped": 0}


@pytest.mark.parametrize("place", range(0, 220, 3))
def test_a_flipped_bit_changes_nothing_or_is_refused(tmp_path, place):
    path = tmp_path / "state.json"
    write_sealed(path, CONTENT)
    assert read_sealed(path) == CONTENT
    written = bytearray(path.read_bytes())
    place %= len(written)
    written[place] ^= 1 << random.Random(place).randrange(7)
    path.write_bytes(written)
    found = dict(CONTENT)
    with suppress(InputError):
        found = read_sealed(path)
    for key in found.keys() - CONTENT.keys():  # the bit was in the name of the checksum's key, and all else is whole
        assert len(str(found.pop(key))) == 64
    assert found == CONTENT


def test_another_number_is_refused_with_the_file(tmp_path):
    path = tmp_path / "state.json"
    write_sealed(path, CONTENT)
    path.write_text(path.read_text(encoding="utf-8").replace("120", "121"), encoding="utf-8")
    with pytest.raises(InputError, match=r"state\.json: .*checksum") as caught:
        read_sealed(path)
    assert caught.value.where == str(path)


def test_a_document_of_before_there_were_checksums_is_read(tmp_path):
    (tmp_path / "state.json").write_text(json.dumps(CONTENT), encoding="utf-8")
    assert read_sealed(tmp_path / "state.json") == CONTENT
