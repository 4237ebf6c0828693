"""The one policy for lines, and that no bytes whatever crash a line reader."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.corpora import READERS
from crosslign.corpora.readers import _lines
from crosslign.corpora.readers._lines import blank, check_text, read_columns, read_lines
from crosslign.errors import InputError

FAST = settings(max_examples=150)
CHARACTERS = st.characters(exclude_characters="\n\0", exclude_categories=("Cs",)) | st.sampled_from("\u2028\u0085\r\ufeff\t \u3000é中")
LINE = st.text(CHARACTERS, max_size=12).filter(lambda text: not text.endswith("\r"))
TEXT = LINE.filter(lambda text: bool(text.strip()))


def told(lines):
    """Return numbered lines without blank ones at the end; a blank file as it is."""
    last = max((at for at, (_, text) in enumerate(lines) if text.strip()), default=len(lines))
    return lines[: last + 1]


def written(tmp_path, data, name="a.txt"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


@FAST
@given(lines=st.lists(LINE, min_size=1, max_size=6), end=st.sampled_from(["\n", "\r\n"]), last=st.booleans(), mark=st.booleans())
def test_lines_come_back_as_they_were_written(tmp_path, lines, end, last, mark):
    if lines[0].startswith("\ufeff"):
        lines[0] = "x" + lines[0]
    if not last and not lines[-1]:
        lines[-1] = "x"
    text = end.join(lines) + (end if last else "")
    path = written(tmp_path, (b"\xef\xbb\xbf" if mark else b"") + text.encode())
    assert list(read_lines(path, blank_end=True)) == list(enumerate(lines, start=1))
    assert list(read_lines(path)) == told(list(enumerate(lines, start=1)))


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", lambda data: pa.Codec("zstd").compress(data, asbytes=True)),
    ],
)
def test_packed_files_are_unpacked_on_the_way(tmp_path, suffix, pack):
    body = "\ufeffeins\r\nzwei\u2028drei\nvier".encode()
    path = written(tmp_path, pack(body), "a.txt" + suffix)
    assert list(read_lines(path)) == [(1, "eins"), (2, "zwei\u2028drei"), (3, "vier")]
    path.write_bytes(pack(body * 20_000)[:-9])
    with pytest.raises(InputError, match=r"a\.txt.*damaged"):
        list(read_lines(path))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"good\nb\xff\xfed\n", r"a\.txt:2: .*byte 0xff.* 2$"),
        (b"good\ngood\ncut \xe4\xb8", r"a\.txt:3: .*byte 0xe4.* 5$"),
        (b"surrogate \xed\xa0\x80\n", r"a\.txt:1: .*byte 0xed.* 11$"),
        (b"a\n\0\n", r"a\.txt:2: a NUL"),
        ("utf-16 text".encode("utf-16-le"), r"a\.txt:1: a NUL"),
        (b"", r"a\.txt: .*empty"),
    ],
)
def test_bad_bytes_are_named_with_file_and_line(tmp_path, data, message):
    with pytest.raises(InputError, match=message):
        list(read_lines(written(tmp_path, data)))


def slowly(data, longest):
    """Return the lines before the first bad one, and what is wrong with that, one line after another."""
    found, data = [], data.removeprefix(b"\xef\xbb\xbf")
    for number, raw in enumerate(data.split(b"\n"), start=1):
        ended = data.count(b"\n") >= number
        if not ended and not raw:
            break
        if len(raw) + ended > longest:
            return found, f"a.txt:{number}: a line has more than"
        line = raw.removesuffix(b"\r") if ended else raw
        try:
            text = line.decode()
        except UnicodeDecodeError:
            return found, f"a.txt:{number}: not UTF-8"
        if "\0" in text:
            return found, f"a.txt:{number}: a NUL"
        found.append((number, text))
    return found, "" if found else "a.txt: the file is empty"


PIECES = st.sampled_from(
    [b"a", b"bc", b"\n", b"\n", b"\r\n", b"\r", b"\0", b"\xff", "é中\u2028".encode(), b"\xef\xbb\xbf", b"\xe4", b"x" * 9]
)


@FAST
@given(data=st.lists(PIECES, max_size=12).map(b"".join), at_once=st.integers(1, 9), longest=st.integers(8, 20))
def test_lines_hang_on_no_block(tmp_path, data, at_once, longest):
    path, found, problem = written(tmp_path, data), [], ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lines, "AT_ONCE", at_once)
        patch.setattr(_lines, "LONGEST", longest)
        try:
            for line in read_lines(path):
                found.append(line)
        except InputError as error:
            problem = str(error)
    lines, expected = slowly(data, longest)
    assert found == (told(lines) if not expected or any(text.strip() for _, text in lines) else [])
    assert expected in problem
    assert bool(expected) == bool(problem)


@FAST
@given(
    data=st.lists(PIECES, max_size=12).map(b"".join),
    at_once=st.integers(1, 9),
    longest=st.sampled_from([20, 1 << 20]),
    rows=st.integers(1, 4),
)
def test_columns_hold_the_lines(tmp_path, data, at_once, longest, rows):
    path, found, problem = written(tmp_path, data), [], ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lines, "AT_ONCE", at_once)
        patch.setattr(_lines, "LONGEST", longest)
        try:
            for column in read_columns(path, rows):
                column.validate(full=True)
                found.append(column.to_pylist())
        except InputError as error:
            problem = str(error)
    lines, expected = slowly(data, longest)
    texts = [text for _, text in lines]
    every = [texts[start : start + rows] for start in range(0, len(texts), rows)]
    assert expected in problem
    assert bool(expected) == bool(problem)
    assert found == (every[: len(found)] if expected else every)


@given(texts=st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=3)))
def test_blank_is_what_python_strips(texts):
    assert blank(pa.array(texts, pa.string())).tolist() == [not text.strip() for text in texts]


def test_every_space_is_blank():
    every = [*filter(str.isspace, map(chr, range(0x110000))), "", " \u3000\t"]
    assert blank(pa.array(every, pa.string())).all()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"gone\.txt: .*missing"):
        list(read_lines(tmp_path / "gone.txt"))


@pytest.mark.parametrize("text", ["", " ", "\t", "\u3000", "\r", "\u00a0\u2028"])
def test_white_space_is_no_text(tmp_path, text):
    with pytest.raises(InputError, match=r"a:7: .*empty"):
        check_text(text, "a", 7)


OPTIONS = {
    "text_lines": {},
    "moses": {},
    "dictionary": {},
    "tsv": {"columns": {1: "a_text", 2: "b_text"}},
    "nli_tsv": {},
}


def files_for(reader, path):
    names = {"moses": ("a.de", "a.en"), "nli_tsv": ("nli_de.tsv", "nli_en.tsv"), "dictionary": ("de-en.txt",)}
    return dict.fromkeys(names.get(reader, ("a.txt",)), path)


@FAST
@given(
    data=st.binary(max_size=40)
    | st.lists(
        st.sampled_from([b"id\tpremise\tentailed\tcontradicting", b"a\tb", b"\n", b'"', b"a b", b"\xff", b"1\ta\tb\tc"]), max_size=8
    ).map(b"".join)
)
@pytest.mark.parametrize("reader", sorted(OPTIONS))
@pytest.mark.parametrize("quoting", [False, True])
def test_no_bytes_crash_a_reader(tmp_path, reader, quoting, data):
    path = written(tmp_path, data)
    options = {**OPTIONS[reader], "quoting": quoting} if reader == "tsv" else OPTIONS[reader]
    langs = ["de"] if reader == "text_lines" else ["de", "en"]
    try:
        tables = list(READERS.get(reader)(files_for(reader, path), "demo", langs, **options))
    except InputError as error:
        tables = []
        problem = str(error)
    else:
        problem = "a.txt"
    assert "a.txt" in problem
    for row in pa.concat_tables(tables).to_pylist() if tables else []:
        assert row["id"].startswith("demo:")
        assert all(row[column].strip() for column in ("text", "a_text", "b_text") if row.get(column) is not None)


@FAST
@given(pairs=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5))
def test_moses_round_trip(tmp_path, pairs):
    for side, lang in enumerate(("de", "en")):
        (tmp_path / f"a.{lang}").write_bytes(b"".join(("|" + pair[side]).encode() + b"\n" for pair in pairs))
    tables = READERS.get("moses")({f"a.{lang}": tmp_path / f"a.{lang}" for lang in ("de", "en")}, "demo", ["en", "de"])
    found = [(row["id"], row["b_text"][1:], row["a_text"][1:]) for row in pa.concat_tables(tables).to_pylist()]
    assert found == [(f"demo:a.en:{number}", *pair) for number, pair in enumerate(pairs, start=1)]


@FAST
@given(records=st.lists(st.tuples(st.text(st.sampled_from('ab," \n\r\u2028'), min_size=1).filter(str.strip), TEXT), min_size=1, max_size=5))
def test_quoted_columns_round_trip(tmp_path, records):
    quoted = ["x" + first for first, _ in records]
    body = "".join(
        '"{}","{}"\n'.format(first.replace('"', '""'), second.replace('"', '""'))
        for first, (_, second) in zip(quoted, records, strict=True)
    )
    path = written(tmp_path, body.encode())
    tables = READERS.get("tsv")({"a.txt": path}, "demo", ["de", "en"], columns={1: "a_text", 2: "b_text"}, delimiter=",", quoting=True)
    found = pa.concat_tables(tables).to_pylist()
    expected = [(first.replace("\r\n", "\n"), second) for first, (_, second) in zip(quoted, records, strict=True)]
    assert [(row["a_text"], row["b_text"]) for row in found] == expected
    line = 1
    for row, first in zip(found, quoted, strict=True):
        assert row["id"] == f"demo:a.txt:{line}"
        line += 1 + first.count("\n")
