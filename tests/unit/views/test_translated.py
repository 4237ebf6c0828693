"""Full and partial translation, and translations that corpora provide."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from crosslign.errors import InputError
from crosslign.files import read_rows, sha256_file, write_rows
from crosslign.files.rows import SCHEMAS
from crosslign.views import TRANSLATORS, TranslatorSetting
from crosslign.views.build import build_view


def write(path, kind, rows):
    write_rows(path, pa.Table.from_pylist(rows, schema=SCHEMAS[kind]), kind)
    return path


def labelled(corpus, rows):
    """Rows of (group, label, lang, a, b)."""
    return [
        {"id": f"{corpus}:{n}", "group": group, "label": [label], "a_lang": lang, "a_text": a, "b_lang": b and lang, "b_text": b}
        for n, (group, label, lang, a, b) in enumerate(rows)
    ]


@pytest.fixture
def corpora(tmp_path):
    verses = [
        {"id": f"v:{n}", "group": group, "lang": lang, "text": text, "version": None}
        for n, (group, lang, text) in enumerate(
            [
                ("1", "en", "In the beginning"),
                ("1", "de", "Am Anfang"),
                ("1", "fr", "Au commencement"),
                ("2", "en", "Jesus wept"),
                ("2", "de", "Jesus weinte"),
                ("3", "fr", "Au revoir"),
            ]
        )
    ]
    pairs = [
        {"id": "b:1", "a_lang": "en", "a_text": "Good  day", "b_lang": "es", "b_text": "Buenos días"},
        {"id": "b:2", "a_lang": "en", "a_text": "In the beginning", "b_lang": "es", "b_text": "Al principio"},
    ]
    nli = [
        ("g", 0.0, "en", "A man sits", "He rests"),
        ("g", 0.0, "en", "A man sits", "He sits"),
        ("g", 2.0, "en", "A man sits", "He runs"),
        ("g", 0.0, "de", "Ein Mann sitzt", "Er ruht"),
        ("g", 0.0, "de", "Ein Mann sitzt", "Er sitzt"),
        ("g", 2.0, "de", "Ein Mann sitzt", "Er rennt"),
        (None, 1.0, "en", "Alone", "Only"),
        (None, 1.0, "de", "Allein", "Nur"),
    ]
    return {
        "verses": write(tmp_path / "verses.parquet", "multiway", verses),
        "pairs": write(tmp_path / "pairs.parquet", "bitext", pairs),
        "nli": write(tmp_path / "nli.parquet", "labelled", labelled("nli", nli)),
        "mono": write(tmp_path / "mono.parquet", "mono", [{"id": "m:1", "lang": "en", "text": "x"}]),
    }


def provided(corpora, names, langs=("en",), targets=("de", "es", "fr")):
    return TRANSLATORS.get("provided")(TranslatorSetting("v", langs, targets, corpora), corpora=names)


def full(targets=("de", "fr"), start="verses", translations=("verses",), **options):
    return {
        "builder": "full_translation",
        "from": [start],
        "targets": targets,
        "translator": {"provided": {"corpora": translations}},
        **options,
    }


def test_provided_translations_are_joined_on_text(corpora):
    ask = provided(corpora, ["verses", "pairs"], langs=("en", "de"), targets=("de", "en", "es", "fr"))
    assert ask.translate(["Jesus wept", "In the  beginning", "unknown"], "en", "de") == ["Jesus weinte", "Am Anfang", None]
    assert ask.translate(["Jesus wept", "In the beginning", "Good day"], "en", "es") == [None, "Al principio", "Buenos días"]
    assert ask.translate(["Am Anfang", "In the beginning"], "de", "fr") == ["Au commencement", None]
    assert ask.translate(["Am Anfang"], "de", "en") == ["In the beginning"]
    assert ask.translate([], "en", "de") == []


def test_labelled_rows_are_aligned_by_group_label_and_place(corpora):
    ask = provided(corpora, ["nli"])
    german = ask.translate(["A man sits", "He rests", "He sits", "He runs", "Alone"], "en", "de")
    assert german == ["Ein Mann sitzt", "Er ruht", "Er sitzt", "Er rennt", None]


def test_the_first_of_several_translations_is_taken_and_one_that_lacks_the_language_is_passed_over(tmp_path):
    rows = [("a", "en", "Yes"), ("b", "en", "Yes"), ("b", "de", "Ja"), ("c", "en", "Yes"), ("c", "de", "Doch")]
    verses = [{"id": f"v:{n}", "group": g, "lang": lang, "text": t} for n, (g, lang, t) in enumerate(rows)]
    corpora = {"verses": write(tmp_path / "verses.parquet", "multiway", verses)}
    assert provided(corpora, ["verses"]).translate(["Yes"], "en", "de") == ["Ja"]


def test_provided_refuses_what_it_cannot_use(corpora):
    with pytest.raises(InputError, match=r"'mono' .*translations"):
        provided(corpora, ["mono"])
    with pytest.raises(InputError, match=r"sentence.*verses"):
        provided(corpora, ["verses"], langs=("sw",), targets=("ur",))


def test_full_translation_of_verses(corpora, tmp_path):
    counts = build_view("v", full(views=3), corpora, tmp_path / "v.parquet")
    rows = read_rows(tmp_path / "v.parquet").to_pylist()
    assert {(row["of"], row["lang"], row["text"]) for row in rows} <= {
        ("v:0", "de", "Am Anfang"),
        ("v:0", "fr", "Au commencement"),
        ("v:3", "de", "Jesus weinte"),
    }
    assert [(row["of"], row["n"]) for row in rows] == [("v:0", 1), ("v:0", 2), ("v:0", 3), ("v:3", 1), ("v:3", 2), ("v:3", 3)]
    assert {row["kind"] for row in rows} == {"full"}
    assert {row["replaced"] for row in rows} == {None}
    assert counts["copies"] == 6
    assert counts["left_out"] == 12  # four rows that are not English
    assert counts["untranslated"] == 0


def test_any_language_may_be_the_source_and_english_a_target(corpora, tmp_path):
    build_view("v", full(("de", "en", "fr"), langs=["de", "en", "fr"], views=4), corpora, tmp_path / "v.parquet")
    rows = read_rows(tmp_path / "v.parquet").to_pylist()
    sources = {"v:0": "en", "v:1": "de", "v:2": "fr", "v:3": "en", "v:4": "de"}
    assert {row["of"] for row in rows} == set(sources)  # v:5 has no translation
    assert all(row["lang"] != sources[row["of"]] for row in rows)
    assert {row["text"] for row in rows if row["of"] == "v:4"} == {"Jesus wept"}


def test_both_sentences_go_into_one_language_and_partial_replaces_exactly_one(corpora, tmp_path):
    entry = full(["de"], "nli", ["nli"])
    build_view("v", entry, corpora, tmp_path / "v.parquet")
    copies = read_rows(tmp_path / "v.parquet").to_pylist()
    assert [(c["a_text"], c["b_text"], c["a_lang"], c["b_lang"], c["label"]) for c in copies] == [
        ("Ein Mann sitzt", "Er ruht", "de", "de", [0.0]),
        ("Ein Mann sitzt", "Er sitzt", "de", "de", [0.0]),
        ("Ein Mann sitzt", "Er rennt", "de", "de", [2.0]),
    ]
    build_view("v", {**entry, "builder": "partial_translation", "views": 20}, corpora, tmp_path / "v.parquet")
    copies = read_rows(tmp_path / "v.parquet").to_pylist()
    assert {(c["a_lang"], c["b_lang"]) for c in copies} == {("de", "en"), ("en", "de")}
    assert {(c["a_text"], c["b_text"]) for c in copies if c["of"] == "nli:2"} == {("Ein Mann sitzt", "He runs"), ("A man sits", "Er rennt")}
    assert {c["kind"] for c in copies} == {"partial"}


@pytest.mark.parametrize(("replace", "langs"), [("first", ("de", "en")), ("second", ("en", "de"))])
def test_partial_translation_of_one_side_alone(corpora, tmp_path, replace, langs):
    entry = {**full(["de"], "nli", ["nli"]), "builder": "partial_translation", "views": 20}
    build_view("v", {**entry, "replace": replace}, corpora, tmp_path / "v.parquet")
    assert {(c["a_lang"], c["b_lang"]) for c in read_rows(tmp_path / "v.parquet").to_pylist()} == {langs}


def mixed(tmp_path):
    """One pair of English and German sentences, and their translations into French; the German one stays as it is."""
    rows = [("x:1", "en", "One", "de", "Zwei")]
    pairs = [{"id": i, "a_lang": a, "a_text": one, "b_lang": b, "b_text": two} for i, a, one, b, two in rows]
    verses = [("1", "en", "One"), ("1", "fr", "Un"), ("2", "de", "Zwei"), ("2", "fr", "Zwei")]
    groups = [{"id": f"t:{n}", "group": g, "lang": lang, "text": t, "version": None} for n, (g, lang, t) in enumerate(verses)]
    return {"pairs": write(tmp_path / "x.parquet", "bitext", pairs), "french": write(tmp_path / "t.parquet", "multiway", groups)}


def test_of_two_languages_only_sentences_in_langs_are_translated(tmp_path):
    corpora, out = mixed(tmp_path), tmp_path / "v.parquet"
    entry = full(["fr"], "pairs", ["french"], views=20)
    with pytest.raises(InputError, match=r"v: .*empty"):
        build_view("v", {**entry, "langs": ["en"]}, corpora, out)  # one side cannot be translated, so neither is
    build_view("v", {**entry, "builder": "partial_translation", "langs": ["en"]}, corpora, out)
    assert {(c["a_lang"], c["a_text"], c["b_lang"], c["b_text"]) for c in read_rows(out).to_pylist()} == {("fr", "Un", "de", "Zwei")}


def test_translations_that_change_nothing_are_counted(tmp_path):
    corpora = mixed(tmp_path)
    counts = build_view("v", full(["fr"], "pairs", ["french"], langs=["de", "en"]), corpora, tmp_path / "v.parquet")
    assert (counts["sentences"], counts["identity"], counts["identity_share"]) == (2, 1, 0.5)


def test_views_of_one_row_are_drawn_apart(tmp_path):
    langs = ("de", "es", "fr", "ru")
    verses = [{"id": f"v:{lang}", "group": "1", "lang": lang, "text": lang} for lang in ("en", *langs)]
    corpora = {"verses": write(tmp_path / "verses.parquet", "multiway", verses)}
    build_view("v", full(langs, views=40), corpora, tmp_path / "v.parquet")
    assert {row["lang"] for row in read_rows(tmp_path / "v.parquet").to_pylist()} == set(langs)


def test_partial_translation_needs_pairs(corpora, tmp_path):
    with pytest.raises(InputError, match=r"v: .*empty"):
        build_view("v", {**full(), "builder": "partial_translation"}, corpora, tmp_path / "v.parquet")


def test_target_languages_are_drawn_uniformly(tmp_path):
    langs = ("de", "es", "fr", "ru")
    rows = [("en", f"sentence {n}", n) for n in range(400)] + [(lang, f"{lang} {n}", n) for lang in langs for n in range(400)]
    verses = [{"id": f"v:{k}", "group": str(n), "lang": lang, "text": text} for k, (lang, text, n) in enumerate(rows)]
    corpora = {"verses": write(tmp_path / "verses.parquet", "multiway", verses)}
    counts = build_view("v", full(langs, views=2), corpora, tmp_path / "v.parquet")
    # 800 draws among four: 200 each, standard deviation 12.2
    assert all(abs(counts["per_language"][lang] - 200) < 5 * 12.3 for lang in langs)
    assert counts["redrawn"] == 0


def test_draws_hang_on_seed_and_id_alone(corpora, tmp_path):
    options = full(views=5)
    build_view("v", options, corpora, tmp_path / "1.parquet")
    build_view("v", options, corpora, tmp_path / "2.parquet")
    assert sha256_file(tmp_path / "1.parquet") == sha256_file(tmp_path / "2.parquet")
    rows = read_rows(corpora["verses"]).to_pylist()
    random.Random(1).shuffle(rows)
    turned = {"verses": corpora["verses"], "turned": write(tmp_path / "turned.parquet", "multiway", rows)}
    build_view("v", {**options, "from": ["turned"]}, turned, tmp_path / "3.parquet")
    first, third = (sorted(read_rows(tmp_path / f"{n}.parquet").to_pylist(), key=str) for n in (1, 3))
    assert first == third
    build_view("v", {**options, "seed": 5}, corpora, tmp_path / "4.parquet")
    assert read_rows(tmp_path / "4.parquet")["text"].to_pylist() != read_rows(tmp_path / "1.parquet")["text"].to_pylist()


def test_a_language_without_the_sentence_is_drawn_anew_and_counted(corpora, tmp_path):
    counts = build_view("v", full(("de", "fr", "ru"), views=8), corpora, tmp_path / "v.parquet")
    rows = read_rows(tmp_path / "v.parquet").to_pylist()
    assert {row["lang"] for row in rows if row["of"] == "v:3"} == {"de"}
    assert counts["redrawn"] > 0
    assert (counts["copies"], counts["untranslated"]) == (16, 0)


def test_a_view_without_targets_is_refused(corpora, tmp_path):
    with pytest.raises(InputError, match=r"v: .*`targets`"):
        build_view("v", full(()), corpora, tmp_path / "v.parquet")
