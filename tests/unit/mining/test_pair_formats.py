"""Mined pairs as translation memories, as Moses' two files, and as they are told on the console."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosslign.errors import InputError
from crosslign.files import write_batches
from crosslign.mining.knn import neighbours
from crosslign.mining.pairs import write_again, write_pairs
from crosslign.mining.summary import round_scores, summary_lines

SENTENCES = {"de": ["Äpfel & <Birnen>", "zwei\x0bdrei\u2028vier", "\ufffe offen"], "en": ["apples & <pears>", 'two "three" four', "open"]}
LANG = "{http://www.w3.org/XML/1998/namespace}lang"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    texts = []
    for lang, sentences in SENTENCES.items():
        table = pa.table({"text_id": ["1", "2", "3"], "lang": [lang] * 3, "text": sentences})
        write_batches(tmp_path / f"{lang}.parquet", iter([table]), "texts")
        texts.append(tmp_path / f"{lang}.parquet")
    vectors = np.eye(3) + 0.1
    files = {"tmx": "p.tmx", "moses_source": "p.de", "moses_target": "p.en", "parquet": "p.parquet"}
    outputs = {name: tmp_path / file for name, file in files.items()}
    near = neighbours(vectors, vectors, 2)
    write_pairs(near, (texts[0], texts[1]), outputs, margin="absolute", retrieval="max", threshold=None, encoders=["one", "two"])
    return tmp_path


def test_any_reader_of_xml_finds_both_sides_the_score_and_the_encoder_in_tmx(written):
    root = ElementTree.parse(written / "p.tmx").getroot()
    header = root.find("header")
    assert (root.get("version"), header.get("srclang"), header.find("prop").text) == ("1.4", "de", "one, two")
    units = [{tuv.get(LANG): tuv.find("seg").text for tuv in unit.iter("tuv")} for unit in root.iter("tu")]
    clean = [["Äpfel & <Birnen>", "zwei drei vier", "\ufffd offen"], SENTENCES["en"]]
    assert units == [{"de": left, "en": right} for left, right in zip(*clean, strict=True)]
    assert [[prop.text for prop in unit.findall("prop")] for unit in root.iter("tu")] == [["1.000000", f"{n} {n}"] for n in (1, 2, 3)]


def test_languages_with_a_script_are_tags_of_xml(written):
    write_again(written / "p.parquet", {"tmx": written / "again.tmx"}, ["zh_Hant", "sr_Latn"])
    root = ElementTree.parse(written / "again.tmx").getroot()
    assert root.find("header").get("srclang") == "zh-Hant"
    assert {tuv.get(LANG) for tuv in root.iter("tuv")} == {"zh-Hant", "sr-Latn"}


def test_line_n_of_one_file_of_moses_belongs_to_line_n_of_the_other(written):
    left, right = ((written / f"p.{lang}").read_text(encoding="utf-8").split("\n") for lang in ("de", "en"))
    assert left == ["Äpfel & <Birnen>", "zwei drei vier", "\ufffe offen", ""]
    assert right == [*SENTENCES["en"], ""]


def test_finished_pairs_are_written_in_other_forms_as_if_they_had_been_asked_for(written):
    again = {"tmx": written / "again.tmx", "moses_source": written / "again.de", "parquet": written / "again.parquet"}
    write_again(written / "p.parquet", again, ["de", "en"])
    assert {path.read_bytes() == (written / path.name.replace("again", "p")).read_bytes() for path in again.values()} == {True}
    with pytest.raises(InputError, match=r": .*output.*input"):
        write_again(written / "p.parquet", {"parquet": written / "p.parquet"}, ["de", "en"])


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (np.linspace(1.08, 1.01, 1001), [1.07, 1.06, 1.05, 1.04, 1.03, 1.02, 1.01]),
        (np.linspace(90, 0, 101), [80, 60, 40, 20, 0]),
        (np.array([1.5, 1.5]), [1.5]),
        (np.array([]), []),
    ],
)
def test_listed_scores_are_round_and_lie_where_pairs_do(scores, expected):
    assert round_scores(scores) == pytest.approx(expected)


def test_a_pair_is_shown_at_each_score_and_the_best_at_the_end(tmp_path):
    scores = np.round(np.linspace(1.08, 1.01, 71), 6)
    table = {"score": scores, "source_text": [f"s{n}" for n in range(71)], "target_text": [f"t{n}" for n in range(70)] + ["x" * 99]}
    pq.write_table(pa.table(table), tmp_path / "p.parquet", row_group_size=8)
    _, head, *rows, title, best, _, _ = summary_lines(tmp_path / "p.parquet")
    assert head.split() == ["score", "≥", "pairs", "the", "one", "with", "the", "lowest", "score"]
    assert rows[0].split() == ["1.07", "11", "s10", "|", "t10"]  # 1.08, 1.079 ... 1.07
    assert rows[-1].endswith("s70 | " + "x" * 59 + "…")
    assert (title, best.split()) == ("best first:", ["1.0800", "s0", "|", "t0"])
