"""What publishers' files have besides: foreign entities, codes in segments, large fields, numbers that are none, names beside names."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import warnings
import zipfile
from contextlib import suppress

import pytest

from crosslign.corpora import EVALUATIONS, READERS, Given
from crosslign.corpora.readers._left_out import counting
from crosslign.errors import InputError

BITEXT = {"1": "a_text", "2": "b_text"}
TMX = '<!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx><body>\n{}\n</body></tmx>'


def unit(*segments):
    return "<tu>" + "".join(f'<tuv xml:lang="{lang}"><seg>{text}</seg></tuv>' for lang, text in segments) + "</tu>"


def written(path, text):
    path.write_text(text, encoding="utf-8", newline="")
    return {path.name: path}


def test_an_entity_of_a_dtd_elsewhere_is_refused_and_does_not_vanish(tmp_path, rows):
    """Golden: expat passes over `&eacute;` where the document type names a file that is not read."""
    files = written(tmp_path / "a.tmx", TMX.format(unit(("en", "caf&eacute;"), ("de", "Kaffee"))))
    with pytest.raises(InputError, match=r"a\.tmx:2: .*'eacute'"):
        rows("tmx", files, ["en", "de"])
    files = written(tmp_path / "a.tmx", TMX.format(unit(("en", "caf&#233; &amp; tea"), ("de", "Kaffee"))))
    assert rows("tmx", files, ["en", "de"])[0]["a_text"] == "café & tea"


def test_codes_of_the_original_format_are_no_text(tmp_path, rows):
    """Golden: TMX 1.4b, content markup: bpt, ept, it, ph and ut delimit native codes, hi highlighted text."""
    codes = '<ph x="1">&lt;br/&gt;<sub>note</sub></ph><bpt i="1">{\\b </bpt>'
    marked = f'Press {codes}now<ept i="1">}}</ept>, <hi>please</hi><it pos="end">x</it>'
    files = written(tmp_path / "a.tmx", TMX.format(unit(("en", marked), ("de", "Jetzt"))))
    assert rows("tmx", files, ["en", "de"])[0]["a_text"] == "Press now, please"


def test_units_without_a_language_are_counted(tmp_path, rows):
    files = written(tmp_path / "a.tmx", TMX.format(unit(("en", "One")) + unit(("en", "Two"), ("de", "Zwei"))))
    with counting() as left_out:
        assert [row["b_text"] for row in rows("tmx", files, ["en", "de"])] == ["Zwei"]
    assert dict(left_out) == {"without a language": 1}


@pytest.mark.parametrize("number", ["nan", "inf", "-Infinity"])
def test_numbers_that_are_none_are_no_scores(tmp_path, rows, number):
    files = written(tmp_path / "a.tsv", f"a\tb\t{number}\nc\td\t1\n")
    columns = {**BITEXT, "3": "score"}
    with pytest.raises(InputError, match=r"a\.tsv:1: score .*number"):
        rows("tsv", files, ["en", "de"], columns=columns)
    assert [row["score"] for row in rows("tsv", files, ["en", "de"], columns=columns, skip_broken=True)] == [1.0]
    files = written(tmp_path / "a.jsonl", json.dumps({"t": "a", "l": float(number)}) + "\n")
    with pytest.raises(InputError, match=r"a\.jsonl:1: label .*number"):
        rows("json_lines", files, ["en"], columns={"t": "a_text", "l": "label"})


def test_a_quoted_field_may_be_large(tmp_path, rows):
    large = '"' + "word " * 40_000 + '"'
    assert len(rows("tsv", written(tmp_path / "a.csv", f"{large},b\n"), ["en", "de"], columns=BITEXT, quoting=True, delimiter=",")) == 1
    found = rows("triplets_csv", written(tmp_path / "b.csv", f"sent0,sent1,hard_neg\n{large},b,c\n"), ["en"])
    assert [len(row["a_text"]) for row in found] == [200_000, 200_000]


def test_nul_in_json_is_refused_as_in_lines(tmp_path, rows):
    files = written(tmp_path / "a.jsonl", '{"t": "good"}\n{"t": "a\\u0000b"}\n')
    with pytest.raises(InputError, match=r"demo:a\.jsonl:2: .*NUL"):
        rows("json_lines", files, ["en"], columns={"t": "text"}, kind="mono")


@pytest.mark.parametrize("start", [-1, 17, 999])
def test_an_answer_outside_its_paragraph_is_refused(tmp_path, rows, start):
    asked = [{"id": "q", "question": "Who?", "answers": [{"text": "Ann", "answer_start": start}]}]
    files = written(tmp_path / "a.json", json.dumps({"data": [{"paragraphs": [{"context": "Ann. Bob is here.", "qas": asked}]}]}))
    with pytest.raises(InputError, match=rf"a\.json: .* q: .*{start:,} .*\b17\b"):
        rows("squad", files, ["en"])


def archive(path, members):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zipfile, over two members of one name
        if path.suffix == ".zip":
            with zipfile.ZipFile(path, "w") as made:
                for name, text in members:
                    made.writestr(name, text)
        else:
            with tarfile.open(path, "w") as made:
                for name, text in members:
                    info = tarfile.TarInfo(name)
                    info.size = len(text.encode())
                    made.addfile(info, io.BytesIO(text.encode()))
    return {path.name: path}


@pytest.mark.parametrize("name", ["a.zip", "a.tar"])
def test_members_with_a_leading_dot_and_what_macos_packs_beside_them(tmp_path, rows, name):
    members = [("./x.en", "one\n"), ("./x.de", "eins\n"), ("__MACOSX/._x.en", "\1"), ("__MACOSX/._x.de", "\1"), ("./._x.de", "\1")]
    files = archive(tmp_path / name, members)
    assert [(row["id"], row["b_text"]) for row in rows("moses", files, ["en", "de"])] == [(f"demo:{name}/x.en:1", "eins")]
    assert [row["text"] for row in rows("text_lines", files, ["en"], member="x.en")] == ["one"]


@pytest.mark.parametrize("name", ["a.zip", "a.tar"])
def test_two_members_of_one_name_are_refused(tmp_path, rows, name):
    files = archive(tmp_path / name, [("x.txt", "old\n"), ("x.txt", "new\n")])
    with pytest.raises(InputError, match=rf"{name}: .*'x\.txt'.*twice"):
        rows("text_lines", files, ["en"], member="x.txt")
    with pytest.raises(InputError, match=r"'y\.txt'.*archive.*'x\.txt'"):
        rows("text_lines", archive(tmp_path / name, [("x.txt", "old\n")]), ["en"], member="y.txt")


@pytest.mark.parametrize(("langs", "found"), [(["en", "zh"], "s"), (["en", "zh-TW"], "t")])
def test_a_region_is_told_from_others_where_it_is_asked_for(tmp_path, rows, langs, found):
    files = written(tmp_path / "a.tmx", TMX.format(unit(("en-GB", "e"), ("zh_CN", "s"), ("ZH-tw", "t"))))
    assert [row["b_text"] for row in rows("tmx", files, langs)] == [found]


def test_packed_members_of_an_archive_are_unpacked(tmp_path, rows):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, text in (("a.de.gz", "eins\nzwei\n"), ("a.en.gz", "one\ntwo\n")):
            packed = gzip.compress(text.encode())
            info = tarfile.TarInfo(name)
            info.size = len(packed)
            archive.addfile(info, io.BytesIO(packed))
    found = rows("moses", {"a.tar": tmp_path / "a.tar"}, ["de", "en"])
    assert [(row["a_text"], row["b_text"]) for row in found] == [("eins", "one"), ("zwei", "two")]


def test_a_number_with_an_underscore_is_none(tmp_path, rows):
    """Golden: Python reads `1_5` as 15."""
    files = written(tmp_path / "a.tsv", "a\tb\t1_5\n")
    with pytest.raises(InputError, match=r"a\.tsv:1: score .*'1_5'"):
        rows("tsv", files, ["de", "en"], columns={**BITEXT, "3": "score"})


def test_a_truth_value_is_no_text_and_no_number(tmp_path, rows):
    files = written(tmp_path / "a.jsonl", '{"text": true}\n')
    with pytest.raises(InputError, match=r"a\.jsonl:1: .*'text'.*True"):
        rows("json_lines", files, ["en"], columns={"text": "text"}, kind="mono")


def test_files_whose_names_say_no_language_are_to_be_named(tmp_path, rows):
    files = {**written(tmp_path / "de.txt", "a\n"), **written(tmp_path / "en.txt", "b\n")}
    with pytest.raises(InputError, match=r"demo: .* \.de; .*\[\].*'de\.txt', 'en\.txt'.*`sides`"):
        rows("moses", files, ["de", "en"])


@pytest.mark.parametrize("change", [{"premise": None}, {"choice1": ["a"]}, {"choice2": 2}, {"question": []}])
def test_a_value_of_json_that_is_no_text_is_named(tmp_path, rows, change):
    question = {"premise": "It rained.", "choice1": "It was wet.", "choice2": "It was dry.", "question": "effect", "label": 0, **change}
    files = written(tmp_path / "train.jsonl", json.dumps(question) + "\n")
    with pytest.raises(InputError, match=r"train\.jsonl:1: .*(premise|choice|question).*text; "):
        rows("multiple_choice", files, ["en"])


@pytest.mark.parametrize("change", [{"celex_id": 7}, {"text": None}, {"text": {"en": 5}}, {"eurovoc_concepts": {"level_1": 7}}])
def test_a_law_of_another_form_is_named(tmp_path, rows, change):
    law = {"celex_id": "32006D0213", "text": {"en": "Decision"}, "eurovoc_concepts": {"level_1": ["100142"]}, **change}
    files = written(tmp_path / "train.jsonl", json.dumps(law) + "\n")
    with pytest.raises(InputError, match=r"train\.jsonl:1: .*(MultiEURLEX|celex_id)"):
        rows("multi_eurlex", files, ["en"])


def changed(value, path, new):
    """Return JSON with another value at a path."""
    if not path:
        return new
    parts = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    parts[path[0]] = changed(parts[path[0]], path[1:], new)
    return parts if isinstance(value, dict) else list(parts.values())


@pytest.mark.parametrize(
    "path",
    [
        ("data",),
        ("data", 0, "paragraphs"),
        *(("data", 0, "paragraphs", 0, key) for key in ("context", "sentence_breaks", "qas")),
        *(("data", 0, "paragraphs", 0, "qas", 0, key) for key in ("id", "question", "answers")),
        ("data", 0, "paragraphs", 0, "qas", 0, "answers", 0, "answer_start"),
    ],
)
@pytest.mark.parametrize("new", [None, 7, [], {}, ["x"], "abc"])
def test_questions_of_another_form_end_in_words_or_are_questions(tmp_path, path, new):
    paragraph = {"context": "Ab cd. Ef gh.", "sentence_breaks": [[0, 6], [7, 13]]}
    asked = {"id": "1", "question": "Why?", "answers": [{"text": "Ab", "answer_start": 0}]}
    content = changed({"data": [{"paragraphs": [{**paragraph, "qas": [asked]}]}]}, path, new)
    files = written(tmp_path / "en.json", json.dumps(content))
    with suppress(InputError):  # all else is an error of ours
        list(READERS.get("squad")(files, "c", ["en"]))
    for part in ("questions", "candidates"):
        with suppress(InputError):
            EVALUATIONS.get("xquad_r")(Given(files, {}, "e", ["en"], None, 1), part=part)


@pytest.mark.parametrize(
    ("kind", "name", "line", "options"),
    [
        ("tsv", "a.tsv", "one\ttwo\tone\n", {"columns": {"one": "a_text", "two": "b_text"}, "header": True}),
        (
            "tsv",
            "a.csv",
            "one,two,one\n",
            {"columns": {"one": "a_text", "two": "b_text"}, "header": True, "quoting": True, "delimiter": ","},
        ),
        ("triplets_csv", "a.csv", "one,two,three,one\n", {"columns": ["one", "two", "three"]}),
        ("aligned_columns", "a.tsv", "one\ttwo\tone\n", {"codes": {"en": "one"}}),
    ],
)
def test_of_two_columns_of_one_name_none_is_taken(tmp_path, rows, kind, name, line, options):
    files = written(tmp_path / name, line * 2)
    with pytest.raises(InputError, match=r":1: .*'one'; .*one, two"):
        rows(kind, files, ["en"], **options)
    assert len(rows(kind, written(tmp_path / name, line.replace("one", "four").replace("four", "one", 1) * 2), ["en"], **options)) > 0


def test_of_two_columns_of_scores_none_is_taken(tmp_path):
    files = written(tmp_path / "dev.ende.df.short.tsv", "original\ttranslation\tz_mean\tz_mean\nA\tB\t1\t2\n")
    with pytest.raises(InputError, match=r":1: .*'z_mean'; .*z_mean, z_mean"):
        EVALUATIONS.get("mlqe_pe")(Given(files, {}, "demo"))
