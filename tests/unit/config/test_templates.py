"""Entries that stand for many, and the catalog's own."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from crosslign.config.load import load_project
from crosslign.config.templates import expand
from crosslign.config.yaml_files import load_yaml
from crosslign.corpora import READERS, STAND_INS
from crosslign.errors import InputError
from crosslign.paths import CATALOG

ROOT = Path(__file__).resolve().parents[3]


def expanded(tmp_path, text):
    (tmp_path / "a.yaml").write_text(text)
    return expand(load_yaml(tmp_path / "a.yaml", Path("a.yaml")))


def test_copies_have_their_names_wherever_text_stands(tmp_path):
    file = expanded(
        tmp_path,
        """sources: {}
corpora:
  "x_{lang}":
    each: {lang: [de, zh], code: [de, zh_CN]}
    files: ["{code}.txt"]
    options: {codes: {"{lang}": "{code}"}, member: "{other}/{lang}"}
    seed: 3
  y: {langs: [en]}
""",
    )
    assert file.content["corpora"] == {
        "x_de": {"files": ["de.txt"], "options": {"codes": {"de": "de"}, "member": "{other}/de"}, "seed": 3},
        "x_zh": {"files": ["zh_CN.txt"], "options": {"codes": {"zh": "zh_CN"}, "member": "{other}/zh"}, "seed": 3},
        "y": {"langs": ["en"]},
    }
    assert file.where(("corpora", "x_zh", "files", 0)) == "a.yaml:5: corpora.x_zh.files.0"
    assert file.where(("corpora", "y")) == "a.yaml:8: corpora.y"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('"x_{lang}": {each: {lang: []}}', r"corpora\.x_\{lang\}\.each: `each`.*\{lang: \[de, fr\]\}"),
        ('"x_{lang}": {each: {lang: [a, b], code: [c]}}', r"corpora\.x_\{lang\}\.each: `each`.*\{lang: \[de, fr\]\}"),
        ('"x_{lang}": {each: [a]}', r"corpora\.x_\{lang\}\.each: `each`.*\{lang: \[de, fr\]\}"),
        ('"x_{lang}": {each: {lang: [1]}}', r"corpora\.x_\{lang\}\.each: `each`.*\{lang: \[de, fr\]\}"),
        ("x: {each: {lang: [a]}}", r"corpora\.x\.each: .*'x'.*`each`.*\['lang'\]"),
        ('"x_{pair}": {each: {lang: [a]}}', r"\.each: .*'x_\{pair\}'.*`each`.*\['lang'\]"),
        ('{"x_{lang}": {each: {lang: [a, b]}}, x_b: {}}', r"corpora\.x_b: .*'x_b'.*twice"),
        ('"x_{lang}": {each: {lang: [a, a], n: [b, c]}}', None),
    ],
)
def test_mistakes_are_named(tmp_path, entry, message):
    text = f"corpora:\n  {entry}\n" if not entry.startswith("{") else f"corpora: {entry}\n"
    if message is None:
        assert [*expanded(tmp_path, text).content["corpora"]] == ["x_a"]
        return
    with pytest.raises(InputError, match=message):
        expanded(tmp_path, text)


@pytest.fixture(scope="module")
def project():
    return load_project(ROOT, {"scale": "laptop"})


def test_the_training_data_of_all_papers_is_there(project):
    wanted = """simcse_wiki wikipedia_en wikipedia_dump_en simcse_nli snli_train multinli_train xnli_mt xnli_dev xnli_15way paws_x_train
        xtreme_xnli xtreme_pawsx paracrawl_en-fr paracrawl_en-sw tatoeba_en-zh unpc_en-zh news_commentary_v15_en-zh
        cwmt_neu2017_en-zh cwmt_casia2015_en-zh cwmt_casict2015_en-zh ccmatrix_en-de ccaligned_en-zh multiun_en-ru wmt_news_en-cs cc100_en
        cc100_jv muse_en-de muse_en-zh"""
    assert set(wanted.split()) <= set(project.corpora)
    muse = [name for name in project.corpora if name.startswith("muse_en-")]
    assert len(muse) == 44
    assert not {"muse_en-sw", "muse_en-ur"} & set(muse)
    assert project.corpora["xnli_mt"]["langs"] == project.corpora["xtreme_xnli"]["langs"]
    assert len(project.corpora["xnli_mt"]["langs"]) == 15


def test_every_source_says_what_a_person_must_know(project):
    for name, source in project.sources.items():
        assert source["licence"], name
        assert source["citation"], name
        names = [file["name"] for file in source["files"]]
        assert len(set(names)) == len(names), name
        for file in source["files"]:
            assert "sha256" not in file or re.fullmatch("[0-9a-f]{64}", file["sha256"]), name
        if "stand_in" in source:
            assert source["stand_in"] in STAND_INS.names()


def test_every_corpus_reads_files_that_its_source_has(project):
    for name, entry in project.corpora.items():
        if "source" in entry:
            assert set(entry.get("files", [])) <= {file["name"] for file in project.sources[entry["source"]]["files"]}, name
        if entry["kind"] != "evaluation" and "reader" in entry:
            assert entry["reader"] in READERS.names()


def test_the_languages_of_emma_x_are_those_of_its_table(project):
    with open(CATALOG / "resources" / "published" / "emma_x_table7.csv", encoding="utf-8") as file:
        printed = {row["subset"] for row in csv.DictReader(file) if len(row["subset"]) == 2}
    # jv is what the table prints as a second lv; CC-100 has no Maltese.
    assert {name.removeprefix("cc100_") for name in project.corpora if name.startswith("cc100_")} == (printed | {"jv"}) - {"mt"}
    for corpus in ("ccmatrix", "ccaligned", "multiun", "wmt_news"):
        assert {name.rsplit("-", 1)[1] for name in project.corpora if name.startswith(f"{corpus}_en-")} <= printed | {"jv"}
