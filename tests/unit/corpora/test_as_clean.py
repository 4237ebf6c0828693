"""Thresholds that a clean sample sets, against a plain count, and what is told of both sides of each."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from crosslign.corpora.build import build_corpus
from crosslign.errors import InputError
from crosslign.files.rows import SCHEMAS, write_rows

WORDS = {
    "en": ["house", "bread", "river", "garden", "winter", "friend", "letter", "window", "morning", "table"],
    "de": ["Haus", "Brot", "Fluss", "Garten", "Winter"],
}


def sentence(lang, words, draw):
    return " ".join(draw.choice(WORDS[lang]) for _ in range(words))


@pytest.fixture
def clean(tmp_path):
    """Four hundred pairs, in either order of their languages."""
    draw, rows = random.Random(3), []
    for number in range(400):
        words = draw.randint(6, 12)
        en, de = sentence("en", words, draw), sentence("de", words + draw.randint(0, 2), draw)
        pair = (
            {"a_lang": "en", "a_text": en, "b_lang": "de", "b_text": de}
            if number % 2
            else {"a_lang": "de", "a_text": de, "b_lang": "en", "b_text": en}
        )
        rows.append({"id": f"c:{number}", **pair})
    write_rows(tmp_path / "clean.parquet", pa.Table.from_pylist(rows, SCHEMAS["bitext"]), "bitext")
    return tmp_path / "clean.parquet", rows


def built(tmp_path, pairs, reference, **options):
    files = {}
    for side, lang in enumerate(("de", "en")):
        files[f"x.{lang}"] = tmp_path / f"x.{lang}"
        files[f"x.{lang}"].write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    step = {"as_clean": {"corpora": ["clean"], **options}}
    entry = {"kind": "bitext", "reader": "moses", "langs": ["de", "en"], "filters": [step]}
    counts = build_corpus("x", entry, files, {"clean": reference}, tmp_path / "x.parquet")
    return counts["filters"][0]


def test_each_threshold_keeps_the_share_of_the_sample_and_tells_of_both_sides(tmp_path, clean):
    reference, rows = clean
    pairs = [tuple(row[f"{s}_text"] for lang in ("de", "en") for s in "ab" if row[f"{s}_lang"] == lang) for row in rows]
    step = built(tmp_path, pairs, reference, keep=0.95)
    borders = {(one["measure"], one["at_least"]): one for one in step["learned"]}
    kinds = {(f"{kind} of {lang}", True) for kind in ("letters", "script", "language") for lang in ("de", "en")}
    assert set(borders) == kinds | {("length ratio of de to en", True), ("length ratio of de to en", False)}
    ratios = sorted(len(de) / len(en) for de, en in pairs)
    low, high = borders["length ratio of de to en", True], borders["length ratio of de to en", False]
    assert (low["bound"], high["bound"]) == (round(ratios[9], 4), round(ratios[-10], 4))  # 2.5 % of 400 on each side
    assert (low["kept"], high["kept"]) == (391, 391)
    assert all(one["kept"] >= 0.95 * 400 and one["rows"] == 400 for one in borders.values())
    assert [row[0] for row in low["inside"]] == [round(value, 4) for value in ratios[9:29]]
    assert [row[0] for row in low["outside"]] == [round(value, 4) for value in ratios[8::-1]]
    assert (low["inside"][0][1], low["inside"][0][2]) == next(pair for pair in pairs if len(pair[0]) / len(pair[1]) == ratios[9])


def test_rows_unlike_the_sample_are_dropped(tmp_path, clean):
    good = [(row["a_text"], row["b_text"]) for row in clean[1] if row["a_lang"] == "de"][:20]
    bad = [
        ("Haus", good[0][1]),
        (good[1][0], "12 34 56 78 90 12 34"),
        (good[2][0], "дом хлеб река сад зима друг письмо"),
        (good[3][1], good[3][1]),
    ]
    step = built(tmp_path, good + bad, clean[0], keep=0.9999)
    assert (step["before"], step["after"]) == (24, 20)


@pytest.mark.parametrize(("rows", "message"), [(slice(40), r"as_clean: .* 40 .* de\b.* 100 "), (slice(0), r"as_clean: .*sentences.* de\b")])
def test_too_small_a_sample_is_refused(tmp_path, clean, rows, message):
    write_rows(tmp_path / "few.parquet", pa.Table.from_pylist(clean[1][rows], SCHEMAS["bitext"]), "bitext")
    with pytest.raises(InputError, match=message):
        built(tmp_path, [("Haus und Hof", "House and yard")], tmp_path / "few.parquet")


def test_the_report_shows_the_rows_on_both_sides(tmp_path, clean):
    from crosslign.reporting.markup import templates
    from crosslign.reporting.report import learned_thresholds

    step = built(tmp_path, [(row["a_text"], row["b_text"]) for row in clean[1] if row["a_lang"] == "de"] + [("<b>", "x" * 40)], clean[0])
    counts = {"read": step["before"], "rows": step["after"], "filters": [step]}
    learned = learned_thresholds([{"artefact": {"kind": "corpus"}, "recipe": {"corpus": "x"}, "counts": counts}])
    page = templates().get_template("report_data.html").render(corpora=[], learned=learned, switched=[], overlap=[], decontamination=[])
    assert "thresholds of a clean sample" in page
    assert "&lt;b&gt; | xxxx" in page
    assert "length ratio of de to en at least" in page
