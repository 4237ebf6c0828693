"""Official formats, each against rows written by hand."""

from __future__ import annotations

import gzip
import sqlite3
import zipfile

import pyarrow as pa
import pytest

from crosslign.corpora import READERS
from crosslign.corpora.readers._tables import ROWS
from crosslign.corpora.readers.bible_sqlite import clean
from crosslign.errors import InputError
from crosslign.files.rows import SCHEMAS


def write(folder, **files):
    paths = {}
    for key, text in files.items():
        name = key.replace("__", "-").replace("_DOT_", ".")
        paths[name] = folder / name
        paths[name].write_bytes(text if isinstance(text, bytes) else text.encode())
    return paths


def test_every_reader_has_a_module_of_its_name():
    for name in READERS.names():
        assert READERS.get(name).__module__ == READERS.module(name)


def test_tables_are_bounded_and_whole(tmp_path):
    count = ROWS + 3
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(count)))
    tables = list(READERS.get("text_lines")({"a.txt": tmp_path / "a.txt"}, "demo", ["en"]))
    assert [table.num_rows for table in tables] == [ROWS, 3]
    assert all(table.schema == SCHEMAS["mono"] for table in tables)
    assert tables[1].to_pylist()[-1] == {"id": f"demo:a.txt:{count}", "lang": "en", "text": f"line {count - 1}"}


def test_text_lines_of_several_languages(tmp_path, rows):
    files = write(tmp_path, de_DOT_txt="eins\n", en_DOT_txt="one\ntwo\n", fr_DOT_txt="un\n")
    langs = {"de.txt": "de", "en.txt": "en", "fr.txt": "fr"}
    found = rows("text_lines", files, ["de", "en"], file_langs=langs)
    assert [(row["id"], row["lang"], row["text"]) for row in found] == [
        ("demo:de.txt:1", "de", "eins"),
        ("demo:en.txt:1", "en", "one"),
        ("demo:en.txt:2", "en", "two"),
    ]
    with pytest.raises(InputError, match=r"demo: .*'de\.txt'.*file_langs"):
        rows("text_lines", files, ["de", "en"])
    files["de.txt"].write_text("a\n \nb\n")
    with pytest.raises(InputError, match=r"de\.txt:2: .*empty"):
        rows("text_lines", files, ["de", "en"], file_langs=langs)


def test_a_misspelt_file_has_no_language(tmp_path, rows):
    """Its rows had both languages of the corpus, one a side."""
    files = write(tmp_path, de_DOT_tsv="eins\tzwei\n", en_DOT_tsv="one\ttwo\n")
    options = {"columns": {1: "a_text", 2: "b_text"}, "file_langs": {"de.tsv": ["de"], "em.tsv": ["en"]}}
    with pytest.raises(InputError, match=r"demo: .*`file_langs`.*'em\.tsv'.*'en\.tsv'"):
        rows("tsv", files, ["de", "en"], **options)


def test_moses(tmp_path, rows):
    files = write(
        tmp_path, **{"c_DOT_de__en_DOT_en_DOT_gz": gzip.compress(b"one\ntwo\n"), "c_DOT_de__en_DOT_de": "eins\r\nzwei", "LICENSE": "x"}
    )
    row = {"a_lang": "de", "b_lang": "en", "score": None}
    assert rows("moses", files, ["de", "en"]) == [
        {"id": "demo:c.de-en.de:1", "a_text": "eins", "b_text": "one", **row},
        {"id": "demo:c.de-en.de:2", "a_text": "zwei", "b_text": "two", **row},
    ]
    with pytest.raises(InputError, match=r"demo: .* \.fr; .*\[\].*'c\.de-en\.de'.*`sides`"):
        rows("moses", files, ["de", "fr"])


@pytest.mark.parametrize(("german", "english", "message"), [
    ("a\nb\nc\n", "a\nb\n", r"demo: .*a\.de.*3, a\.en.*\b2\b"),
    ("a\n", "a\nb\nc\n\n", r"demo: .*a\.de.*1, a\.en.*\b4\b"),
    ("a\n\nc\n", "a\nb\nc\n", r"a\.de:2: .*empty"),
    ("a\nb\n", "a\n\t\n", r"a\.en:2: .*empty"),
])  # fmt: skip
def test_moses_mistakes(tmp_path, rows, german, english, message):
    with pytest.raises(InputError, match=message):
        rows("moses", write(tmp_path, a_DOT_de=german, a_DOT_en=english), ["de", "en"])


def test_dictionary(tmp_path, rows):
    files = write(tmp_path, en__de_DOT_txt="cat Katze\ncat\tKater\ndog  Hund \n", en__fr_DOT_txt="cat chat\n")
    found = rows("dictionary", files, ["en", "de"])
    assert [(row["id"], row["a_lang"], row["a_text"], row["b_lang"], row["b_text"]) for row in found] == [
        ("demo:en-de.txt:1", "en", "cat", "de", "Katze"),
        ("demo:en-de.txt:2", "en", "cat", "de", "Kater"),
        ("demo:en-de.txt:3", "en", "dog", "de", "Hund"),
    ]
    named = write(tmp_path, dictionary_en__de_DOT_5000_DOT_txt="cat Katze\n", plain_DOT_txt="chat cat\n")
    assert [(row["a_lang"], row["b_lang"]) for row in rows("dictionary", named, ["de", "en"])] == [("en", "de"), ("de", "en")]
    for bad, found in (("one", 1), ("", 0), ("a b c", 3)):
        files["en-de.txt"].write_text(f"cat Katze\n{bad}\nx y\n")
        with pytest.raises(InputError, match=rf"en-de\.txt:2: .*words.* {found}\b"):
            rows("dictionary", files, ["en", "de"])


def test_dictionaries_of_the_mirror(mirror):
    counts = {}
    for path in sorted((mirror / "dict-wiktionary").glob("en-*.txt")):
        lang = path.stem[3:]
        counts[lang] = sum(table.num_rows for table in READERS.get("dictionary")({path.name: path}, "dict", ["en", lang]))
    assert len(counts) == 14
    lines = {path.stem[3:]: path.read_bytes().count(b"\n") for path in (mirror / "dict-wiktionary").glob("en-*.txt")}
    assert counts == lines


def test_tsv_by_number(tmp_path, rows):
    files = write(tmp_path, dev__de_DOT_tsv='eins "a"\tzwei\t1\n', dev__en_DOT_tsv="one\ttwo\t0\n")
    found = rows(
        "tsv",
        files,
        [],
        columns={1: "a_text", "2": "b_text", 3: "label"},
        kind="labelled",
        file_langs={"dev-de.tsv": ["de"], "dev-en.tsv": ["en"]},
    )
    assert found == [
        {"id": "demo:dev-de.tsv:1", "a_lang": "de", "a_text": 'eins "a"', "b_lang": "de", "b_text": "zwei", "label": [1.0], "group": None},
        {"id": "demo:dev-en.tsv:1", "a_lang": "en", "a_text": "one", "b_lang": "en", "b_text": "two", "label": [0.0], "group": None},
    ]


def test_tsv_by_name_with_labels_and_quotes(tmp_path, rows):
    text = 'gold_label,topic,sentence\r\nentailment,t1,"He said ""yes"",\nthen no."\r\ncontradiction,t2,plain\r\n'
    files = write(tmp_path, a_DOT_csv=text)
    options = {
        "columns": {"sentence": "a_text", "gold_label": "label", "topic": "group"},
        "kind": "labelled",
        "delimiter": ",",
        "header": True,
        "quoting": True,
    }
    found = rows("tsv", files, ["en"], labels={"entailment": 0, "contradiction": 2}, **options)
    assert [(row["id"], row["a_text"], row["b_text"], row["label"], row["group"]) for row in found] == [
        ("demo:a.csv:2", 'He said "yes",\nthen no.', None, [0.0], "t1"),
        ("demo:a.csv:4", "plain", None, [2.0], "t2"),
    ]
    with pytest.raises(InputError, match=r"a\.csv:4: .*'contradiction'"):
        rows("tsv", files, ["en"], labels={"entailment": 0, "contradictory": 2}, **options)


def test_tsv_scores(tmp_path, rows):
    files = write(tmp_path, a_DOT_tsv="1.25\teins\tone\n")
    found = rows("tsv", files, ["de", "en"], columns={1: "score", 2: "a_text", 3: "b_text"})
    assert (found[0]["score"], found[0]["a_lang"], found[0]["b_lang"]) == (1.25, "de", "en")


def test_tsv_of_ragged_rows(tmp_path, rows):
    files = write(tmp_path, a_DOT_tsv="eins\tone\nzwei\ttwo\tsource\tsource\ndrei\tthree\n")
    found = rows("tsv", files, ["de", "en"], columns={1: "a_text", 2: "b_text"}, ragged=True)
    assert [(row["a_text"], row["b_text"]) for row in found] == [("eins", "one"), ("zwei", "two"), ("drei", "three")]
    with pytest.raises(InputError, match=r"a\.tsv:2: .*columns.* 1, .* 2$"):
        rows("tsv", write(tmp_path, a_DOT_tsv="a\tb\na\n"), ["de", "en"], columns={1: "a_text", 2: "b_text"}, ragged=True)


@pytest.mark.parametrize(("text", "options", "message"), [
    ("a\tb\na\n", {}, r"a\.tsv:2: .*columns.* 1, .* 2$"),
    ("a\tb\na\tb\tc\n", {}, r"a\.tsv:2: .*columns.* 3, .* 2$"),
    ("a\t \n", {}, r"a\.tsv:1: .*b_text.*empty"),
    ("a\tb\n", {"columns": {1: "a_text", 5: "b_text"}}, r"a\.tsv:1: .*'5'; .* 1, 2"),
    ("first\tb\na\tb\n", {"columns": {"frist": "a_text", "b": "b_text"}, "header": True}, r"a\.tsv:1: .*'frist'.*'first'"),
    ("a\tx\n", {"columns": {1: "a_text", 2: "score"}}, r"a\.tsv:1: score .*'x'"),
    ('a\tb\n"a\tb\nc\td\n', {"quoting": True}, r"a\.tsv:2: .*quoting.*\b3\b"),
    ('a\tb\n"a"x\tb\n', {"quoting": True}, r"a\.tsv:2: .*quoting"),
    ("a\tb\n", {"columns": {1: "a_text", 2: "label"}}, r"demo: .*bitext.*\['a_text', 'label'\]"),
    ("a\tb\n", {"columns": {2: "b_text"}}, r"demo: .*bitext.*\['b_text'\]"),
    ("a\tb\n", {"columns": {1: "a_text", 2: "a_text"}}, r"demo: .*'a_text'.*\['a_text', 'a_text'\]"),
])  # fmt: skip
def test_tsv_mistakes(tmp_path, rows, text, options, message):
    with pytest.raises(InputError, match=message):
        rows("tsv", write(tmp_path, a_DOT_tsv=text), ["de", "en"], **({"columns": {1: "a_text", 2: "b_text"}} | options))


HEADER = "id\tpremise\tentailed\tcontradicting\n"


def test_nli_triplets(tmp_path, rows):
    files = write(
        tmp_path, nli_en_DOT_tsv=HEADER + "n1\tp1\te1\tc1\nn2\tp2\te2\tc2\n", nli_de_DOT_tsv=HEADER + "n2\tP2\tE2\tC2\nn1\tP1\tE1\tC1\n"
    )
    found = rows("nli_tsv", files, ["de", "en"])
    assert [(row["id"], row["a_text"], row["b_text"], row["label"], row["group"]) for row in found[:4]] == [
        ("demo:nli_de.tsv:2:entailed", "P2", "E2", [0.0], "n2"),
        ("demo:nli_de.tsv:2:contradicting", "P2", "C2", [2.0], "n2"),
        ("demo:nli_de.tsv:3:entailed", "P1", "E1", [0.0], "n1"),
        ("demo:nli_de.tsv:3:contradicting", "P1", "C1", [2.0], "n1"),
    ]
    aligned = {}
    for row in found:
        aligned.setdefault((row["group"], row["label"][0]), {})[row["a_lang"]] = row["b_text"]
    assert aligned[("n1", 2.0)] == {"de": "C1", "en": "c1"}
    assert len({row["id"] for row in found}) == 8


@pytest.mark.parametrize(("german", "message"), [
    ("n1\tP\tE\tC\n", r"nli_de\.tsv: .*'n2'.*nli_en\.tsv.*\b3\b"),
    ("n1\tP\tE\tC\nn2\tP\tE\tC\nn3\tP\tE\tC\n", r"nli_en\.tsv: .*'n3'.*nli_de\.tsv.*\b4\b"),
    ("n1\tP\tE\tC\nn1\tP\tE\tC\n", r"nli_de\.tsv:3: .*'n1'.* 2$"),
    ("n1\tP\tE\n", r"nli_de\.tsv:2: .*columns.* 3, .* 4$"),
    ("n1\tP\t \tC\n", r"nli_de\.tsv:2: .*entailed.*empty"),
])  # fmt: skip
def test_nli_mistakes(tmp_path, rows, german, message):
    files = write(tmp_path, nli_en_DOT_tsv=HEADER + "n1\tp\te\tc\nn2\tp\te\tc\n", nli_de_DOT_tsv=HEADER + german)
    with pytest.raises(InputError, match=message):
        rows("nli_tsv", files, ["en", "de"])
    with pytest.raises(InputError, match=r"demo: .*nli_fr\.tsv.*\['de', 'en'\]"):
        rows("nli_tsv", files, ["en", "fr"])
    files["nli_en.tsv"].write_text("id\tpremise\n")
    with pytest.raises(InputError, match=r"nli_en\.tsv:1: .*header.*'entailed', 'contradicting'"):
        rows("nli_tsv", files, ["en"])


VERSES = [
    ("k", 1, 1, 1, "In the beginning  God\tcreated. "),
    ("k", 1, 1, 2, "Second."),
    ("2", 1, 1, 1, "At the first."),
    ("k", 66, 1, 1, "Last book."),
    ("c", 1, 1, 1, "起初， 神 创造天地。 "),
    ("c", 1, 1, 2, "（本节在《马索拉抄本》为32:1）"),
    ("x", 1, 1, 1, "unread"),
]


@pytest.fixture
def bible(tmp_path):
    database = tmp_path / "bible.db"
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE bible (bbName TEXT, bNumber INTEGER, cNumber INTEGER, vNumber INTEGER, vText TEXT)")
    connection.executemany("INSERT INTO bible VALUES (?, ?, ?, ?, ?)", VERSES)
    connection.commit()
    connection.close()
    return database


VERSIONS = {"en": ["k", "2"], "zh": ["c"]}


@pytest.mark.parametrize("packed", [False, True])
def test_bible(tmp_path, rows, bible, packed):
    path = bible
    if packed:
        path = tmp_path / "toy-1-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.write(bible, "toy/data/bible.db")
    found = rows("bible_sqlite", {path.name: path}, ["zh", "en"], versions=VERSIONS, member="toy/data/bible.db")
    assert [(row["id"], row["group"], row["lang"], row["text"], row["version"]) for row in found] == [
        ("demo:bible.db:2.1.1.1", "1.1.1", "en", "At the first.", "2"),
        ("demo:bible.db:c.1.1.1", "1.1.1", "zh", "起初，神创造天地。", "c"),
        ("demo:bible.db:k.1.1.1", "1.1.1", "en", "In the beginning God created.", "k"),
        ("demo:bible.db:k.1.1.2", "1.1.2", "en", "Second.", "k"),
        ("demo:bible.db:k.66.1.1", "66.1.1", "en", "Last book.", "k"),
    ]
    assert [
        row["group"]
        for row in rows("bible_sqlite", {path.name: path}, ["en"], versions={"en": ["k"]}, member="toy/data/bible.db", books=[66])
    ] == ["66.1.1"]


def test_bible_mistakes(tmp_path, rows, bible):
    with pytest.raises(InputError, match=r"bible\.db: .*'q'.*\['2', 'c', 'k', 'x'\]"):
        rows("bible_sqlite", {"bible.db": bible}, ["en"], versions={"en": ["q"]})
    with pytest.raises(InputError, match=r"demo: `versions`.*'de'.*\['en', 'zh'\]"):
        rows("bible_sqlite", {"bible.db": bible}, ["de"], versions=VERSIONS)
    bible.write_bytes(b"no database, but a page that says sign in" * 100)
    with pytest.raises(InputError, match=r"bible\.db: .*Bible"):
        rows("bible_sqlite", {"bible.db": bible}, ["en"], versions=VERSIONS)
    empty = tmp_path / "empty.db"
    sqlite3.connect(empty).execute("CREATE TABLE other (a)").connection.close()
    with pytest.raises(InputError, match=r"empty\.db: .*such table: bible"):
        rows("bible_sqlite", {"empty.db": empty}, ["en"], versions=VERSIONS)
    with pytest.raises(InputError, match=r"gone\.db: .*Bible"):
        rows("bible_sqlite", {"gone.db": tmp_path / "gone.db"}, ["en"], versions=VERSIONS)
    assert not (tmp_path / "gone.db").exists()


@pytest.mark.parametrize(("text", "lang", "expected"), [
    ("神说： “要有光！ ”就有了光。 ", "zh", "神说：“要有光！”就有了光。"),
    ("他买了 3 000 book two 本书", "zh", "他买了3 000 book two本书"),
    ("아담 셋", "ko", "아담 셋"),
    ("आदि में सृष्टि की। (इब्रा. 1:10, इब्रा. 11:3)", "hi", "आदि में सृष्टि की।"),
    ("परमेश्\u200dवर ने देखा* कि अच्छा है।", "hi", "परमेश्\u200dवर ने देखा कि अच्छा है।"),
    ("(13:4) И послал их Моисей", "ru", "И послал их Моисей"),
    ("(22.45) E disse", "pt", "E disse"),
    ("était [le soir] «dit» [Ésaïe 7:14].", "fr", "était le soir «dit»."),
    ("(un total de 10.000 cautivos) fue", "es", "(un total de 10.000 cautivos) fue"),
    ("a\u00adma\u200eble\u00a0 fin\r\n\x7f", "es", "amable fin"),
    ("un [Osée 1:2] deux (ou 2:3) trois", "fr", "un deux trois"),
    ("[]", "en", ""),
    ("* * * 12", "en", ""),
])  # fmt: skip
def test_what_is_done_to_a_verse(text, lang, expected):
    assert clean(text, lang) == expected


def test_schemas_hold(tmp_path, bible):
    files = write(tmp_path, a_DOT_de="x\n", a_DOT_en="y\n", nli_de_DOT_tsv=HEADER + "1\ta\tb\tc\n", de__en_DOT_txt="a b\n")
    for reader, kind, name, langs, options in [
        ("moses", "bitext", None, ["de", "en"], {}),
        ("nli_tsv", "labelled", "nli_de.tsv", ["de"], {}),
        ("dictionary", "bitext", "de-en.txt", ["de", "en"], {}),
        ("bible_sqlite", "multiway", None, ["en"], {"versions": VERSIONS}),
    ]:
        chosen = {"bible.db": bible} if reader == "bible_sqlite" else files if name is None else {name: files[name]}
        table = pa.concat_tables(READERS.get(reader)(chosen, "demo", langs, **options))
        assert table.schema == SCHEMAS[kind]
        assert table["id"].null_count == 0
        assert len(set(table["id"].to_pylist())) == table.num_rows
