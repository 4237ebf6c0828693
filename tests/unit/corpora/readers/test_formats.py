"""Official formats in small files written for the test: archives, JSON lines, TMX, aligned columns, SQuAD, Wikipedia."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosslign.corpora import READERS
from crosslign.corpora.readers._left_out import counting
from crosslign.corpora.readers._prose import sentences
from crosslign.corpora.readers.wikipedia_dump import prose
from crosslign.errors import InputError


def zipped(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return {path.name: path}


def tarred(path, members):
    with tarfile.open(path, "w:" + path.name.rsplit(".", 1)[1]) as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return {path.name: path}


PARTS = {"a/en.tsv": "p\th\n1\t2\n", "a/de.tsv": "p\th\neins\tzwei\n", "README": "x"}


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz", "x.tar.bz2", "x.tar.xz"])
def test_members_are_read_where_they_lie(tmp_path, rows, name):
    pack = zipped if name.endswith(".zip") else tarred
    options = {"columns": {"p": "a_text", "h": "b_text"}, "header": True, "kind": "labelled", "group_lines": True}
    found = rows("tsv", pack(tmp_path / name, PARTS), ["en", "de"], member="a/{lang}.tsv", **options)
    assert [(row["id"], row["a_lang"], row["a_text"], row["b_text"], row["group"]) for row in found] == [
        (f"demo:{name}/a/en.tsv:2", "en", "1", "2", "2"),
        (f"demo:{name}/a/de.tsv:2", "de", "eins", "zwei", "2"),
    ]
    with pytest.raises(InputError, match=rf"{name}: .*'a/fr\.tsv'.*a/de\.tsv, a/en\.tsv"):
        rows("tsv", pack(tmp_path / name, PARTS), ["fr"], member={"fr": "a/fr.tsv"}, **options)
    with pytest.raises(InputError, match=r"demo: `member`.*'fr'.*\['en'\]"):
        rows("tsv", pack(tmp_path / name, PARTS), ["fr"], member={"en": "a/en.tsv"}, **options)
    with pytest.raises(InputError, match=r"demo: '.*'.*`member`"):
        rows("tsv", pack(tmp_path / name, PARTS), ["fr"], **options)


def test_errors_name_member_and_line(tmp_path, rows):
    files = zipped(tmp_path / "x.zip", {"a.txt": "one\n\nthree\n"})
    with pytest.raises(InputError, match=r"x\.zip:a\.txt:2: .*empty"):
        rows("text_lines", files, ["en"], member="a.txt")
    assert [row["text"] for row in rows("text_lines", files, ["en"], member="a.txt", skip_empty=True)] == ["one", "three"]


def test_an_unsafe_member_is_refused_by_name(tmp_path, rows):
    files = zipped(tmp_path / "x.zip", {"../a.txt": "one\n"})
    with pytest.raises(InputError, match=r"x\.zip: .*'\.\./a\.txt'.*outside"):
        rows("text_lines", files, ["en"], member="../a.txt")


def test_moses_of_opus(tmp_path, rows):
    members = {
        "README": "r",
        "LICENSE": "l",
        "X.en-zh_CN.en": "one\n\nthree\n",
        "X.en-zh_CN.zh_CN": "一\n二\n三\n",
        "X.en-zh_CN.xml": "<x/>",
    }
    files = zipped(tmp_path / "en-zh_CN.txt.zip", members)
    found = rows("moses", files, ["en", "zh"], codes={"zh": "zh_CN"}, skip_empty=True)
    assert [(row["a_text"], row["b_text"], row["id"]) for row in found] == [
        ("one", "一", "demo:en-zh_CN.txt.zip/X.en-zh_CN.en:1"),
        ("three", "三", "demo:en-zh_CN.txt.zip/X.en-zh_CN.en:3"),
    ]
    with pytest.raises(InputError, match=r"X\.en-zh_CN\.en:2: .*empty"):
        rows("moses", files, ["en", "zh"], codes={"zh": "zh_CN"})
    with pytest.raises(InputError, match=r"demo: .* \.zh; .*\[\].*`sides`"):
        rows("moses", files, ["en", "zh"])


def test_moses_sides_by_name(tmp_path, rows):
    (tmp_path / "NEU_en.txt").write_text("one\n")
    (tmp_path / "NEU_cn.txt").write_text("一\n", encoding="utf-8")
    files = {name: tmp_path / name for name in ("NEU_en.txt", "NEU_cn.txt")}
    found = rows("moses", files, ["en", "zh"], sides={"en": "NEU_en.txt", "zh": "NEU_cn.txt"})
    assert [(row["a_lang"], row["a_text"], row["b_lang"], row["b_text"]) for row in found] == [("en", "one", "zh", "一")]


def test_json_lines(tmp_path, rows):
    records = [
        {"gold_label": "entailment", "sentence1": "A", "sentence2": "B", "meta": {"n": 1}},
        {"gold_label": "-", "sentence1": "C", "sentence2": "D", "meta": {"n": 2}},
        {"gold_label": "neutral", "sentence1": "E", "sentence2": "", "meta": {"n": 3}},
        {"gold_label": "neutral", "sentence1": "G\u2028g", "sentence2": "H", "meta": {"n": 4}},
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(record, ensure_ascii=False) for record in records), encoding="utf-8")
    options = {"columns": {"sentence1": "a_text", "sentence2": "b_text", "gold_label": "label", "meta.n": "group"}}
    labels = {"entailment": 0, "neutral": 1}
    found = rows("json_lines", {"a.jsonl": path}, ["en"], labels=labels, skip={"gold_label": ["-"]}, skip_empty=True, **options)
    assert [(row["a_text"], row["label"], row["group"], row["id"]) for row in found] == [
        ("A", [0.0], "1", "demo:a.jsonl:1"),
        ("G\u2028g", [1.0], "4", "demo:a.jsonl:4"),
    ]
    with pytest.raises(InputError, match=r"a\.jsonl:2: .*'-'"):
        rows("json_lines", {"a.jsonl": path}, ["en"], labels=labels, **options)
    with pytest.raises(InputError, match=r"a\.jsonl:1: .*'sentence3'.*'sentence"):
        rows("json_lines", {"a.jsonl": path}, ["en"], columns={"sentence3": "a_text"})


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", " JSON; "), ("[1]", r"object.* 1$"), ('{"t": [1]}', r"'t'.*\[1\]"), ('{"t": "\\ud800"}', "surrogate")],
)
def test_json_mistakes(tmp_path, rows, text, message):
    (tmp_path / "a.jsonl").write_text(text + "\n")
    with pytest.raises(InputError, match=rf"a\.jsonl:1: .*{message}"):
        rows("json_lines", {"a.jsonl": tmp_path / "a.jsonl"}, ["en"], columns={"t": "a_text"})


def test_a_column_may_name_the_language(tmp_path, rows):
    (tmp_path / "xnli.tsv").write_text("language\tlabel\tone\ttwo\tid\nde\tneutral\ta\tb\t7\nsw\tneutral\tc\td\t7\nfr\tneutral\te\tf\t7\n")
    columns = {"language": "lang", "one": "a_text", "two": "b_text", "label": "label", "id": "group"}
    found = rows(
        "tsv", {"xnli.tsv": tmp_path / "xnli.tsv"}, ["fr", "de"], kind="labelled", header=True, columns=columns, labels={"neutral": 1}
    )
    assert [(row["a_lang"], row["b_lang"], row["a_text"], row["group"]) for row in found] == [
        ("de", "de", "a", "7"),
        ("fr", "fr", "e", "7"),
    ]


TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu tuid="u:1"><prop type="note">not a text</prop>
<tuv xml:lang="en"><seg>One &amp; <bpt i="1">{\\b </bpt><hi>two</hi><ept i="1">}</ept>
 lines</seg></tuv><tuv xml:lang="pt-BR"><seg>Um</seg></tuv></tu>
<tu tuid="u:2"><tuv xml:lang="en"><seg>Alone</seg></tuv></tu>
<tu tuid="u:3"><tuv lang="EN"><seg>Three</seg></tuv><tuv lang="pt"><seg>Três</seg></tuv></tu>
</body></tmx>
"""


@pytest.mark.parametrize("name", ["a.tmx", "a.tmx.gz", "a.tmx.zip"])
def test_tmx(tmp_path, rows, name):
    path = tmp_path / name
    if name.endswith(".zip"):
        zipped(path, {"a.tmx": TMX})
    else:
        path.write_bytes(gzip.compress(TMX.encode()) if name.endswith(".gz") else TMX.encode())
    found = rows("tmx", {name: path}, ["en", "pt"])
    assert [(row["a_text"], row["b_text"], row["id"].rsplit(":", 1)[1]) for row in found] == [
        ("One & two lines", "Um", "1"),
        ("Three", "Três", "3"),
    ]
    groups = rows("tmx", {name: path}, ["en", "pt"], kind="multiway")
    assert [(row["group"], row["lang"]) for row in groups] == [("u:1", "en"), ("u:1", "pt"), ("u:2", "en"), ("u:3", "en"), ("u:3", "pt")]


BOMB = '<!DOCTYPE tmx [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><tmx><body><tu><tuv xml:lang="en"><seg>&b;</seg></tuv></tu></body></tmx>'
OUTSIDE = '<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]><tmx><body/></tmx>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "entity 'a'"),
        (OUTSIDE, "entity 'x'"),
        (TMX[:-20], "XML"),
        ("<html/>", "<html>"),
        ("<tmx>&u;</tmx>", "XML"),
    ],
)
def test_tmx_mistakes(tmp_path, rows, text, message):
    (tmp_path / "a.tmx").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=rf"a\.tmx:\d+: .*{message}"):
        rows("tmx", {"a.tmx": tmp_path / "a.tmx"}, ["en", "pt"])


def test_aligned_columns(tmp_path, rows):
    files = zipped(tmp_path / "x.zip", {"x.tsv": "en\tde\tfr\none\teins\tun\ntwo\t\tdeux\n"})
    found = rows("aligned_columns", files, ["de", "en"], member="x.tsv", skip_empty=True)
    assert [(row["group"], row["lang"], row["text"]) for row in found] == [
        ("x.zip/x.tsv:2", "de", "eins"),
        ("x.zip/x.tsv:2", "en", "one"),
        ("x.zip/x.tsv:3", "en", "two"),
    ]
    with pytest.raises(InputError, match=r"x\.tsv:3: .* de .*empty"):
        rows("aligned_columns", files, ["de"], member="x.tsv")
    with pytest.raises(InputError, match=r"x\.zip:x\.tsv:1: .*'es'"):
        rows("aligned_columns", files, ["es"], member="x.tsv")


def test_translate_train_leaves_broken_lines_out_where_it_may(tmp_path, rows):
    (tmp_path / "en-de.tsv").write_text("A\tB\ta\tb\t1\nbroken\nC\tD\tc\td\tx\nE\tF\tNS\tf\t0\nA\tB\ta2\tb2\t0\n")
    files = {"en-de.tsv": tmp_path / "en-de.tsv"}
    options = {"file_langs": {"en-de.tsv": "de"}, "labels": {"0": 0, "1": 1}}
    found = rows("translate_train", files, ["en", "de"], skip=["NS"], skip_broken=True, **options)
    assert [(row["a_lang"], row["a_text"], row["label"]) for row in found] == [
        ("en", "A", [1.0]),
        ("de", "a", [1.0]),
        ("en", "E", [0.0]),
        ("en", "A", [0.0]),
        ("de", "a2", [0.0]),
    ]
    assert found[0]["group"] == found[1]["group"] != found[3]["group"]
    with pytest.raises(InputError, match=r"en-de\.tsv:2: .*columns.* 1, .* 5$"):
        rows("translate_train", files, ["en", "de"], **options)


def test_squad(tmp_path, rows):
    context = "The tower is old. It was built in 1887, by Mr. Eiffel. People like it."
    asked = [
        {"id": "q1", "question": "When was it built?", "answers": [{"text": "1887", "answer_start": 34}]},
        {"id": "q2", "question": "Why?", "answers": []},
    ]
    content = {"data": [{"paragraphs": [{"context": context, "qas": asked}]}]}
    path = tmp_path / "train.json"
    path.write_text(json.dumps(content))
    found = rows("squad", {"train.json": path}, ["en"])
    assert [(row["a_text"], row["b_text"], row["id"]) for row in found] == [
        ("When was it built?", "It was built in 1887, by Mr. Eiffel.", "demo:train.json:q1")
    ]
    content["data"][0]["paragraphs"][0]["sentence_breaks"] = [[0, 17], [18, 70]]
    path.write_text(json.dumps(content))
    assert rows("squad", {"train.json": path}, ["en"])[0]["b_text"] == context[18:70]
    assert rows("squad", {"train.json": path}, ["en"], answer="paragraph")[0]["b_text"] == context
    path.write_text('{"data": [{"paragraphs": [{}]}]}')
    with pytest.raises(InputError, match=r"train\.json: .*SQuAD.*'qas'"):
        rows("squad", {"train.json": path}, ["en"])


def test_wiki_markup():
    markup = (
        "{{Infobox\n|a=b}}\n'''Ada''' (1815–1852) was an [[England|English]] mathematician.<ref>Note. One.</ref> She wrote to Mr. Babbage! "
        '[[File:A.jpg|thumb|A portrait. Nice.]]\n== Life ==\n* a list\n{| class="x"\n| cell\n|}\n'
        "She lived in [[London]]. [[Category:People]]"
    )
    assert list(sentences(prose(markup))) == [
        "Ada (1815–1852) was an English mathematician.",
        "She wrote to Mr. Babbage!",
        "She lived in London.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("He met Dr. Who at 3.5 p.m. today. Then J. R. left.", ["He met Dr. Who at 3.5 p.m. today.", "Then J. R. left."]),
        ('She said "No." Then she left.', ['She said "No."', "Then she left."]),
        ('He sold "The Moon". Then "Dr". Who left.', ['He sold "The Moon".', 'Then "Dr". Who left.']),
        ("Mr . Smith came . He left .", ["Mr . Smith came .", "He left ."]),
        ("第一句。第二句！", ["第一句。", "第二句！"]),
        ("真的？！ 是。", ["真的？！", "是。"]),
        ("Он пришёл. А. С. Пушкин писал. «Да» т.е. да.", ["Он пришёл.", "А. С. Пушкин писал.", "«Да» т.е. да."]),
        ("Ήρθε. Έφυγε; Ναι! Łódź leży w Polsce. Święto.", ["Ήρθε.", "Έφυγε; Ναι!", "Łódź leży w Polsce.", "Święto."]),
        ("جاء الرجل. ذهب؟ نعم.", ["جاء الرجل.", "ذهب؟", "نعم."]),
        ("वह आया। वह गया।", ["वह आया।", "वह गया।"]),
        ("¿Qué? ¡No!", ["¿Qué?", "¡No!"]),
        ("It cost 3 euros. then nothing", ["It cost 3 euros. then nothing"]),
        ("a line\nanother", ["a line", "another"]),
        ("", []),
    ],
)
def test_prose_is_cut_into_sentences(text, expected):
    assert list(sentences(text)) == expected


@given(st.text(max_size=200))
def test_cutting_loses_no_characters(text):
    assert "".join("".join(sentence.split()) for sentence in sentences(text)) == "".join(text.split())


def test_wikipedia_parquet(tmp_path, rows):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": ["12", "13"], "title": ["A", "B"], "text": ["First one here. Second.\n\nHeading", None]}), path)
    found = rows("wikipedia_parquet", {"a.parquet": path}, ["en"], min_words=2)
    assert [(row["id"], row["text"]) for row in found] == [("demo:a.parquet:12.1", "First one here.")]
    with pytest.raises(InputError, match=r"a\.parquet: .*'body'.*id, text, title"):
        rows("wikipedia_parquet", {"a.parquet": path}, ["en"], columns=["id", "body"])
    pq.write_table(pa.table({"id": ["12"], "text": [b"First one here."]}), path)
    with pytest.raises(InputError, match=r"a\.parquet: .*'text'.*binary") as refused:
        rows("wikipedia_parquet", {"a.parquet": path}, ["en"])
    assert "its type is binary" in str(refused.value)
    path.write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match=r"a\.parquet: .*Parquet.*`local`"):
        rows("wikipedia_parquet", {"a.parquet": path}, ["en"])


def test_triplets_csv(tmp_path, rows):
    path = tmp_path / "t.csv"
    path.write_text('sent0,sent1,hard_neg\n"A, ""b""\nc",d,e\nf,g,h\n')
    found = rows("triplets_csv", {"t.csv": path}, ["en"])
    assert [(row["id"], row["a_text"], row["b_text"], row["label"]) for row in found] == [
        ("demo:t.csv:2:sent1", 'A, "b"\nc', "d", [0.0]),
        ("demo:t.csv:2:hard_neg", 'A, "b"\nc', "e", [2.0]),
        ("demo:t.csv:4:sent1", "f", "g", [0.0]),
        ("demo:t.csv:4:hard_neg", "f", "h", [2.0]),
    ]
    path.write_text("sent0,sent1\na,b\n")
    with pytest.raises(InputError, match=r"t\.csv:1: .*'hard_neg'"):
        rows("triplets_csv", {"t.csv": path}, ["en"])


DAMAGED = [
    ("triplets_csv", "sent0,sent1,hard_neg\na,b,c\nd,,f\ng,h\n", {"skip_empty": True, "skip_broken": True}, {"empty": 1, "broken": 1}, 2),
    ("dictionary", "dog Hund\nice cream Eis\ncat\n", {"skip_broken": True}, {"broken": 2}, 1),
    (
        "tsv",
        "a\tb\tyes\nc\td\tperhaps\nonly one\n\tf\tno\nNS\th\tno\n",
        {
            "kind": "labelled",
            "columns": {1: "a_text", 2: "b_text", 3: "label"},
            "labels": {"yes": 1, "no": 0},
            "skip": {1: ["NS"]},
            "skip_empty": True,
            "skip_broken": True,
        },
        {"broken": 2, "empty": 1, "skipped": 1},
        1,
    ),
    ("tsv", "a\tb\t0.5\nc\td\thigh\n", {"columns": {1: "a_text", 2: "b_text", 3: "score"}, "skip_broken": True}, {"broken": 1}, 1),
    ("text_lines", "a\n\nb\n", {"skip_empty": True}, {"empty": 1}, 2),
]


@pytest.mark.parametrize(("reader", "text", "options", "left_out", "kept"), DAMAGED)
def test_damaged_lines_are_left_out_and_counted_where_they_may(tmp_path, rows, reader, text, options, left_out, kept):
    path = tmp_path / "a.txt"
    path.write_text(text)
    langs = ["en", "de"] if reader == "dictionary" else ["en"]
    with counting() as counts:
        assert len(rows(reader, {path.name: path}, langs, **options)) == kept
    assert counts == left_out
    for option in ("skip_empty", "skip_broken"):
        if option in options:
            with pytest.raises(InputError):
                rows(reader, {path.name: path}, langs, **{**options, option: False})


READ_WITH = {
    "json_lines": {"columns": {"t": "a_text"}},
    "tmx": {},
    "squad": {},
    "wikipedia_dump": {},
    "triplets_csv": {},
    "aligned_columns": {},
    "translate_train": {"file_langs": {"a.x": "en"}},
}


@pytest.mark.parametrize("reader", READ_WITH)
@given(data=st.binary(max_size=120))
def test_no_bytes_crash_a_reader(tmp_path_factory, reader, data):
    path = tmp_path_factory.mktemp("noise") / "a.x"
    path.write_bytes(data)
    try:
        list(READERS.get(reader)({"a.x": path}, "demo", ["en", "de"] if reader == "tmx" else ["en"], **READ_WITH[reader]))
    except InputError as error:
        named = str(path) in str(error)
        assert named
