"""Bytes that are no text, and characters that other programs take for line ends: aligned files keep step."""

from __future__ import annotations

import gzip
import random

import pytest

from crosslign.corpora import READERS
from crosslign.corpora.readers._left_out import counting
from crosslign.corpora.readers._tables import ROWS
from crosslign.errors import InputError

ENDS = ["\u0085", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r inside"]
"""What str.splitlines, and some editors, end a line at."""


def read(folder, reader, langs, files, **options):
    paths = {name: folder / name for name in files}
    for name, body in files.items():
        paths[name].write_bytes(gzip.compress(body) if name.endswith(".gz") else body)
    with counting() as left_out:
        rows = [row for table in READERS.get(reader)(paths, "c", langs, **options) for row in table.to_pylist()]
    return rows, dict(left_out)


def lines(texts):
    return [text.encode() for text in texts]


@pytest.mark.parametrize("count", [50, 20_000])
@pytest.mark.parametrize("begins", [b"", b"\xef\xbb\xbf"])
def test_pairs_are_not_shifted_by_what_others_take_for_line_ends(tmp_path, count, begins):
    made = random.Random(count)
    own = [f"{n} de{made.choice(['', *ENDS])} x" for n in range(count)]
    other = [f"{n} en{made.choice(['', *ENDS])} x" for n in range(count)]
    files = {"a.de": begins + b"".join(line + b"\n" for line in lines(own)), "a.en": b"".join(line + b"\r\n" for line in lines(other))}
    rows, left_out = read(tmp_path, "moses", ["de", "en"], files)
    assert [(row["a_text"], row["b_text"]) for row in rows] == list(zip(own, other, strict=True))
    assert left_out == {}


@pytest.mark.parametrize("bad", [b"a \xff b", b"a \0 b", b"\xed\xa0\x80"])
@pytest.mark.parametrize("count", [50, 20_000])
def test_one_broken_line_costs_one_pair(tmp_path, bad, count):
    own, other = lines(f"{n} de" for n in range(count)), lines(f"{n} en" for n in range(count))
    own[7], other[count - 5] = bad, bad
    files = {"a.de.gz": b"\n".join(own), "a.en.gz": b"\n".join(other) + b"\n"}
    with pytest.raises(InputError, match=r"a\.de\.gz:8"):
        read(tmp_path, "moses", ["de", "en"], files)
    rows, left_out = read(tmp_path, "moses", ["de", "en"], files, skip_broken=True)
    assert left_out == {"broken": 2}
    assert [row["a_text"] for row in rows] == [f"{n} de" for n in range(count) if n not in (7, count - 5)]
    assert all(row["a_text"].split()[0] == row["b_text"].split()[0] for row in rows)
    assert rows[7]["id"] == "c:a.de.gz:9"


BADS = [b"\xff", b"\0", b"\xed\xa0\x80"]
OTHERS = [
    ("tsv", ["de", "en"], {"columns": {"1": "a_text", "2": "b_text"}}, "{n}\ten {n}", "a_text"),
    ("tsv", ["de", "en"], {"columns": {"1": "a_text", "2": "b_text"}, "ragged": True}, "{n}\ten {n}", "a_text"),
    ("tsv", ["de", "en"], {"columns": {"1": "a_text", "2": "b_text"}, "quoting": True}, '{n}\t"en ""{n}"""', "a_text"),
    ("dictionary", ["de", "en"], {}, "{n} en{n}", "a_text"),
    ("translate_train", ["de"], {"file_langs": {"a.txt.gz": "de"}}, "{n}\ten {n}\tde {n}\tDE\t1", "a_text"),
]


@pytest.mark.parametrize("bad", BADS)
@pytest.mark.parametrize("count", [50, 20_000])
@pytest.mark.parametrize(("reader", "langs", "options", "line", "column"), OTHERS)
def test_one_broken_line_costs_one_row_in_every_format_of_lines(tmp_path, bad, count, reader, langs, options, line, column):
    made = lines(line.replace("{n}", str(n)) for n in range(count))
    made[0], made[count - 5] = (made[n].replace(b"en", b"e" + bad + b"n") for n in (0, count - 5))
    files = {"a.txt.gz": b"\n".join(made) + b"\n"}
    with pytest.raises(InputError, match=r"a\.txt\.gz:1\b"):
        read(tmp_path, reader, langs, files, **options)
    rows, left_out = read(tmp_path, reader, langs, files, **options, skip_broken=True)
    assert left_out == {"broken": 2}
    assert [row[column].removeprefix("de ") for row in rows] == [str(n) for n in range(1, count) if n != count - 5]
    assert rows[0]["id"] == "c:a.txt.gz:2"


@pytest.mark.parametrize("bad", BADS)
def test_a_broken_line_inside_a_quoted_record_costs_that_record(tmp_path, bad):
    body = b'sent0,sent1,hard_neg\none,"two\n \nx' + bad + b'y, ""z""","three"\n"fo\nur",five,six\n"' + bad + b'",a,b\nseven,eight,nine\n'
    with pytest.raises(InputError, match=r"a\.csv:4"):
        read(tmp_path, "triplets_csv", ["en"], {"a.csv": body})
    rows, left_out = read(tmp_path, "triplets_csv", ["en"], {"a.csv": body}, skip_broken=True)
    assert left_out == {"broken": 2}
    assert [row["a_text"] for row in rows] == ["fo\nur", "fo\nur", "seven", "seven"]
    assert rows[0]["id"] == "c:a.csv:5:sent1"


@pytest.mark.parametrize("quoting", [True, False])
def test_a_broken_line_that_names_the_columns_is_told(tmp_path, quoting):
    options = {"columns": {"1": "a_text", "2": "b_text"}, "header": True, "quoting": quoting, "skip_broken": True}
    with pytest.raises(InputError, match=r"a\.tsv:1: .*line"):
        read(tmp_path, "tsv", ["de", "en"], {"a.tsv": b"d\xffe\ten\nzwei\ttwo\n"}, **options)


def test_broken_and_empty_lines_are_counted_apart(tmp_path):
    files = {"a.txt": b"one\n\n\xff\n \ntwo\n \n"}
    with pytest.raises(InputError, match=r"a\.txt:3"):
        read(tmp_path, "text_lines", ["en"], files, skip_empty=True)
    with pytest.raises(InputError, match=r"a\.txt:2"):
        read(tmp_path, "text_lines", ["en"], files, skip_broken=True)
    rows, left_out = read(tmp_path, "text_lines", ["en"], files, skip_empty=True, skip_broken=True)
    assert [row["text"] for row in rows] == ["one", "two"]
    assert left_out == {"empty": 2, "broken": 1}


@pytest.mark.parametrize("count", [3, 2 * ROWS - 2, 2 * ROWS - 1, 2 * ROWS])
@pytest.mark.parametrize("blank", [(1, 1), (2, 2), (3, 3), (0, 2), (3, 1)])
def test_blank_lines_at_the_end_are_none_wherever_tables_are_cut(tmp_path, count, blank):
    own, other = (b"".join(b"%d\n" % n for n in range(count)) + b" \n" * more for more in blank)
    rows, left_out = read(tmp_path, "moses", ["de", "en"], {"a.de": own, "a.en": other})
    assert [(row["a_text"], row["b_text"]) for row in rows] == [(str(n), str(n)) for n in range(count)]
    assert [row["text"] for row in read(tmp_path, "text_lines", ["de"], {"a.de": own})[0]] == [str(n) for n in range(count)]
    assert left_out == {}
