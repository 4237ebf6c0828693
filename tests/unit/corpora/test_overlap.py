"""The overlap of corpora and evaluation corpora: small cases, and the trap that real data hold."""

from __future__ import annotations

import io
import unicodedata
import zipfile
from itertools import islice

import pyarrow as pa
import pytest

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.decontamination import Decontamination
from crosslign.corpora.overlap import as_csv, as_markdown, measure_corpus, removed_by_corpus
from crosslign.files import read_rows, write_rows
from crosslign.files.rows import SCHEMAS


def decontaminated(table, evaluations):
    cleaner = Decontamination(evaluations)
    return cleaner.clean(table), cleaner.counts


def bare(text):
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if unicodedata.category(c)[0] not in "PSZC") or folded


def write(path, kind, rows):
    write_rows(path, pa.Table.from_pylist(rows, schema=SCHEMAS[kind]), kind)
    return path


def texts(path, pairs):
    return write(path, "texts", [{"text_id": f"t:{n}", "lang": "en", "text": a, "pair_text": b} for n, (a, b) in enumerate(pairs)])


def test_rows_and_texts_are_counted(tmp_path):
    rows = [("One house", "Ein Haus"), ("one HOUSE!", "Zwei"), ("Two", None), ("three", "Drei."), ("four", "vier")]
    corpus = [{"id": f"c:{n}", "a_lang": "en", "a_text": a, "b_lang": b and "de", "b_text": b} for n, (a, b) in enumerate(rows)]
    path = write(tmp_path / "corpus.parquet", "labelled", corpus)
    sets = {
        "first": texts(tmp_path / "first.parquet", [("one house", None), ("One house.", None), ("ein Haus", "two"), ("seven", None)]),
        "none": texts(tmp_path / "none.parquet", [("nothing", None)]),
    }
    first, none = measure_corpus(path, sets)
    assert first == {"evaluation": "first", "rows": 5, "found": 3, "all_sides": 2, "evaluation_texts": 4, "texts_found": 3}
    assert (none["found"], none["texts_found"], none["evaluation_texts"]) == (0, 0, 1)


def test_removed_examples_are_added_over_training_sets():
    counts = [
        {"evaluations": {"e": {"dropped": 3, "corpora": {"c": 2, "d": 1}}}},
        {"evaluations": {"e": {"dropped": 4, "corpora": {"c": 4}}, "f": {"dropped": 0, "corpora": {}}}},
    ]
    assert removed_by_corpus(counts) == {("c", "e"): 6, ("d", "e"): 1}


def test_both_forms_say_the_same():
    row = {"rows": 1000, "found": 7, "all_sides": 1, "evaluation_texts": 9, "texts_found": 4, "removed": 6}
    rows = [{"corpus": "c", "evaluation": evaluation, **row, "expected": expected} for evaluation, expected in (("f", "none"), ("e", ""))]
    assert as_csv(rows).splitlines() == [
        "corpus,evaluation,rows,found,all_sides,evaluation_texts,texts_found,removed,expected",
        "c,f,1000,7,1,9,4,6,none",
        "c,e,1000,7,1,9,4,6,",
    ]
    assert as_markdown(rows).splitlines()[-3:] == ["| corpus | rows | e | f |", "|---|---:|---:|---:|", "| c | 1,000 | 7 / 6 | ! 7 / 6 |"]
    assert "!" not in as_markdown([{**rows[0], "found": 0}]).splitlines()[-1]
    assert as_csv([]).count("\n") == 1


@pytest.mark.parametrize(("code", "lang"), [("deu", "de"), ("fra", "fr")])
def test_the_tatoeba_test_inside_tatoebas_own_pairs_is_caught(mirror, tmp_path, code, lang):
    with zipfile.ZipFile(mirror / "tatoeba-bilingual" / f"{code}-eng.zip") as archive, archive.open(f"{code}.txt") as stream:
        lines = (line.rstrip("\n").split("\t")[:2] for line in io.TextIOWrapper(stream, encoding="utf-8", newline="\n"))
        pairs = [{"id": f"c:{n}", "a_lang": "en", "a_text": a, "b_lang": lang, "b_text": b} for n, (a, b) in enumerate(lines)]
    official = {path.name: path for path in (mirror / "tatoeba-v1").glob(f"tatoeba.{code}-eng.*")}
    evaluation = EVALUATIONS.get("tatoeba")(Given(official, {}, "tatoeba", [code], None, 42))
    write_rows(tmp_path / "texts.parquet", evaluation.texts, "texts")
    sets = {"tatoeba": tmp_path / "texts.parquet"}
    corpus = write(tmp_path / "corpus.parquet", "bitext", pairs)
    (found,) = measure_corpus(corpus, sets)
    assert found["texts_found"] / found["evaluation_texts"] > 1 / 3
    assert found["all_sides"] > 300  # test pairs that stand there word for word

    table = read_rows(corpus).drop_columns(["score"]).append_column("rows", pa.array([[row["id"]] for row in pairs]))
    kept, counts = decontaminated(table, sets)
    assert counts["evaluations"]["tatoeba"]["corpora"] == {"c": found["found"]}
    test = {bare(text) for text in evaluation.texts["text"].to_pylist()}
    slow = [row["id"] for row in islice(pairs, 0, None, 23) if bare(row["a_text"]) not in test and bare(row["b_text"]) not in test]
    ids = set(kept["id"].to_pylist())
    assert [row["id"] for row in islice(pairs, 0, None, 23) if row["id"] in ids] == slow
    (left,) = measure_corpus(write(tmp_path / "clean.parquet", "bitext", kept.drop_columns(["rows"]).to_pylist()), sets)
    assert (left["found"], left["texts_found"]) == (0, 0)
