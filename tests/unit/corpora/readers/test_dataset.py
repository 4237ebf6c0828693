"""Files that the library datasets opens: what its builders make of them, packed or not, and what is told of those that cannot be read."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import socket

import datasets
import pytest
import zstandard

from crosslign.errors import InputError

COLUMNS = {"premise": "a_text", "hypothesis": "b_text", "label": "label"}
ROWS = [("Null", "NA", 1), ('He said "no",\nthen left.', "007", 0), ("E\u2028e", "2020-01-01", 1)]
"""Texts that look like something else: a missing value, a number, a date, two lines."""
PACKING = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
QUOTED = 'premise{0}hypothesis{0}label{0}n\nNull{0}NA{0}1{0}1\n"He said ""no"",\nthen left."{0}007{0}0{0}\nE\u2028e{0}2020-01-01{0}1{0}x\n'
OBJECTS = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
LINES = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in OBJECTS)
WRITTEN = {
    "train.csv": QUOTED.format(","),
    "train.tsv": QUOTED.format("\t"),
    "train.jsonl": LINES,
    "train.ndjson": LINES,
    "train.json": json.dumps(OBJECTS, indent=1),
}


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args):
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(("name", "packing"), [*((name, "") for name in WRITTEN), *(("train.csv", end) for end in PACKING if end)])
def test_files_of_ones_own_are_read_as_they_are_written(tmp_path, rows, name, packing):
    path = tmp_path / f"{name}{packing}"
    path.write_bytes(PACKING[packing](WRITTEN[name].encode()))
    found = rows("dataset", {path.name: path}, ["en"], columns=COLUMNS)
    assert [(row["a_text"], row["b_text"], row["label"]) for row in found] == [(one, two, [label]) for one, two, label in ROWS]
    assert [row["id"] for row in found] == [f"demo:{path.name}:{number}" for number in (1, 2, 3)]


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("packing", PACKING)
def test_a_text_file_has_one_column(tmp_path, rows, packing):
    path = tmp_path / f"news.txt{packing}"
    path.write_bytes(PACKING[packing]("\ufeffOne.\r\n\nThree\u2028and\ra half.\n".encode()))
    found = rows("dataset", {path.name: path}, ["en"], columns={"text": "text"}, kind="mono", skip_empty=True)
    assert [(row["text"], row["id"]) for row in found] == [
        ("One.", f"demo:{path.name}:1"),
        ("Three\u2028and\ra half.", f"demo:{path.name}:3"),
    ]


def test_a_column_may_be_called_as_one_inside_another(tmp_path, rows):
    (tmp_path / "flat.csv").write_text("translation.de,translation.en\nHallo,Hello\n")
    (tmp_path / "deep.jsonl").write_text('{"translation": {"de": "Hallo", "en": "Hello"}}\n')
    for name in ("flat.csv", "deep.jsonl"):
        columns = {"translation.de": "a_text", "translation.en": "b_text"}
        found = rows("dataset", {name: tmp_path / name}, ["de", "en"], columns=columns, kind="bitext")
        assert [(row["a_text"], row["b_text"]) for row in found] == [("Hallo", "Hello")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"text\nx\n\xff\n", r"a\.csv:3: .*0xff.* 1$"),
        ("a.csv", b"text\nx\ny,z\n", r"a\.csv: .*CSV.* line 3\b.*`local`"),
        ("a.csv", b"texts\nx\n", r"a\.csv:1: .*'text'.*'texts'"),
        ("a.csv", b"", r"a\.csv: .*empty"),
        ("a.tsv", b"text\tn\n\t2\n", r"a\.tsv:1: .*text .*empty"),
        ("a.jsonl", b'{"text": "x"}\n{"text": "y"\n{"text": "z"}\n', r"a\.jsonl:2: .* JSON; "),
        ("a.jsonl", b'{"text": "x"}\n{"text": "\xff"}\n', r"a\.jsonl:2: .*0xff.* 11$"),
        ("a.txt", b"x\ny\n\xff\n", r"a\.txt:3: .*0xff.* 1$"),
        ("a.txt.gz", gzip.compress(b"x\n\xff\n"), r"a\.txt\.gz:2: .*0xff.* 1$"),
        ("a.txt.gz", b"x\n", r"a\.txt\.gz: .*archive"),
        ("a.txt.zst", zstandard.compress(bytes(range(32, 127)) * 9000)[:-9], r"a\.txt\.zst: .*archive"),
        ("a.zip", b"", r"demo: 'a\.zip'.*`dataset`"),
        ("a.gz", b"", r"a\.gz: .*\.arrow, \.csv"),
        ("a.txt", None, r"a\.txt: .*missing"),
        ("a.csv", None, r"a\.csv: .*missing"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_its_line(tmp_path, rows, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        rows("dataset", {name: tmp_path / name}, ["en"], columns={"text": "text"}, kind="mono")


def test_who_lacks_the_package_that_unpacks_zstd_is_told_its_name(tmp_path, rows, monkeypatch):
    (tmp_path / "a.csv.zst").write_bytes(zstandard.compress(b"text\nx\n"))
    monkeypatch.setattr("crosslign.corpora.readers.dataset.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"a\.csv\.zst: .*zstandard"):
        rows("dataset", {"a.csv.zst": tmp_path / "a.csv.zst"}, ["en"], columns={"text": "text"}, kind="mono")


def test_files_of_data_sets(tmp_path, rows):
    texts = [{"premise": "A", "hypothesis": "B"}, {"premise": "C", "hypothesis": None}, {"premise": "E", "hypothesis": "F"}]
    labels = datasets.ClassLabel(names=["entailment", "neutral"])
    features = datasets.Features({"pair": {"premise": datasets.Value("string"), "hypothesis": datasets.Value("string")}, "label": labels})
    written = datasets.Dataset.from_dict({"pair": texts, "label": [1, 0, 0]}, features=features)
    written.to_parquet(str(tmp_path / "train.parquet"))
    written.save_to_disk(str(tmp_path / "saved"))
    columns = {"pair.premise": "a_text", "pair.hypothesis": "b_text", "label": "label"}
    for path in (tmp_path / "train.parquet", next((tmp_path / "saved").glob("*.arrow"))):
        found = rows("dataset", {path.name: path}, ["en"], columns=columns, skip_empty=True)
        kept = [(row["a_text"], row["b_text"], row["label"], row["id"]) for row in found]
        assert kept == [("A", "B", [1.0], f"demo:{path.name}:1"), ("E", "F", [0.0], f"demo:{path.name}:3")]
    path = tmp_path / "train.parquet"
    with pytest.raises(InputError, match=r"train\.parquet:1: .*'pair.premises'.*'premise'"):
        rows("dataset", {path.name: path}, ["en"], columns={"pair.premises": "a_text"})
    with pytest.raises(InputError, match=r"train\.parquet:1: .*'pair'.*\{'premise': 'A'"):
        rows("dataset", {path.name: path}, ["en"], columns={"pair": "a_text"})
    (tmp_path / "cut.parquet").write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"cut\.parquet: .*Parquet.*`local`"):
        rows("dataset", {"cut.parquet": tmp_path / "cut.parquet"}, ["en"], columns=columns)
    with pytest.raises(InputError, match=r"a\.orc: .*\.arrow, \.csv"):
        rows("dataset", {"a.orc": tmp_path / "a.orc"}, ["en"], columns=columns)
