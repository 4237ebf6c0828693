"""Real text of the mirror through every filter, decontamination, code-switching and translation."""

from __future__ import annotations

import zipfile
from itertools import pairwise

import pytest
from apertium_pairs import needs_apertium

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.build import build_corpus
from crosslign.corpora.filters import FILTERS
from crosslign.examples.build import build_examples
from crosslign.files import read_rows, write_rows
from crosslign.views.build import build_view

ROWS = 1500
FILTERS_OF_ALL = [
    {"punctuation": {}},
    {"length": {"max_words": 60}},
    {"length_ratio": {}},
    {"longest_word": {}},
    {"html_tags": {}},
    {"alphabet_ratio": {}},
    {"character_script": {}},
    {"non_zero_numerals": {}},
    {"terminal_punctuation": {}},
    {"longest_common_substring": {}},
    {"identical_pair": {}},
    {"exact_duplicate": {}},
    {"near_duplicate": {}},
    {"language_id": {"low_accuracy": True, "min_confidence": 0.3}},
]


def part_of_tatoeba(mirror, folder, code, lang, every=80):
    """Lines of the export, evenly taken, as a Moses pair."""
    with zipfile.ZipFile(mirror / "tatoeba-bilingual" / f"{code}-eng.zip") as archive:
        lines = archive.read(f"{code}.txt").decode().split("\n")[:-1][::every]
    files = {}
    for column, side in enumerate(("en", lang)):
        files[f"part.{side}"] = folder / f"{code}.{every}.{side}"
        files[f"part.{side}"].write_text("".join(line.split("\t")[column] + "\n" for line in lines))
    return files


@pytest.fixture(scope="module")
def corpora(mirror, tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    paths, counts = {}, {}

    def build(name, reader, langs, files, limit=None, **entry):
        entry = {"kind": "bitext", "reader": reader, "langs": langs, **entry}
        paths[name] = folder / f"{name}.parquet"
        counts[name] = build_corpus(name, entry, files, paths, paths[name], limit)

    for code, lang in (("deu", "de"), ("fra", "fr")):
        steps = [*FILTERS_OF_ALL, *([{"not_near": {"corpora": ["tatoeba_de"]}}] if lang == "fr" else [])]
        build(f"tatoeba_{lang}", "moses", ["en", lang], part_of_tatoeba(mirror, folder, code, lang), filters=steps)
    build("all_fr", "moses", ["en", "fr"], part_of_tatoeba(mirror, folder, "fra", "fr", 2), filters=[])
    tmx = mirror / "tico19" / "all.en-fr.tmx.zip"
    build(
        "tico19",
        "tmx",
        ["en", "fr"],
        {tmx.name: tmx},
        filters=[*FILTERS_OF_ALL, {"as_clean": {"corpora": ["tatoeba_fr"], "keep": 0.999}}],
        limit=ROWS,
    )
    for lang in ("de", "fr"):
        file = mirror / "dict-wiktionary" / f"en-{lang}.txt"
        build(f"words_{lang}", "dictionary", ["en", lang], {file.name: file}, filters=[])
    official = {path.name: path for code in ("deu", "fra") for path in (mirror / "tatoeba-v1").glob(f"tatoeba.{code}-eng.*")}
    paths["tatoeba"] = folder / "texts.parquet"
    write_rows(paths["tatoeba"], EVALUATIONS.get("tatoeba")(Given(official, {}, "tatoeba", ["deu", "fra"], None, 42)).texts, "texts")
    return paths, counts


@pytest.mark.parametrize("name", ["tatoeba_de", "tatoeba_fr", "tico19"])
def test_every_filter_counts_and_most_rows_stay(corpora, name):
    paths, counts = corpora
    steps = counts[name]["filters"]
    used = {step["filter"] for each in counts.values() for step in each["filters"]}
    assert used == set(FILTERS.names())
    assert steps[0]["before"] == counts[name]["read"]
    assert all(one["after"] == other["before"] for one, other in pairwise(steps))
    rows = read_rows(paths[name]).to_pylist()
    assert 0.4 * counts[name]["read"] < steps[-1]["after"] < counts[name]["read"]
    assert len(rows) == counts[name]["rows"]
    assert all(row["a_text"].strip() and row["b_text"].strip() for row in rows)


def test_test_sentences_are_kept_out_of_training(corpora, tmp_path):
    paths, _ = corpora
    entry = {
        "builder": "parallel_pairs",
        "from": ["tatoeba_de", "tatoeba_fr", "tico19"],
        "decontaminate": ["tatoeba"],
        "langs": ["en", "de", "fr"],
    }
    counts = build_examples("x", entry, paths, {"tatoeba": paths["tatoeba"]}, {}, tmp_path / "x.parquet")
    dropped = counts["decontamination"]["evaluations"]["tatoeba"]["corpora"]
    assert dropped["tatoeba_de"] > 0
    assert dropped["tatoeba_fr"] > 0
    assert dropped.get("tico19", 0) == 0
    test = set(read_rows(paths["tatoeba"])["text"].to_pylist())
    rows = read_rows(tmp_path / "x.parquet").to_pylist()
    assert not any(row[side] in test for row in rows for side in ("a_text", "b_text"))


def test_code_switching(corpora, tmp_path):
    paths, _ = corpora
    entry = {
        "builder": "code_switch",
        "from": ["tico19"],
        "probability": 0.75,
        "langs": ["en"],
        "dictionaries": {"de": "words_de"},
        "targets": ["de", "sw"],
    }
    counts = build_view("v", entry, paths, tmp_path / "v.parquet")
    assert counts["without_dictionary"] == ["sw"]
    assert counts["covered_share"] > 0.5
    assert counts["replaced"] / counts["covered"] == pytest.approx(0.75, abs=0.03)
    assert 0 < counts["identity_share"] < 0.2
    originals = {row["id"]: row for row in read_rows(paths["tico19"]).to_pylist()}
    for copy in read_rows(tmp_path / "v.parquet").to_pylist():
        original = originals[copy["of"]]
        assert copy["b_text"] == original["b_text"]
        assert len(copy["a_text"].split()) >= len(original["a_text"].split())


def test_provided_translation(corpora, tmp_path):
    paths, _ = corpora
    options = {"from": ["tatoeba_de"], "targets": ["fr"], "translator": {"provided": {"corpora": ["all_fr"]}}}
    french = {}
    for row in read_rows(paths["all_fr"]).to_pylist():
        french.setdefault(" ".join(row["a_text"].split()), row["b_text"])
    counts = build_view("v", {"builder": "partial_translation", **options}, paths, tmp_path / "v.parquet")
    rows = read_rows(tmp_path / "v.parquet").to_pylist()
    english = {row["id"]: row["a_text"] for row in read_rows(paths["tatoeba_de"]).to_pylist()}
    assert len(rows) > 100
    assert [row["of"] for row in rows] == [row for row, text in english.items() if text in french]
    assert all(row["a_text"] == french[english[row["of"]]] for row in rows)
    assert counts["untranslated"] == len(english) - len(rows)


@needs_apertium
def test_apertium_translates_and_a_rerun_asks_nothing(corpora, tmp_path, monkeypatch):
    paths, _ = corpora
    few = read_rows(paths["tico19"]).slice(0, 150)
    write_rows(tmp_path / "few.parquet", few, "bitext")
    options = {"builder": "partial_translation", "from": ["few"], "targets": ["es", "fr", "pt"], "translator": {"apertium": {}}}
    given = {"few": tmp_path / "few.parquet"}
    counts = build_view("v", options, given, tmp_path / "v.parquet", tmp_path / "kept")
    assert counts["copies"] == 150
    assert set(counts["per_language"]) == {"es", "pt"}  # the rows have French already
    assert counts["identity_share"] < 0.05
    monkeypatch.setattr("crosslign.views.translators.apertium._call", lambda *args: pytest.fail("asked again"))
    build_view("v", options, given, tmp_path / "again.parquet", tmp_path / "kept")
    assert read_rows(tmp_path / "again.parquet").equals(read_rows(tmp_path / "v.parquet"))
