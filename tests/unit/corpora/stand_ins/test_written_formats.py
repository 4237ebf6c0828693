"""Every official format of the catalog: written from our own sentences, read back by the entry that reads the real file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from crosslign.config.load import load_project
from crosslign.corpora import READERS
from crosslign.corpora.stand_ins._file import write_file
from crosslign.corpora.stand_ins._sentences import load_sentences, made_up, pair_in, text_in, triplets_of
from crosslign.files import sha256_file
from crosslign.languages import SCRIPTS, normalise
from crosslign.paths import CATALOG

ROOT = Path(__file__).resolve().parents[4]
_NAMES = """
simcse_wiki wikipedia_dump_en simcse_nli snli_train multinli_train xnli_mt xnli_dev xnli_15way paws_x_train xtreme_xnli xtreme_pawsx
paracrawl_en-fr paracrawl_en-sw tatoeba_en-zh news_commentary_v15_en-zh cwmt_neu2017_en-zh ccaligned_en-zh ccmatrix_en-af cc100_zh cc100_de
muse_en-de muse_en-sq social_iqa_train copa_train multi_eurlex_train mewsli_x_train qe_train_en-de qe_train_si-en flores200_articles
tnews_train paws_x_dev_en tico19 tatoeba_exports_de tatoeba_exports_zh snli_triplets simcse_wiki_head wiktionary_ru multiarc_train
"""
ONE_OF_EACH = _NAMES.split()


@pytest.fixture(scope="module")
def project():
    return load_project(ROOT, {"scale": "quick"})


@pytest.fixture(scope="module")
def sentences():
    return load_sentences(CATALOG / "resources" / "written")


@pytest.fixture
def corpus(project, sentences, tmp_path):
    """Write the stand-in files of a corpus of the catalog and read them as its entry says."""

    def call(name, count=60):
        entry = project.corpora[name]
        source = project.sources[entry["source"]]
        files = {}
        for file in source["files"]:
            if file["name"] in entry.get("files", [file["name"]]):
                files[file["name"]] = tmp_path / file["name"]
                write_file(files[file["name"]], source["stand_in"], file["name"], sentences[:count])
        read = READERS.get(entry["reader"])
        return pa.concat_tables(read(files, name, entry["langs"], **entry.get("options", {}))).to_pylist(), files

    return call


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_the_entry_of_the_real_file_reads_the_stand_in(corpus, project, name):
    count = 120 if name == "multi_eurlex_train" else 60  # a third of its laws trains
    rows, files = corpus(name, count)
    entry = project.corpora[name]
    assert len({row["id"] for row in rows}) == len(rows) > 10
    langs = {row[column] for row in rows for column in ("lang", "a_lang", "b_lang") if row.get(column)}
    assert langs == set(entry["langs"])
    if "labels" in entry:
        assert {row["label"][0] for row in rows} <= set(range(len(entry["labels"])))
    hashes = {file: sha256_file(path) for file, path in files.items()}
    assert {file: sha256_file(path) for file, path in corpus(name, count)[1].items()} == hashes


def test_every_source_of_the_catalog_with_a_writer_is_tried(project):
    tried = {project.sources[project.corpora[name]["source"]]["stand_in"] for name in ONE_OF_EACH}
    evaluated = {part for entry in project.corpora.values() if entry["kind"] == "evaluation" for part in entry.get("from", ())}
    training = {e["source"] for name, e in project.corpora.items() if e["kind"] != "evaluation" and "source" in e and name not in evaluated}
    elsewhere = {"bible_wheel", "wikipedia_parquet", "squad_json", "senteval_tar"}  # test_evaluation_sets.py and tests of their own
    assert {project.sources[source]["stand_in"] for source in training if "stand_in" in project.sources[source]} <= tried | elsewhere


def test_wikipedia_in_its_two_forms_is_the_same_prose(project, sentences, tmp_path):
    english = [sentence["en"] for sentence in sentences[:40]]
    for kind, name in (("wikipedia_parquet", "train-00000-of-00001.parquet"), ("wikipedia_dump", "a-pages-articles.xml.bz2")):
        write_file(tmp_path / name, kind, name, sentences[:40])
        rows = pa.concat_tables(READERS.get(kind)({name: tmp_path / name}, "w", ["en"])).to_pylist()
        assert [row["text"] for row in rows] == english
    assert rows[0]["id"] == "w:a-pages-articles.xml.bz2:1.1"


def test_the_triplets_of_simcse_come_back(corpus, sentences):
    rows, _ = corpus("simcse_nli", 30)
    triplets = triplets_of(sentences[:30])
    assert [(row["a_text"], row["b_text"], row["label"]) for row in rows] == [
        (t.premise["en"], other["en"], [label]) for t in triplets for other, label in ((t.entailed, 0.0), (t.contradicting, 2.0))
    ]
    assert [row["group"] for row in rows[::2]] == [row["group"] for row in rows[1::2]]


def test_rows_without_a_label_are_left_out(corpus):
    rows, _ = corpus("snli_train")
    counts = Counter(row["label"][0] for row in rows)
    assert len(set(counts.values())) == 1
    assert sorted(counts) == [0.0, 1.0, 2.0]


def test_translations_are_joined_on_text_never_on_line_number(corpus, sentences):
    rows, _ = corpus("xtreme_xnli")
    groups = {}
    for row in rows:
        groups.setdefault(row["group"], {})[row["a_lang"]] = row
    assert len(groups) == 60
    by_english = {s["en"]: s for s in sentences[:60]}
    lines = set()
    for group in groups.values():
        assert len(group) == 15
        assert len({row["label"][0] for row in group.values()}) == 1
        for lang in ("de", "zh", "ru"):
            assert group[lang]["a_text"] == by_english[group["en"]["a_text"]][lang]
            assert group[lang]["b_text"] == by_english[group["en"]["b_text"]][lang]
        lines.add(len({row["id"].rsplit(":", 1)[1].split(".")[0] for row in group.values()}) > 1)
    assert True in lines  # the files really have their rows in orders of their own


def test_aligned_rows_of_xnli_mt_share_their_group(corpus, sentences):
    rows, _ = corpus("xnli_mt")
    english = {row["group"]: row for row in rows if row["a_lang"] == "en"}
    by_english = {s["en"]: s for s in sentences[:60]}
    for row in rows:
        if row["a_lang"] == "fr":
            assert row["a_text"] == by_english[english[row["group"]]["a_text"]]["fr"]
            assert row["label"] == english[row["group"]]["label"]


def test_placeholders_of_paws_x_do_not_come_through(corpus):
    rows, _ = corpus("paws_x_train")
    assert not [row for row in rows if "NS" in (row["a_text"], row["b_text"])]
    counts = Counter(row["a_lang"] for row in rows)
    assert counts["en"] == counts["de"] + 1


def test_languages_that_nobody_wrote_have_phrases_or_made_up_words(sentences):
    sentence = sentences[1]
    assert text_in(sentence, "de") == sentence["de"]
    assert pair_in(sentence, "en", "fr") == (sentence["en"], sentence["fr"])
    english, swahili = pair_in(sentence, "en", "sw")
    assert english != sentence["en"]
    assert "3" in english
    assert "3" in swahili
    assert pair_in(sentence, "en", "zh_CN") == (sentence["en"], sentence["zh"])
    for lang in [*SCRIPTS, "ga", "af", "so", "xh"]:
        left, right = pair_in(sentence, "en", lang)
        assert left.strip()
        assert right.strip()
        assert left != right
        assert text_in(sentence, lang) == text_in(sentence, lang)


@pytest.mark.parametrize("lang", sorted(SCRIPTS))
def test_made_up_words_are_in_the_script(lang):
    import regex

    word = made_up("quick brown fox", lang)
    assert regex.search(rf"\p{{Script={SCRIPTS[normalise(lang)][0]}}}", word)
    assert not regex.search(r"[a-z]", word)


def test_no_two_sentences_have_one_phrase(sentences):
    for lang in ("sw", "th", "pl"):
        texts = [pair_in(sentence, "en", lang) for sentence in sentences]
        assert len(set(texts)) == len(texts)
