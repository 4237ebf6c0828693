"""Code-switched views."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.errors import InputError
from crosslign.files import read_rows, sha256_file, write_rows
from crosslign.files.rows import SCHEMAS
from crosslign.views.build import build_view
from crosslign.views.builders.code_switch import split_punctuation

DICTIONARY = {"de": [("house", "Haus"), ("cat", "Katze"), ("cat", "Kater"), ("taxi", "Taxi")], "fr": [("house", "maison"), ("cat", "chat")]}


@pytest.fixture
def corpora(tmp_path):
    paths = {}
    for lang, words in DICTIONARY.items():
        rows = [{"id": f"d:{n}", "a_lang": "en", "a_text": a, "b_lang": lang, "b_text": b} for n, (a, b) in enumerate(words)]
        paths[f"words_{lang}"] = tmp_path / f"words_{lang}.parquet"
        write_rows(paths[f"words_{lang}"], pa.Table.from_pylist(rows, schema=SCHEMAS["bitext"]), "bitext")
    return paths


def mono(tmp_path, texts, lang="en", name="mono"):
    rows = [{"id": f"c:{n}", "lang": lang, "text": text} for n, text in enumerate(texts)]
    write_rows(tmp_path / f"{name}.parquet", pa.Table.from_pylist(rows, schema=SCHEMAS["mono"]), "mono")
    return {name: tmp_path / f"{name}.parquet"}


def entry(langs=("de", "fr"), **options):
    return {
        "builder": "code_switch",
        "from": ["mono"],
        "dictionaries": {lang: f"words_{lang}" for lang in langs},
        "probability": 1.0,
        **options,
    }


def test_every_known_word_is_replaced_at_probability_one(corpora, tmp_path):
    given = mono(tmp_path, ["The house, a “House” and my taxi.", "nothing here"])
    counts = build_view("v", entry(["de"], strip_punctuation=True), {**corpora, **given}, tmp_path / "v.parquet")
    rows = read_rows(tmp_path / "v.parquet").to_pylist()
    assert rows == [
        {
            "id": "v:c:0:1",
            "lang": "de",
            "text": "The Haus, a “Haus” and my Taxi.",
            "of": "c:0",
            "kind": "code_switch",
            "n": 1,
            "replaced": pytest.approx(3 / 7),
        },
        {"id": "v:c:1:1", "lang": "de", "text": "nothing here", "of": "c:1", "kind": "code_switch", "n": 1, "replaced": 0.0},
    ]
    assert counts["words"] == 9
    assert (counts["covered"], counts["replaced"], counts["identity"]) == (3, 3, 1)
    assert counts["identity_share"] == pytest.approx(1 / 3)
    assert counts["by_language"]["de"] == {key: counts[key] for key in counts["by_language"]["de"]}  # the only language
    assert counts["replaced_share"] == pytest.approx(3 / 9)
    assert (counts["read"], counts["rows"], counts["per_language"]) == (2, 2, {"de": 2})


def test_words_are_what_stands_between_white_space(corpora, tmp_path):
    given = mono(tmp_path, ["The house, a “House” and my HOUSE"])
    counts = build_view("v", entry(["de"]), {**corpora, **given}, tmp_path / "v.parquet")
    assert read_rows(tmp_path / "v.parquet")["text"].to_pylist() == ["The house, a “House” and my Haus"]
    assert counts["covered"] == 1


def test_probability_zero_changes_nothing(corpora, tmp_path):
    build_view("v", entry(probability=0.0), {**corpora, **mono(tmp_path, ["a house"])}, tmp_path / "v.parquet")
    assert read_rows(tmp_path / "v.parquet")["text"].to_pylist() == ["a house"]


def test_shares_follow_the_probability_and_choices_are_uniform(corpora, tmp_path):
    given = mono(tmp_path, ["cat " * 10] * 600)
    counts = build_view("v", entry(probability=0.75), {**corpora, **given}, tmp_path / "v.parquet")
    assert counts["replaced"] / 6000 == pytest.approx(0.75, abs=0.03)  # 5 standard deviations
    assert counts["per_language"]["de"] / 600 == pytest.approx(0.5, abs=0.1)
    words = " ".join(read_rows(tmp_path / "v.parquet")["text"].to_pylist()).split()
    assert words.count("Kater") / (words.count("Kater") + words.count("Katze")) == pytest.approx(0.5, abs=0.06)


def test_one_language_a_view_or_one_a_word(corpora, tmp_path):
    given = mono(tmp_path, ["house " * 12] * 20)
    build_view("v", entry(), {**corpora, **given}, tmp_path / "v.parquet")
    assert all(len(set(text.split())) == 1 for text in read_rows(tmp_path / "v.parquet")["text"].to_pylist())
    build_view("v", entry(per_word_language=True), {**corpora, **given}, tmp_path / "v.parquet")
    mixed = read_rows(tmp_path / "v.parquet")
    assert all(set(text.split()) == {"Haus", "maison"} for text in mixed["text"].to_pylist())
    assert set(mixed["lang"].to_pylist()) == {"en"}


def test_draws_hang_on_seed_and_id_alone(corpora, tmp_path):
    texts = [f"cat house cat {n}" for n in range(30)]
    given = mono(tmp_path, texts)
    options = entry(probability=0.5, views=3)
    build_view("v", options, {**corpora, **given}, tmp_path / "all.parquet")
    build_view("v", options, {**corpora, **given}, tmp_path / "again.parquet")
    assert sha256_file(tmp_path / "all.parquet") == sha256_file(tmp_path / "again.parquet")
    rows = read_rows(tmp_path / "all.parquet").to_pylist()
    assert len({row["id"] for row in rows}) == 90
    assert [row["n"] for row in rows[:4]] == [1, 2, 3, 1]
    backwards = [{"id": f"c:{n}", "lang": "en", "text": text} for n, text in reversed(list(enumerate(texts)))]
    write_rows(tmp_path / "mono.parquet", pa.Table.from_pylist(backwards, schema=SCHEMAS["mono"]), "mono")
    build_view("v", options, {**corpora, **given}, tmp_path / "turned.parquet")
    assert sorted(read_rows(tmp_path / "turned.parquet").to_pylist(), key=str) == sorted(rows, key=str)
    build_view("v", {**options, "seed": 7}, {**corpora, **given}, tmp_path / "other.parquet")
    assert read_rows(tmp_path / "other.parquet")["text"].to_pylist() != read_rows(tmp_path / "turned.parquet")["text"].to_pylist()


def test_only_rows_of_the_languages_are_copied(corpora, tmp_path):
    rows = [
        {"id": "c:1", "group": "g", "lang": "en", "text": "a cat", "version": "k"},
        {"id": "c:2", "group": "g", "lang": "de", "text": "eine Katze", "version": None},
    ]
    write_rows(tmp_path / "mono.parquet", pa.Table.from_pylist(rows, schema=SCHEMAS["multiway"]), "multiway")
    build_view("v", entry(["fr"]), {**corpora, "mono": tmp_path / "mono.parquet"}, tmp_path / "v.parquet")
    (row,) = read_rows(tmp_path / "v.parquet").to_pylist()
    assert (row["of"], row["group"], row["version"], row["text"], row["lang"]) == ("c:1", "g", "k", "a chat", "fr")


def test_both_sentences_of_a_labelled_row_switch_into_one_language(corpora, tmp_path):
    row = {"id": "c:1", "a_lang": "en", "a_text": "cat cat", "b_lang": "en", "b_text": "house house", "label": [2.0], "group": "g"}
    write_rows(tmp_path / "mono.parquet", pa.Table.from_pylist([row], schema=SCHEMAS["labelled"]), "labelled")
    build_view("v", entry(views=8), {**corpora, "mono": tmp_path / "mono.parquet"}, tmp_path / "v.parquet")
    for copy in read_rows(tmp_path / "v.parquet").to_pylist():
        assert copy["a_lang"] == copy["b_lang"]
        assert copy["b_text"] == {"de": "Haus Haus", "fr": "maison maison"}[copy["a_lang"]]
        assert (copy["label"], copy["group"], copy["replaced"]) == ([2.0], "g", 1.0)


def test_languages_without_a_dictionary_are_skipped_and_named(corpora, tmp_path):
    given = mono(tmp_path, ["a cat"] * 9)
    counts = build_view("v", entry(targets=["fr", "sw", "ur"]), {**corpora, **given}, tmp_path / "v.parquet")
    assert (counts["languages"], counts["without_dictionary"]) == (["fr"], ["sw", "ur"])
    assert [*counts["by_language"]] == ["fr"]
    assert counts["per_language"] == {"fr": 9}
    assert build_view("v", entry(), {**corpora, **given}, tmp_path / "v.parquet")["without_dictionary"] == []
    with pytest.raises(InputError, match="no language to switch into"):
        build_view("v", entry(targets=["sw"]), {**corpora, **given}, tmp_path / "v.parquet")


def test_errors(corpora, tmp_path):
    with pytest.raises(InputError, match="view is empty"):
        build_view("v", entry(), {**corpora, **mono(tmp_path, ["ein Haus"], "de")}, tmp_path / "v.parquet")
    assert not (tmp_path / "v.parquet").exists()
    with pytest.raises(InputError, match="'words_de' has no words of ru into 'de'"):
        build_view("v", {**entry(["de"]), "langs": ["ru"]}, {**corpora, **mono(tmp_path, ["x"])}, tmp_path / "v.parquet")
    both = {**corpora, **mono(tmp_path, ["x"])}
    with pytest.raises(InputError, match="one kind"):
        build_view("v", {**entry(), "from": ["mono", "words_de"]}, both, tmp_path / "v.parquet")


@settings(max_examples=150)
@given(st.text("ab'-.,“”!\u00bf x", max_size=8))
def test_punctuation_is_taken_off_and_put_back(word):
    before, inner, after = split_punctuation(word)
    assert before + inner + after == word
    assert inner == "" or (inner[0] not in ".,“”!'-\u00bf" and inner[-1] not in ".,“”!'-\u00bf")


def test_punctuation_inside_a_word_stays():
    assert split_punctuation("“don't!”") == ("“", "don't", "!”")
