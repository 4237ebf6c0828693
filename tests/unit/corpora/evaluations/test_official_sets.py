"""Official evaluation formats, on small files written for the test and on the mirror's real ones."""

from __future__ import annotations

import io
import tarfile
from collections import Counter

import pytest
from gold_pairs import pairs_of

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation
from crosslign.errors import InputError


def write(folder, **files):
    paths = {}
    for key, text in files.items():
        name = key.replace("__", "-").replace("_DOT_", ".")
        paths[name] = folder / name
        paths[name].write_text(text, encoding="utf-8")
    return paths


def read(kind, files, langs=(), limit=None, **options) -> Evaluation:
    return EVALUATIONS.get(kind)(Given(files, {}, "demo", list(langs), limit, 0), **options)


def test_every_evaluation_has_a_module_of_its_name():
    for name in EVALUATIONS.names():
        assert EVALUATIONS.get(name).__module__ == EVALUATIONS.module(name)


@pytest.fixture
def tatoeba(tmp_path):
    return write(
        tmp_path,
        tatoeba_DOT_deu__eng_DOT_deu="eins\nzwei\ndrei\n",
        tatoeba_DOT_deu__eng_DOT_eng="one\ntwo\nthree\n",
        tatoeba_DOT_cmn__eng_DOT_cmn="一\n二\n",
        tatoeba_DOT_cmn__eng_DOT_eng="one\ntwo\n",
        README_DOT_md="# not a language\n",
    )


def test_tatoeba(tatoeba):
    evaluation = read("tatoeba", tatoeba)
    assert pairs_of(evaluation, "deu") == [
        ("deu", "eins", "eng", "one", 1),
        ("deu", "zwei", "eng", "two", 1),
        ("deu", "drei", "eng", "three", 1),
    ]
    assert pairs_of(evaluation, "cmn") == [("cmn", "一", "eng", "one", 1), ("cmn", "二", "eng", "two", 1)]
    assert evaluation.texts.num_rows == 8
    assert [row["item_id"] for row in evaluation.items.to_pylist() if row["subset"] == "cmn"] == ["cmn-1", "cmn-2", "eng-1", "eng-2"]


def test_tatoeba_languages_and_first_lines(tatoeba):
    for langs in (["de", "en"], ["deu", "eng"], ["deu"]):
        assert read("tatoeba", tatoeba, langs).items["subset"].unique().to_pylist() == ["deu"]
    assert read("tatoeba", tatoeba, first=2).gold.num_rows == 4
    assert read("tatoeba", tatoeba, first=2, limit=1).gold.num_rows == 2
    with pytest.raises(InputError, match=r"demo: .* fr; .*cmn, deu"):
        read("tatoeba", tatoeba, ["de", "fr", "en"])


def test_tatoeba_mistakes(tatoeba):
    tatoeba["tatoeba.deu-eng.eng"].write_text("one\ntwo\n")
    with pytest.raises(InputError, match=r"eng:3: .*tatoeba\.deu-eng\.deu.*3, tatoeba\.deu-eng\.eng.*\b2\b"):
        read("tatoeba", tatoeba)
    tatoeba["tatoeba.deu-eng.eng"].write_text("one\n\nthree\n")
    with pytest.raises(InputError, match=r"tatoeba\.deu-eng\.eng:2: .*empty"):
        read("tatoeba", tatoeba)
    del tatoeba["tatoeba.deu-eng.eng"]
    with pytest.raises(InputError, match=r"demo: .*tatoeba\.deu-eng\.eng.*missing"):
        read("tatoeba", tatoeba)
    with pytest.raises(InputError, match=r"demo: .*Tatoeba.*none"):
        read("tatoeba", {})


def test_all_112_languages_of_the_mirror(mirror):
    files = {path.name: path for path in (mirror / "tatoeba-v1").iterdir()}
    evaluation = read("tatoeba", files)
    sizes = Counter(row["subset"] for row in evaluation.gold.to_pylist())
    assert len(sizes) == 112
    stated = {
        "jav": 205,
        "mal": 687,
        "tam": 307,
        "tel": 234,
        "kat": 746,
        "tha": 548,
        "swh": 390,
        "kaz": 575,
        "deu": 1000,
        "cmn": 1000,
    }  # of the publisher's 112 languages
    assert {code: sizes[code] for code in stated} == stated
    assert max(sizes.values()) == 1000
    assert evaluation.items.num_rows == 2 * evaluation.gold.num_rows
    texts = evaluation.texts.to_pylist()
    assert len({(row["lang"], row["text"]) for row in texts}) == len(texts) < evaluation.items.num_rows
    assert set(Counter(row["subset"] for row in read("tatoeba", files, first=100).gold.to_pylist()).values()) == {100}


def test_sts17_of_the_mirror(mirror):
    files = {path.relative_to(mirror / "sts17").as_posix(): path for path in (mirror / "sts17").rglob("*.txt")}
    evaluation = read("sts17", files)
    assert Counter(row["subset"] for row in evaluation.gold.to_pylist()) == {"ar-en": 250, "es-en": 250, "es-es": 250, "en-en": 250}
    arabic = pairs_of(evaluation, "ar-en")
    assert arabic[0] == ("en", "two men are crying", "ar", "رجلان يضحكان.", 1.4)
    assert all(any("\u0600" <= character <= "\u06ff" for character in row[3]) for row in arabic)
    assert not any("\u0600" <= character <= "\u06ff" for row in arabic for character in row[1])
    assert pairs_of(evaluation, "es-en")[1] == ("es", "Dos niños están bailando", "en", "Kids are dancing.", 4.4)
    assert read("sts17", files, ["es", "en"]).items["subset"].unique().to_pylist() == ["en-en", "es-en", "es-es"]
    assert read("sts17", files, limit=10).gold.num_rows == 40


def sts17_files(folder, track, inputs, grades):
    return write(folder, **{f"STS_DOT_input_DOT_{track}_DOT_txt": inputs, f"STS_DOT_gs_DOT_{track}_DOT_txt": grades})


def test_sts17_track_6_is_graded_in_half(tmp_path):
    files = sts17_files(tmp_path, "track6_DOT_tr__en", "one\tbir\ntwo\tiki\n", "5.0\n")
    assert pairs_of(read("sts17", files), "tr-en") == [("en", "one", "tr", "bir", 5)]


def test_sts17_track_4b_stands_by_itself_and_ungraded_pairs_go(tmp_path):
    files = sts17_files(tmp_path, "track4a_DOT_es__en", "uno\tone\n", "3\n") | sts17_files(
        tmp_path, "track4b_DOT_es__en", "dos\ttwo\ntres\tthree\n", "\n1\n"
    )
    evaluation = read("sts17", files)
    assert pairs_of(evaluation, "es-en") == [("es", "uno", "en", "one", 3)]
    assert pairs_of(evaluation, "es-en-4b") == [("es", "tres", "en", "three", 1)]


@pytest.mark.parametrize(("inputs", "grades", "message"), [
    ("a\tb\nc\td\n", "1\n", r"gs\.track5\.en-en\.txt:2: .*\b2\b.*\b1\b grade$"),
    ("a\tb\n", "1\n2\n", r"input\.track5\.en-en\.txt:2: .*\b1\b.*\b2\b"),
    ("a\tb\nc\n", "1\n2\n", r"track5\.en-en\.txt:2: .*sentences"),
    ("a\tb\n", "six\n", r"gs\.track5\.en-en\.txt:1: .*grade.*'six'"),
    ("a\tb\n", "5.5\n", r"gs\.track5\.en-en\.txt:1: .*grade"),
    ("a\tb\n", "nan\n", r"gs\.track5\.en-en\.txt:1: .*grade"),
    ("a\t \n", "1\n", r"input\.track5\.en-en\.txt:1: .*empty"),
])  # fmt: skip
def test_sts17_mistakes(tmp_path, inputs, grades, message):
    with pytest.raises(InputError, match=message):
        read("sts17", sts17_files(tmp_path, "track5_DOT_en__en", inputs, grades))


def test_sts17_files_that_are_missing(tmp_path):
    files = sts17_files(tmp_path, "track5_DOT_en__en", "a\tb\n", "1\n")
    with pytest.raises(InputError, match=r"demo: .*STS 2017.*STS\.gs\.track5\.en-en\.txt"):
        read("sts17", files, ["ar", "en"][:1])
    del files["STS.gs.track5.en-en.txt"]
    with pytest.raises(InputError, match=r"demo: .*en-en.*only"):
        read("sts17", files)


STS = "id\tscore\tfirst\tsecond\n"


@pytest.fixture
def graded(tmp_path):
    return write(
        tmp_path,
        sts_en_DOT_tsv=STS + "s1\t5\tOne.\tOne!\ns2\t1.5\tTwo.\tThree.\ns3\t0\tFour.\tTwo.\n",
        sts_de_DOT_tsv=STS + "s1\t5\tEins.\tEins!\ns2\t1.5\tZwei.\tDrei.\ns3\t0\tVier.\tZwei.\n",
    )


def test_sts_of_our_own(graded):
    evaluation = read("sts_tsv", graded, ["en", "de"], pairs=["en-de", "de-en"])
    assert evaluation.items["subset"].unique().to_pylist() == ["en-en", "de-de", "en-de", "de-en"]
    assert read("sts_tsv", graded, ["en", "de"], pairs=["de-de", "en-de", "de-en"]).gold.equals(evaluation.gold)
    assert pairs_of(evaluation, "de-de") == [
        ("de", "Eins.", "de", "Eins!", 5),
        ("de", "Zwei.", "de", "Drei.", 1.5),
        ("de", "Vier.", "de", "Zwei.", 0),
    ]
    assert pairs_of(evaluation, "en-de")[1] == ("en", "Two.", "de", "Drei.", 1.5)
    assert pairs_of(evaluation, "de-en")[1] == ("de", "Zwei.", "en", "Three.", 1.5)
    assert evaluation.texts.num_rows == 10
    assert set(evaluation.items["role"].to_pylist()) == {"first", "second"}
    assert [pair[4] for pair in pairs_of(read("sts_tsv", graded, ["en"], limit=2), "en-en")] == [5, 1.5]


def test_sts_of_our_own_mistakes(graded):
    with pytest.raises(InputError, match=r"demo: .*'en-fr'.*en, de"):
        read("sts_tsv", graded, ["en", "de"], pairs=["en-fr"])
    body = graded["sts_de.tsv"].read_text()
    graded["sts_de.tsv"].write_text(body.replace("1.5", "2"))
    with pytest.raises(InputError, match=r"sts_de\.tsv:3: .*'s2'.*sts_en\.tsv"):
        read("sts_tsv", graded, ["en", "de"])
    graded["sts_de.tsv"].write_text(body.replace("1.5", "6"))
    with pytest.raises(InputError, match=r"sts_de\.tsv:3: .*grade.*'6'"):
        read("sts_tsv", graded, ["de"])


def test_sts_retrieval_leaves_out_paraphrases_and_repetitions(graded):
    evaluation = read("sts_retrieval", graded, ["de", "en"])
    found = pairs_of(evaluation, "de")
    assert sorted(found) == [
        ("de", *pair, 1) for pair in (("Drei.", "en", "Three."), ("Eins.", "en", "One."), ("Vier.", "en", "Four."), ("Zwei.", "en", "Two."))
    ]
    assert read("sts_retrieval", graded).gold.equals(evaluation.gold)
    assert read("sts_retrieval", graded, ["de"], limit=2).gold.num_rows == 2
    assert read("sts_retrieval", graded, ["de"], paraphrase=1.0).gold.num_rows == 3


BUCC = {
    "de-en.sample.de": "de-1\tEins.\nde-2\tZwei.\nde-3\tDrei.\nde-4\tVier.\nde-5\tFünf.\n",
    "de-en.sample.en": "en-1\tThree.\nen-2\tOther.\nen-3\tOne.\nen-4\tMore.\n",
    "de-en.sample.gold": "de-1\ten-3\nde-3\ten-1\n",
}


def bucc_archive(path, members):
    with tarfile.open(path, "w:bz2") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(f"./bucc2018/de-en/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return {path.name: path}


def bucc_files(folder, members):
    for name, text in members.items():
        (folder / name).write_text(text, encoding="utf-8")
    return {name: folder / name for name in members}


@pytest.mark.parametrize("packed", [False, True])
def test_bucc(tmp_path, packed):
    files = bucc_archive(tmp_path / "bucc2018-de-en.sample-gold.tar.bz2", BUCC) if packed else bucc_files(tmp_path, BUCC)
    if packed:
        files |= {"bucc2018-de-en.training-gold.tar.bz2": tmp_path / "never opened"}
    evaluation = read("bucc", files, ["de", "en"], split="sample")
    assert pairs_of(evaluation, "de-en") == [("de", "Eins.", "en", "One.", 1), ("de", "Drei.", "en", "Three.", 1)]
    assert [row["item_id"] for row in evaluation.items.to_pylist()] == [
        "de-1",
        "de-2",
        "de-3",
        "de-4",
        "de-5",
        "en-1",
        "en-2",
        "en-3",
        "en-4",
    ]
    assert [row["role"] for row in evaluation.items.to_pylist()] == ["source"] * 5 + ["target"] * 4
    assert evaluation.gold["split"].to_pylist() == ["sample"] * 2


@pytest.mark.parametrize(("split", "called"), [("sample", "dev"), ("training", "test")])
def test_bucc_under_the_names_of_xtremes_script(tmp_path, split, called):
    official = read("bucc", bucc_files(tmp_path, {name.replace("sample", split): text for name, text in BUCC.items()}), ["de"], split=split)
    theirs = bucc_files(tmp_path, {name.replace("sample", called): text for name, text in BUCC.items()})
    found = read("bucc", theirs, ["de"], split=split)
    assert found.items.equals(official.items)
    assert found.gold.equals(official.gold)


def test_bucc_limit_shrinks_gold_and_the_rest_alike(tmp_path):
    evaluation = read("bucc", bucc_files(tmp_path, BUCC), ["de"], limit=1, split="sample")
    assert [row["item_id"] for row in evaluation.items.to_pylist()] == ["de-1", "de-2", "en-2", "en-3"]
    assert evaluation.gold.num_rows == 1


def test_the_test_split_of_bucc_has_no_gold(tmp_path):
    files = bucc_files(tmp_path, {name.replace("sample", "test"): text for name, text in BUCC.items() if not name.endswith("gold")})
    evaluation = read("bucc", files, ["de"], split="test")
    assert (evaluation.items.num_rows, evaluation.gold.num_rows) == (9, 0)


@pytest.mark.parametrize(("name", "text", "message"), [
    ("de-en.sample.de", "de-1 Eins.\n", r"de-en\.sample\.de:1: .*tab"),
    ("de-en.sample.de", BUCC["de-en.sample.de"] + "de-1\tx\n", r"de-en\.sample\.de:6: .*'de-1'"),
    ("de-en.sample.de", "de-1\t\n", r"de-en\.sample\.de:1: .*empty"),
    ("de-en.sample.gold", "de-1\ten-9\n", r"de-en\.sample\.gold:1: .*gold.*'de-1\\ten-9'"),
    ("de-en.sample.gold", "de-1\n", r"de-en\.sample\.gold:1: .*gold"),
    ("de-en.sample.gold", BUCC["de-en.sample.gold"] + "de-1\ten-3\n", r"de-en\.sample\.gold:3: .*de-1 en-3"),
])  # fmt: skip
def test_bucc_mistakes(tmp_path, name, text, message):
    with pytest.raises(InputError, match=message):
        read("bucc", bucc_files(tmp_path, BUCC | {name: text}), ["de"], split="sample")


def test_a_mistake_in_an_archive_of_bucc_names_it_the_member_and_the_line(tmp_path):
    archive = tmp_path / "bucc2018-de-en.sample-gold.tar.bz2"
    files = bucc_archive(archive, BUCC | {"de-en.sample.en": "en-1\tThree.\nen-2\n"})
    with pytest.raises(InputError, match=r"de-en\.sample\.en:2: .*tab") as raised:
        read("bucc", files, ["de"], split="sample")
    assert raised.value.where == f"{archive}:bucc2018/de-en/de-en.sample.en:2"


def test_bucc_files_that_are_missing(tmp_path):
    with pytest.raises(InputError, match=r"demo: .*fr-en\.sample\.fr.*missing"):
        read("bucc", bucc_files(tmp_path, BUCC), ["fr"], split="sample")
    with pytest.raises(InputError, match=r"demo: .*'dev'.*sample, training, test"):
        read("bucc", {}, ["de"], split="dev")


def test_sets_survive_writing(tmp_path, graded):
    evaluation = read("sts_tsv", graded, ["en"])
    paths = {part: tmp_path / f"{part}.parquet" for part in ("texts", "items", "gold")}
    evaluation.write(paths)
    again = Evaluation.read(paths)
    assert again.texts.equals(evaluation.texts)
    assert again.items.equals(evaluation.items)
    assert again.gold.equals(evaluation.gold)
