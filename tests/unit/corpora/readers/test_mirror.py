"""Real data of the mirror, read by the readers that the catalog names for its official files. Counts are the publishers'."""

from __future__ import annotations

from collections import Counter

import pytest

from crosslign.corpora.fetch import fetch_file


def test_tico19_is_one_multiway_corpus(mirror, rows):
    langs = {"ar": "ar", "es": "es-LA", "fr": "fr", "pt": "pt-BR", "sw": "sw", "zh": "zh"}
    files = {f"all.en-{code}.tmx.zip": mirror / "tico19" / f"all.en-{code}.tmx.zip" for code in langs.values()}
    found = rows("tmx", files, ["en", *langs], kind="multiway")
    assert Counter(row["lang"] for row in found) == dict.fromkeys(["en", *langs], 3071)
    groups = Counter(row["group"] for row in found)
    assert len(groups) == 3071
    assert set(groups.values()) == {7}
    first = {row["lang"]: row["text"] for row in found if row["group"] == "CMU_1:1"}
    assert first["en"] == "about how long have these symptoms been going on?"
    assert first["fr"] == "depuis combien ressentez-vous ces symptômes ?"


def test_tico19_as_a_bitext(mirror, rows):
    found = rows("tmx", {"all.en-zh.tmx.zip": mirror / "tico19" / "all.en-zh.tmx.zip"}, ["en", "zh"])
    assert len(found) == 3071
    assert found[0]["b_text"] == "这些症状已持续多长时间？"


@pytest.mark.parametrize(
    ("name", "member", "lang", "atleast"), [("deu-eng", "deu.txt", "de", 160_000), ("cmn-eng", "cmn-eng/cmn.txt", "zh", 24_000)]
)
def test_tatoeba_pairs_are_read_from_their_zip(mirror, rows, name, member, lang, atleast):
    files = {f"{name}.zip": mirror / "tatoeba-bilingual" / f"{name}.zip"}
    found = rows("tsv", files, ["en", lang], columns={1: "a_text", 2: "b_text"}, member=member)
    assert len(found) > atleast
    assert {row["b_lang"] for row in found} == {lang}
    assert found[0]["id"] == f"demo:{name}.zip/{member}:1"


def test_snli_in_the_layout_of_simcse(mirror, rows):
    found = rows("triplets_csv", {"nli_triplets.csv": mirror / "snli-dev-test" / "nli_triplets.csv"}, ["en"])
    assert len(found) == 2 * 5883
    assert Counter(row["label"][0] for row in found) == {0.0: 5883, 2.0: 5883}


def test_paws_x_without_its_placeholders(mirror, rows):
    files = {f"dev-{lang}.tsv": mirror / "paws-x" / f"dev-{lang}.tsv" for lang in ("de", "ja", "zh")}
    options = {"kind": "labelled", "columns": {1: "a_text", 2: "b_text", 3: "label"}, "file_langs": {name: [name[4:6]] for name in files}}
    everything = rows("tsv", files, ["de", "ja", "zh"], skip_empty=True, **options)
    kept = rows("tsv", files, ["de", "ja", "zh"], skip={1: ["NS"], 2: ["NS"]}, skip_empty=True, **options)
    assert Counter(row["label"][0] for row in kept).keys() == {0.0, 1.0}
    assert len(everything) <= 6000
    assert 0 < len(everything) - len(kept) < 600
    assert not [row for row in kept if "NS" in (row["a_text"], row["b_text"])]


def test_wikipedia_sentences(mirror, rows):
    found = rows("text_lines", {"wiki.txt": mirror / "wiki-en" / "wiki1m_for_simcse.txt"}, ["en"], skip_empty=True)
    assert len(found) in (11_914, 11_915)  # the last line is cut
    assert found[0]["text"] == "YMCA in South Australia"


def test_xquad_questions_with_their_sentences(mirror, rows):
    found = rows(
        "squad",
        {f"{lang}.json": mirror / "lareqa-xquad-r" / f"{lang}.json" for lang in ("en", "de")},
        ["de"],
        file_langs={"en.json": "en", "de.json": "de"},
    )
    assert len(found) == 1190
    assert all(row["a_text"].strip() and row["b_text"].strip() for row in found)


def test_a_catalog_file_resolves_in_the_mirror_by_its_hash(mirror, tmp_path):
    sha = "795716362e58242d715b104bdafa4e35af7047719e02988d9544502f9569e39d"
    facts = fetch_file("snli_small", {"url": "http://127.0.0.1:9/"}, {"name": "t.csv", "sha256": sha}, tmp_path / "t.csv", [mirror])
    assert facts == {"file": "t.csv", "bytes": 892_808, "sha256": sha, "recorded": False}
