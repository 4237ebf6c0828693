"""Translated views against aligned corpora small enough to read."""

import pyarrow as pa
import pytest

from crosslign.errors import InputError
from crosslign.files import read_rows, write_rows
from crosslign.files.rows import SCHEMAS
from crosslign.views.build import build_view

LANGS = ("en", "de", "fr")


@pytest.fixture
def labelled(tmp_path):
    """Twenty NLI rows in three languages, the rows of one group apart by label alone; French lacks every fourth group."""
    rows = [
        {
            "id": f"n:{lang}:{g}:{label}",
            "a_lang": lang,
            "a_text": f"a{g} {lang}",
            "b_lang": lang,
            "b_text": f"b{g}/{label} {lang}",
            "label": [float(label)],
            "group": str(g),
        }
        for lang in LANGS
        for g in range(10)
        for label in (0, 2)
        if lang != "fr" or g % 4
    ]
    write_rows(tmp_path / "nli.parquet", pa.Table.from_pylist(rows, schema=SCHEMAS["labelled"]), "labelled")
    return tmp_path / "nli.parquet"


def build(corpora, tmp_path, **options):
    entry = {"builder": "translation", "from": ["nli"], "translations": ["nli"], **options}
    counts = build_view("v", entry, corpora, tmp_path / "view.parquet")
    return counts, read_rows(tmp_path / "view.parquet").to_pylist()


def test_full_translations_replace_both_sentences_by_those_of_the_same_row(labelled, tmp_path):
    counts, made = build({"nli": labelled}, tmp_path, langs=["en"], views=2)
    assert counts["rows"] == len(made) == 40
    assert (counts["without_translation"], {row["n"] for row in made}) == (0, {1, 2})
    for row in made:
        _, lang, g, label = row["of"].split(":")
        target = row["a_lang"]
        assert target != lang
        assert row["b_lang"] == target
        assert (row["a_text"], row["b_text"]) == (f"a{g} {target}", f"b{g}/{label} {target}")
        assert (row["label"], row["kind"], row["replaced"]) == ([float(label)], "full", 1.0)
        assert target == "de" or int(g) % 4
    assert {row["a_lang"] for row in made} == {"de", "fr"}


def test_partial_translations_replace_exactly_one_sentence(labelled, tmp_path):
    _, made = build({"nli": labelled}, tmp_path, langs=["en"], mode="partial")
    changed = [(row["a_lang"] != "en", row["b_lang"] != "en") for row in made]
    assert set(changed) == {(True, False), (False, True)}
    assert {row["replaced"] for row in made} == {0.5}


def test_any_language_can_be_copied_into_any_other(labelled, tmp_path):
    _, made = build({"nli": labelled}, tmp_path, targets=["en", "de"])
    ways = {(row["of"].split(":")[1], row["a_lang"]) for row in made}
    assert ways == {("en", "de"), ("de", "en"), ("fr", "en"), ("fr", "de")}


def test_a_draw_hangs_on_seed_and_row_alone(labelled, tmp_path):
    _, whole = build({"nli": labelled}, tmp_path, langs=["en"])
    _, again = build({"nli": labelled}, tmp_path, langs=["en", "de"])
    _, other = build({"nli": labelled}, tmp_path, langs=["en"], seed=7)
    assert [row for row in again if row["of"].startswith("n:en")] == whole
    assert other != whole


def test_translations_are_joined_by_text_from_a_bitext(labelled, tmp_path):
    bitext = [
        {"id": f"b:{g}:{side}", "a_lang": "sw", "a_text": f"{side}{g} swahili", "b_lang": "en", "b_text": f"{side}{g}{end} en"}
        for g in range(5)
        for side, end in (("a", ""), ("b", "/0"))
    ]
    write_rows(tmp_path / "b.parquet", pa.Table.from_pylist(bitext[::-1], schema=SCHEMAS["bitext"]), "bitext")
    counts, made = build({"nli": labelled, "b": tmp_path / "b.parquet"}, tmp_path, translations=["b"], langs=["en"])
    assert [row["of"] for row in made] == [f"n:en:{g}:0" for g in range(5)]
    assert [(row["a_text"], row["b_text"], row["a_lang"]) for row in made] == [(f"a{g} swahili", f"b{g} swahili", "sw") for g in range(5)]
    assert counts["without_translation"] == 15


def test_multiway_versions_are_translations_of_each_other(tmp_path):
    rows = [
        {"id": f"m:{g}:{lang}{v}", "group": str(g), "lang": lang, "text": f"{g} {lang} {v}", "version": str(v)}
        for g in range(6)
        for lang, versions in (("en", 1), ("de", 2))
        for v in range(versions)
    ]
    write_rows(tmp_path / "m.parquet", pa.Table.from_pylist(rows, schema=SCHEMAS["multiway"]), "multiway")
    entry = {"builder": "translation", "from": ["m"], "translations": ["m"], "langs": ["en"], "views": 8}
    build_view("v", entry, {"m": tmp_path / "m.parquet"}, tmp_path / "view.parquet")
    made = read_rows(tmp_path / "view.parquet").to_pylist()
    assert {row["text"] for row in made} == {f"{g} de {v}" for g in range(6) for v in range(2)}
    with pytest.raises(InputError, match="two sentences"):
        build_view("v", entry | {"mode": "partial"}, {"m": tmp_path / "m.parquet"}, tmp_path / "view.parquet")
