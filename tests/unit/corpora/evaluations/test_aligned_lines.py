"""Line-aligned files as a retrieval test, by their names alone."""

from __future__ import annotations

import gzip
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from crosslign.corpora import EVALUATIONS, Given
from crosslign.errors import InputError
from crosslign.tasks.score import score

ENGLISH = ["A cat.", "Yes.", "A dog.", "Yes."]
GERMAN = ["Eine Katze.", "Ja.", "Ein Hund.", "Jawohl."]
FRENCH = ["Un chat.", "Oui.", "Un chien.", "Oui."]


def written(folder, **named):
    paths = {name: folder / name for name in named}
    for name, lines in named.items():
        paths[name].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


def read(files, langs=("de", "en"), limit=None, **options):
    return EVALUATIONS.get("aligned_lines")(Given(files, {}, "news", list(langs), limit, 42), **options)


def items(evaluation):
    texts = dict(zip(evaluation.texts["text_id"].to_pylist(), evaluation.texts["text"].to_pylist(), strict=True))
    return [(row["subset"], row["role"], row["item_id"], texts[row["text_id"]]) for row in evaluation.items.to_pylist()]


def test_every_line_is_an_item_and_line_i_answers_line_i(tmp_path):
    found = read(written(tmp_path, **{"news.de": GERMAN, "news.en": ENGLISH}))
    assert [(item, text) for _, role, item, text in items(found) if role == "source"] == [
        (f"de-{at}", text) for at, text in enumerate(GERMAN)
    ]
    assert [(item, text) for _, role, item, text in items(found) if role == "target"] == [
        (f"en-{at}", text) for at, text in enumerate(ENGLISH)
    ]
    assert [(row["left"], row["right"]) for row in found.gold.to_pylist()] == [(f"de-{at}", f"en-{at}") for at in range(4)]
    assert found.texts.num_rows == 7  # "Yes." is encoded once


def test_a_repeated_sentence_counts_as_the_published_test_counts_it(tmp_path):
    """The second `Yes.` finds the first, which is another line: an error, but not where equal strings are hits."""
    found = read(written(tmp_path, **{"news.de": GERMAN, "news.en": ENGLISH}))
    place = dict(zip(found.texts["text"].to_pylist(), range(7), strict=True))
    vectors = np.zeros((7, 4), dtype=np.float32)
    for at, (german, english) in enumerate(zip(GERMAN, ENGLISH, strict=True)):
        vectors[place[german]] = vectors[place[english]] = np.eye(4)[1 if english == "Yes." else at]
    task = {"scorer": "retrieval", "main": {"metric": "accuracy", "subset": "de", "direction": "xx2en"}, "averages": {}}
    records = score("news", task, {"test": vectors}, {"test": found})
    value = {(record.protocol, record.direction): record.value for record in records if record.metric == "accuracy"}
    assert value["", "xx2en"] == 0.75
    assert value["string_equal", "xx2en"] == 1.0


def test_languages_share_the_files_of_the_pivot(tmp_path):
    found = read(written(tmp_path, **{"news.de": GERMAN, "news.fr": FRENCH, "news.en": ENGLISH}), ["de", "en", "fr"])
    assert list(dict.fromkeys(subset for subset, *_ in items(found))) == ["de", "fr"]


def test_pairs_have_files_of_their_own_in_an_archive_or_packed(tmp_path):
    with zipfile.ZipFile(tmp_path / "test.zip", "w") as archive:
        for name, lines in {
            "de-en/ref.de": GERMAN,
            "de-en/ref.en": ENGLISH,
            "fr-en/ref.fr": FRENCH[:2],
            "fr-en/ref.en": ENGLISH[:2],
        }.items():
            archive.writestr(f"wmt/{name}", "\n".join(lines) + "\n")
    options = {"pairs": ["de-en", "fr-en"], "sides": "wmt/{pair}/ref.{lang}"}
    found = read({"test.zip": tmp_path / "test.zip"}, [], **options)
    assert [sum(subset == pair for subset, *_ in items(found)) for pair in ("de-en", "fr-en")] == [8, 4]
    only = read({"test.zip": tmp_path / "test.zip"}, ["fr"], **options)
    assert {subset for subset, *_ in items(only)} == {"fr-en"}
    (tmp_path / "x.zh_CN.gz").write_bytes(gzip.compress("你好。\n".encode()))
    packed = read({"x.zh_CN.gz": tmp_path / "x.zh_CN.gz"} | written(tmp_path, **{"x.en": ["Hello."]}), ["zh"], codes={"zh": "zh_CN"})
    assert items(packed)[0] == ("zh", "source", "zh-0", "你好。")


def test_lines_of_a_document_are_one_cluster(tmp_path):
    files = written(tmp_path, **{"news.de": GERMAN, "news.en": ENGLISH, "news.docs": ["a", "a", "b", "b"]})
    found = read(files, documents="news.docs")
    assert found.items["cluster"].to_pylist() == ["a", "a", "a", "a", "b", "b", "b", "b"]
    assert "cluster" not in read(files).items.column_names


def test_a_blank_last_line_ends_a_file(tmp_path):
    found = read(written(tmp_path, **{"news.de": [*GERMAN, ""], "news.en": ENGLISH}))
    assert found.gold.num_rows == 4


@pytest.mark.parametrize(
    ("german", "options", "message"),
    [
        (GERMAN[:3], {}, r"news: .*news\.de.*3, news\.en.*\b4\b"),
        (["Eine Katze.", "", "Ein Hund.", "Ja."], {}, r"news\.de:2: .*empty"),
        (GERMAN, {"sides": "wmt.{lang}"}, r"news: .*file.*wmt\.de.*\[\]"),
        (GERMAN, {"pairs": ["deen"]}, r"news: 'deen'.*de-en"),
        (GERMAN, {"pivot": "de", "langs": ["de"]}, r"news: .*\['de'\].*'de'.*\[\]"),
        (GERMAN, {"documents": "docs.txt"}, r"news: .*file.*docs\.txt"),
    ],
)
def test_mistakes_are_named(tmp_path, german, options, message):
    with pytest.raises(InputError, match=message):
        read(written(tmp_path, **{"news.de": german, "news.en": ENGLISH}), **options)


def test_plain_text_in_a_set_cut_from_groups_is_sent_to_this_reader():
    lines = pa.table({"id": ["1"], "lang": ["de"], "text": ["Ja."]})
    with pytest.raises(InputError, match=r"news: 'lines'.*aligned_lines"):
        EVALUATIONS.get("parallel_retrieval")(Given({}, {"lines": lines}, "news", ["de"], None, 42), size=10)


def test_rows_of_bitext_are_planted_among_others():
    rows = [{"id": f"t:{n}", "a_lang": "de", "a_text": f"Satz {n}.", "b_lang": "en", "b_text": f"Sentence {n}."} for n in range(30)]
    options = {"pairs": ["de-en"], "gold": 10, "distractors": 10}
    given = Given({}, {"lines": pa.Table.from_pylist(rows)}, "news", ["de", "en"])
    found = EVALUATIONS.get("planted_bitext")(given, **options)
    number = {row["text_id"]: row["text"].split()[1] for row in found.texts.to_pylist()}
    said = {row["item_id"]: number[row["text_id"]] for row in found.items.to_pylist()}
    assert (len(said), len({*said.values()})) == (40, 30)
    links = [(said[row["left"]], said[row["right"]]) for row in found.gold.to_pylist()]
    assert (len(links), all(left == right for left, right in links)) == (10, True)
