"""A user's own files: sentences, vectors, pairs on disk."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosslign.errors import InputError
from crosslign.files import read_rows, write_rows
from crosslign.mining.knn import neighbours
from crosslign.mining.lists import Neighbours, read_neighbours, write_neighbours
from crosslign.mining.pairs import write_pairs
from crosslign.mining.texts import read_sentences

READOUT = {"pooling": "mean", "layer": -1, "max_length": 32, "normalise": True, "precision": "fp32", "prefix": ""}


def write_texts(path: Path, texts: list[str], lang: str = "en") -> Path:
    ids = [str(number) for number in range(1, len(texts) + 1)]
    write_rows(path, pa.table({"text_id": ids, "lang": [lang] * len(ids), "text": texts}), "texts")
    return path


LINES = ["  Erster Satz. ", "", "Zweiter Satz.", "\t ", "Erster Satz.", "Zweiter\tSatz.", "erster satz.", "Zweiter Satz."]


@pytest.mark.parametrize("dedup", ["text", "id"])
@pytest.mark.parametrize("batch", [1, 3, 1000])
def test_sentences_keep_their_line_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dedup: str, batch: int) -> None:
    monkeypatch.setattr("crosslign.mining.texts.BATCH", batch)
    file = tmp_path / "text.de.gz"
    with gzip.open(file, "wb") as out:
        out.write("\n".join(LINES).encode())
    counts = read_sentences([file], "de", tmp_path / "rows.parquet", dedup)
    rows = read_rows(tmp_path / "rows.parquet", "texts").to_pylist()
    found = [(int(row["text_id"]), row["text"]) for row in rows]
    first = [(1, "Erster Satz."), (3, "Zweiter Satz."), (6, "Zweiter\tSatz."), (7, "erster satz.")]
    assert found == (first if dedup == "text" else sorted([*first, (5, "Erster Satz."), (8, "Zweiter Satz.")]))
    assert {row["lang"] for row in rows} == {"de"}
    assert counts == {"lines": 8, "empty": 2, "repeated": 2 if dedup == "text" else 0, "sentences": len(found)}


def test_a_limit_counts_lines(tmp_path: Path) -> None:
    file = tmp_path / "text.de"
    file.write_text("\n".join(LINES), encoding="utf-8")
    counts = read_sentences([file], "de", tmp_path / "rows.parquet", "text", limit=4)
    assert (counts["lines"], counts["sentences"]) == (4, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "text: .*empty"), (b"\n \n", r"text: .*sentence.*\b2 "), (b"fine\n\xff\n", r"text:2: .*byte 0xff"), (None, "text: .*missing")],
)
def test_files_without_sentences_are_refused_by_name(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "text"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_sentences([file], "de", tmp_path / "rows.parquet", "text")
    assert not (tmp_path / "rows.parquet").exists()


@pytest.mark.parametrize(
    ("name", "content"), [("empty", b""), ("cut.gz", gzip.compress(b"hello\n" * 1000)[:-10]), ("plain.gz", b"hello\n")]
)
def test_nobody_is_told_to_delete_a_file_of_their_own(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}: .*replace") as refused:
        read_sentences([tmp_path / name], "de", tmp_path / "rows.parquet", "text")
    assert name in str(refused.value)
    assert not {"Delete", "fetches"} & set(str(refused.value).split())


TEXTS = ["  One. ", "", None, "Two\nlines.", "One."]


def written(path: Path, texts: list[str | None]) -> Path:
    """Write a file in the form that its name says, as other programs would."""
    objects = [{"id": number, "text": text, "inner": {"en": text}} for number, text in enumerate(texts)]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(objects), path, row_group_size=2)
    else:
        lines = json.dumps(objects, indent=1) if ".json" in path.suffixes else "\n\n".join(map(json.dumps, objects))
        path.write_bytes(gzip.compress(lines.encode()) if path.suffix == ".gz" else lines.encode())
    return path


def found_in(files: list[Path], **form: object) -> tuple[list[tuple[str, str]], dict[str, int]]:
    counts = read_sentences(files, "en", files[0].parent / "rows.parquet", "text", **form)
    rows = read_rows(files[0].parent / "rows.parquet", "texts").to_pylist()
    return [(row["text_id"], row["text"]) for row in rows], counts


@pytest.mark.parametrize("column", [None, "inner.en"])
@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.jsonl.gz", "a.json"])
def test_a_row_or_an_object_is_a_line(tmp_path: Path, name: str, column: str | None) -> None:
    found, counts = found_in([written(tmp_path / name, TEXTS)], column=column)
    at = (lambda number: 2 * number - 1) if ".jsonl" in name else (lambda number: number)
    assert found == [(str(at(1)), "One."), (str(at(4)), "Two\nlines.")]
    assert counts == {"lines": 5, "empty": 2, "repeated": 1, "sentences": 2}


def test_of_several_files_a_place_names_the_file_and_equal_sentences_are_one(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/c.txt").write_text("One.\nThree: 3.\n", encoding="utf-8")
    files = [written(tmp_path / "a.parquet", TEXTS), tmp_path / "deep/c.txt"]
    found, counts = found_in(files)
    assert found == [("a.parquet:1", "One."), ("a.parquet:4", "Two\nlines."), ("deep/c.txt:2", "Three: 3.")]
    assert (counts["files"], counts["lines"], counts["repeated"]) == (2, 7, 2)
    assert found_in(files, limit=1)[0] == found[:1]


def test_documents_are_split_into_sentences_that_keep_their_places(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", ["Mr. Day left. It rained!\nThen the end", "雨が降った。終わり。", "It rained!"])
    assert found_in([file], split=True)[0] == [
        ("1.1", "Mr. Day left."),
        ("1.2", "It rained!"),
        ("1.3", "Then the end"),
        ("3.1", "雨が降った。"),
        ("3.2", "終わり。"),
    ]


@pytest.mark.parametrize(
    ("name", "texts", "column", "message"),
    [
        ("a.parquet", ["One."], "txt", r"a\.parquet: .*'txt'; .* id, inner, text; .*'text'.*--columns"),
        ("a.parquet", ["One."], "id", r"a\.parquet: .*'id'.*int64.*--columns"),
        ("a.jsonl", ["One."], "inner.de", r"a\.jsonl:1: .*'inner\.de'.*--columns"),
        ("a.jsonl", ["One."], "id", r"a\.jsonl:1: .*text; .* 0\b"),
        ("a.jsonl", ["One.", "T\0"], None, r"a\.jsonl:3: .*NUL"),
        ("a.parquet", ["One.", "T\0"], None, r"a\.parquet:2: .*NUL"),
        ("a.jsonl", ["\ud83d"], None, r"a\.jsonl:1: .*surrogate"),
        ("a.txt", ["One."], "txt", r"a\.txt: .*columns.*'txt'"),
    ],
)
def test_a_column_that_is_not_there_or_holds_no_text_is_told(
    tmp_path: Path, name: str, texts: list[str | None], column: str | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        found_in([written(tmp_path / name, texts)], column=column)
    assert not (tmp_path / "rows.parquet").exists()


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.large_string())],
)
def test_text_is_read_however_parquet_keeps_it(tmp_path: Path, kind: pa.DataType) -> None:
    texts = ["One.", None, "Two.", "One."]
    pq.write_table(pa.table({"text": pa.array(texts).cast(kind)}), tmp_path / "a.parquet")
    assert found_in([tmp_path / "a.parquet"])[0] == [("1", "One."), ("3", "Two.")]
    pq.write_table(pa.table({"text": pa.array([1, 2]).dictionary_encode()}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet: .*'text'.*int"):
        found_in([tmp_path / "b.parquet"])


def test_a_damaged_parquet_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing")
    with pytest.raises(InputError, match=r"a\.parquet: .*Parquet"):
        found_in([tmp_path / "a.parquet"])


def test_a_folder_is_no_file_of_sentences(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"{tmp_path}: .*folder"):
        read_sentences([tmp_path], "de", tmp_path / "rows.parquet", "text")


def hand_case(tmp_path: Path) -> tuple[Neighbours, tuple[Path, Path]]:
    # k = 1 and cosines that a hand can check: means are f = (1, .6), b = (1, .6); ratios 1 and 1.
    x, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.8, 0.6]])
    texts = write_texts(tmp_path / "s.parquet", ["eins", "zw\tei"], "de"), write_texts(tmp_path / "t.parquet", ["one", "two"])
    return neighbours(x, y, 2), texts


def test_pairs_by_hand(tmp_path: Path) -> None:
    # f = ((1 + .8) / 2, (.6 + 0) / 2) = (.9, .3); b = ((1 + 0) / 2, (.8 + .6) / 2) = (.5, .7).
    # Ratios: (0,0) 1 / .7, (0,1) .8 / .8, (1,0) 0, (1,1) .6 / .5.
    near, texts = hand_case(tmp_path)
    outputs = {"tsv": tmp_path / "out.tsv", "parquet": tmp_path / "out.parquet"}
    counts = write_pairs(near, texts, outputs, margin="ratio", retrieval="max", threshold=1.25)
    assert counts == {"pairs": 2, "above_threshold": 1, "threshold": 1.25, "written": 2, "recall_at_k": None}
    rows = pq.read_table(outputs["parquet"]).to_pylist()
    assert [row["score"] for row in rows] == pytest.approx([1 / 0.7, 1.2], abs=1e-7)
    assert [(row["source_line"], row["target_line"], row["above_threshold"]) for row in rows] == [(1, 1, True), (2, 2, False)]
    assert [(row["source_text"], row["target_text"]) for row in rows] == [("eins", "one"), ("zw\tei", "two")]
    assert outputs["tsv"].read_bytes().decode().split("\n") == [
        "score\tabove_threshold\tsource_line\ttarget_line\tsource_text\ttarget_text",
        "1.428571\ttrue\t1\t1\teins\tone",
        "1.200000\tfalse\t2\t2\tzw ei\ttwo",
        "",
    ]
    counts = write_pairs(near, texts, outputs, margin="ratio", retrieval="max", threshold=1.25, only_above=True)
    assert counts["written"] == pq.read_table(outputs["parquet"]).num_rows == 1


def test_a_score_at_the_threshold_is_above_it_and_pairs_without_a_score_are_left_out(tmp_path: Path) -> None:
    x, y = np.eye(3)[:2], np.eye(3)[[2, 0]]  # zwei and three are orthogonal to all: a mean of 0, no ratio
    texts = write_texts(tmp_path / "s.parquet", ["eins", "zwei"], "de"), write_texts(tmp_path / "t.parquet", ["three", "one"])
    outputs = {"tsv": tmp_path / "out.tsv", "parquet": tmp_path / "out.parquet"}
    counts = write_pairs(neighbours(x, y, 1), texts, outputs, margin="ratio", retrieval="fwd", threshold=1.0)
    assert (counts["pairs"], counts["above_threshold"], counts["written"]) == (1, 1, 1)
    assert [(row["score"], row["above_threshold"]) for row in pq.read_table(outputs["parquet"]).to_pylist()] == [(1.0, True)]


def test_pairs_are_best_first_whatever_the_retrieval(tmp_path: Path) -> None:
    x, y = np.array([[0.8, 0.6], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.6, 0.8]])
    texts = write_texts(tmp_path / "s.parquet", ["a", "b"], "de"), write_texts(tmp_path / "t.parquet", ["c", "d"])
    write_pairs(
        neighbours(x, y, 1),
        texts,
        {"tsv": tmp_path / "o.tsv", "parquet": tmp_path / "o.parquet"},
        margin="absolute",
        retrieval="fwd",
        threshold=None,
    )
    rows = pq.read_table(tmp_path / "o.parquet").to_pylist()
    assert [(row["source_text"], row["target_text"]) for row in rows] == [("b", "c"), ("a", "d")]
    assert [row["score"] for row in rows] == pytest.approx([1.0, 0.96])


def test_nothing_in_a_sentence_breaks_a_row(tmp_path: Path) -> None:
    """Whatever splits lines or cells, in Python or on a terminal, is one space in the TSV; Parquet has the sentence."""
    texts = [f"ein{chr(code)}s" for code in (*range(1, 10), *range(11, 0x20), 0x7F, 0x85, 0x9B, 0x2028, 0x2029)] + ['"zwei', "dr\\ei'"]
    near = neighbours(*(np.random.default_rng(0).standard_normal((len(texts), 16)) for _ in range(2)), 2)
    paths = write_texts(tmp_path / "s.parquet", texts, "de"), write_texts(tmp_path / "t.parquet", texts)
    outputs = {"tsv": tmp_path / "out.tsv", "parquet": tmp_path / "out.parquet"}
    write_pairs(near, paths, outputs, margin="distance", retrieval="fwd", threshold=None)
    header, *rows = [line.split("\t") for line in outputs["tsv"].read_text(encoding="utf-8").splitlines()]
    assert {len(row) for row in rows} == {len(header)}
    expected = {str(number): "ein s" if text.startswith("ein") else text for number, text in enumerate(texts, start=1)}
    assert {row[2]: row[4] for row in rows} == expected
    assert sorted(pq.read_table(outputs["parquet"])["source_text"].to_pylist()) == sorted(texts)


def test_batches_change_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    near = neighbours(rng.standard_normal((50, 8)), rng.standard_normal((40, 8)), 3)
    texts = (
        write_texts(tmp_path / "s.parquet", [f"s{i}" for i in range(50)]),
        write_texts(tmp_path / "t.parquet", [f"t{i}" for i in range(40)]),
    )
    found = []
    for batch in (7, 65_536):
        monkeypatch.setattr("crosslign.mining.pairs.BATCH", batch)
        outputs = {"tsv": tmp_path / f"{batch}.tsv", "parquet": tmp_path / f"{batch}.parquet"}
        write_pairs(near, texts, outputs, margin="distance", retrieval="fwd", threshold=None)
        found.append([path.read_bytes() for path in outputs.values()])
    assert found[0] == found[1]


def test_sentences_of_another_search_are_refused(tmp_path: Path) -> None:
    near, (source, _) = hand_case(tmp_path)
    other = write_texts(tmp_path / "u.parquet", ["one", "two", "three"])
    with pytest.raises(InputError, match=r"2 and 3 .*2 and 2 "):
        write_pairs(near, (source, other), {"tsv": tmp_path / "a"}, margin="ratio", retrieval="max", threshold=None)


def test_neighbours_come_back_as_they_were(tmp_path: Path) -> None:
    near, _ = hand_case(tmp_path)
    write_neighbours(tmp_path / "near.safetensors", near)
    back = read_neighbours(tmp_path / "near.safetensors")
    assert back.recall is near.recall is None
    for name in ("forward_indices", "forward_scores", "backward_indices", "backward_scores"):
        assert np.array_equal(getattr(back, name), getattr(near, name))
        assert getattr(back, name).dtype == getattr(near, name).dtype
    (tmp_path / "near.safetensors").write_bytes(b"damaged")
    for path, message in (("near.safetensors", r"near\.safetensors: .*neighbours"), ("none", "none: .*missing")):
        with pytest.raises(InputError, match=message):
            read_neighbours(tmp_path / path)
