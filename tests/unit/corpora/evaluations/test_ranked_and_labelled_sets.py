"""Sets of questions, mentions, choices and classes in their official formats."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from test_graded_sets import corpus, read, write

from crosslign.corpora.sampling import draws
from crosslign.errors import InputError
from crosslign.files.rows import pieces


def texts_of(evaluation, role=None):
    """(subset, item id, text, second text, label) of each item."""
    texts = {row["text_id"]: row for row in evaluation.texts.to_pylist()}
    rows = [row for row in evaluation.items.to_pylist() if role in (None, row["role"])]
    return [(r["subset"], r["item_id"], texts[r["text_id"]]["text"], texts[r["text_id"]]["pair_text"], r["label"]) for r in rows]


def squad(context, breaks, asked):
    qas = [{"id": i, "question": q, "answers": [{"answer_start": start, "text": ""}]} for i, q, start in asked]
    return json.dumps({"data": [{"paragraphs": [{"context": context, "sentence_breaks": breaks, "qas": qas}]}]})


@pytest.fixture
def lareqa(tmp_path):
    return write(
        tmp_path,
        {
            "en.json": squad("It rained. \nWe slept.", [[0, 10], [12, 21]], [("q1", "Did it rain?", 3), ("q2", "Who slept?", 12)]),
            "de.json": squad("Es regnete. Wir schliefen.", [[0, 11], [12, 26]], [("q1", "Regnete es?", 3), ("q2", "Wer schlief?", 12)]),
        },
    )


def test_candidates_are_a_sentence_and_its_paragraph(lareqa):
    evaluation = read("xquad_r", lareqa, part="candidates")
    assert texts_of(evaluation) == [
        ("all", "de:0:0", "Es regnete.Es regnete. Wir schliefen.", None, None),
        ("all", "de:0:1", "Wir schliefen.Es regnete. Wir schliefen.", None, None),
        ("all", "en:0:0", "It rained.It rained. We slept.", None, None),
        ("all", "en:0:1", "We slept.It rained. We slept.", None, None),
    ]
    assert evaluation.gold.num_rows == 0


def test_a_question_is_answered_in_every_language(lareqa):
    evaluation = read("xquad_r", lareqa, part="questions")
    assert [row[:3] for row in texts_of(evaluation)] == [
        ("de", "q1", "Regnete es?"),
        ("de", "q2", "Wer schlief?"),
        ("en", "q1", "Did it rain?"),
        ("en", "q2", "Who slept?"),
    ]
    links = [(row["subset"], row["left"], row["right"]) for row in evaluation.gold.to_pylist()]
    assert links[:4] == [("de", "q1", "de:0:0"), ("de", "q1", "en:0:0"), ("de", "q2", "de:0:1"), ("de", "q2", "en:0:1")]
    assert len(links) == 8
    assert read("xquad_r", lareqa, part="questions", limit=1).gold.num_rows == 4


def test_sentences_that_read_the_same_answer_alike_and_an_answer_in_none_leaves_its_question_out(tmp_path, caplog):
    asked = [("q1", "Did it?", 24), ("q2", "Where?", 18)]
    files = write(
        tmp_path,
        {
            # XTREME's utils_lareqa.load_data (838c13b) links every sentence of the paragraph whose text is the answer's, and leaves out a
            # question whose answer begins in no sentence; the other languages still ask it.
            "en.json": squad("Yes. It rained in Rome. Yes.", [[0, 4], [5, 23], [24, 28]], asked),
            "de.json": squad("Ja. Es regnete in Rom. Ja!", [[0, 3], [4, 17], [23, 26]], [("q1", "Tat es das?", 23), ("q2", "Wo?", 18)]),
        },
    )
    evaluation = read("xquad_r", files, part="questions")
    links = [(row["subset"], row["left"], row["right"]) for row in evaluation.gold.to_pylist()]
    assert sorted(links) == [
        ("de", "q1", "de:0:2"),
        ("de", "q1", "en:0:0"),
        ("de", "q1", "en:0:2"),
        ("en", "q1", "de:0:2"),
        ("en", "q1", "en:0:0"),
        ("en", "q1", "en:0:2"),
        ("en", "q2", "en:0:1"),
    ]
    assert [row[:2] for row in texts_of(evaluation)] == [("de", "q1"), ("en", "q1"), ("en", "q2")]
    assert "1 questions in de left out: their answers begin in no sentence" in caplog.text


def test_lareqa_mistakes(lareqa):
    with pytest.raises(InputError, match=r"demo: .* fr; .* de, en"):
        read("xquad_r", lareqa, ["en", "fr"], part="questions")
    lareqa["de.json"].write_text(squad("Es regnete.", [[0, 11]], [("q1", "Regnete es?", 3)]))
    for langs in (["de", "en"], ["en", "de"]):
        with pytest.raises(InputError, match=r"language de: .*'q2'"):
            read("xquad_r", lareqa, langs, part="questions")
    lareqa["de.json"].write_text(squad("Es regnete.", [[0, 5]], [("q1", "a", 0), ("q1", "b", 0)]))
    with pytest.raises(InputError, match=r"de\.json.*'q1'.*twice"):
        read("xquad_r", lareqa, part="questions")
    lareqa["de.json"].write_text("[]")
    with pytest.raises(InputError, match=r"de\.json: .*'data'"):
        read("xquad_r", lareqa, part="questions")


def test_lareqa_of_the_mirror(mirror):
    files = {path.name: path for path in (mirror / "lareqa-xquad-r").glob("*.json")}
    questions, candidates = (read("xquad_r", files, ["de", "en", "es"], part=part) for part in ("questions", "candidates"))
    assert questions.items.num_rows == 3 * 1190
    assert questions.gold.num_rows == 9 * 1190
    ids = set(candidates.items["item_id"].to_pylist())
    assert set(questions.gold["right"].to_pylist()) <= ids
    assert 852 <= len(ids) / 3 <= 1276  # candidates of a language


XCOPA = {"premise": "Es regnete.", "choice1": "Sie wurde nass.", "choice2": "Sie schlief.", "question": "effect", "label": 0}


def test_choices_of_xcopa(tmp_path):
    second = {**XCOPA, "question": "cause", "label": 1}
    files = write(tmp_path, {"data/de/test.de.jsonl": f"{json.dumps(XCOPA)}\n{json.dumps(second)}\n", "data/de/val.de.jsonl": "{}\n"})
    assert texts_of(read("xcopa", files)) == [
        ("de", "1:1", "Es regnete. What was the effect?", "Sie wurde nass.", [1]),
        ("de", "1:2", "Es regnete. What was the effect?", "Sie schlief.", [0]),
        ("de", "2:1", "Es regnete. What was the cause?", "Sie wurde nass.", [0]),
        ("de", "2:2", "Es regnete. What was the cause?", "Sie schlief.", [1]),
    ]
    assert read("xcopa", files).items["group"].to_pylist() == ["1", "1", "2", "2"]
    assert texts_of(read("xcopa", files, questions={"effect": "Und dann?"}))[0][2] == "Es regnete. Und dann?"


def test_copa_and_social_iqa_are_english(tmp_path):
    copa = write(tmp_path, {"COPA/val.jsonl": json.dumps(XCOPA) + "\n"})
    assert {row[0] for row in texts_of(read("xcopa", copa, split="val"))} == {"en"}
    asked = {"context": "Kai won.", "question": "How does Kai feel?", "answerA": "sad", "answerB": "glad", "answerC": "tired"}
    files = write(tmp_path, {"dev.jsonl": json.dumps(asked) + "\n", "dev-labels.lst": "2\n"})
    rows = texts_of(read("xcopa", files, split="dev"))
    assert [row[3:] for row in rows] == [
        ("sad", [0]),
        ("glad", [1]),
        ("tired", [0]),
    ]
    assert set(read("xcopa", files, split="dev").items["cluster"].to_pylist()) == {"Kai won."}
    assert "cluster" not in read("xcopa", copa, split="val").items.column_names
    files["dev-labels.lst"].write_text("9" * 5000)
    with pytest.raises(InputError, match=r"dev\.jsonl:1: .*label.* 3 "):
        read("xcopa", files, split="dev")
    files["dev-labels.lst"].write_text("2\n1\n")
    with pytest.raises(InputError, match=r"dev\.jsonl:2: .*\b1\b.*\b2\b"):
        read("xcopa", files, split="dev")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": 2}, r"test\.de\.jsonl:1: .*label.* 2 .* 2 "),
        ({"question": "why"}, r"test\.de\.jsonl:1: .*'why'"),
        ({"choice2": " "}, r"test\.de\.jsonl:1: .*choice"),
        ({"premise": ""}, r"test\.de\.jsonl:1: .*premise"),
        ({"choice2": "wet \ud800"}, r"demo: .*'wet \\ud800'"),
    ],
)
def test_xcopa_mistakes(tmp_path, change, message):
    files = write(tmp_path, {"test.de.jsonl": json.dumps({**XCOPA, **change}) + "\n"})
    with pytest.raises(InputError, match=message):
        read("xcopa", files)
    with pytest.raises(InputError, match=r"demo: .* fr; .* de$"):
        read("xcopa", files, ["fr"])


def test_xcopa_of_the_mirror(mirror):
    files = {path.relative_to(mirror / "xcopa").as_posix(): path for path in (mirror / "xcopa").rglob("*.jsonl")}
    evaluation = read("xcopa", files, split="val")
    assert evaluation.items.num_rows == 11 * 2 * 100
    assert sum(label[0] for label in evaluation.items["label"].to_pylist()) == 11 * 100


LAW = {"celex_id": "32006R1", "text": {"de": "Gesetz", "en": "Law", "fr": ""}, "eurovoc_concepts": {"level_1": ["100149", "100142"]}}


def test_laws_and_their_classes(tmp_path):
    files = write(tmp_path, {"multi_eurlex/test.jsonl": json.dumps(LAW) + "\n"})
    assert texts_of(read("multi_eurlex", files)) == [
        ("de", "de:32006R1", "Gesetz", None, [0, 7]),
        ("en", "en:32006R1", "Law", None, [0, 7]),
    ]
    with pytest.raises(InputError, match=r"demo: .*law.*'fr'"):
        read("multi_eurlex", files, ["fr"])
    files["multi_eurlex/test.jsonl"].write_text(json.dumps({**LAW, "eurovoc_concepts": {"level_1": ["5"]}}) + "\n")
    with pytest.raises(InputError, match=r"test\.jsonl:1: '5'.*100142.*100162"):
        read("multi_eurlex", files)
    with pytest.raises(InputError, match=r"demo: .*dev\.jsonl.*missing"):
        read("multi_eurlex", files, split="dev")


def flores(folder, **texts):
    return write(folder, {f"{lang}.{part}": text for lang, parts in texts.items() for part, text in parts.items()})


def test_flores(tmp_path):
    files = flores(tmp_path, eng_Latn={"dev": "one\n", "devtest": "two\nthree\n"}, deu_Latn={"dev": "eins\n", "devtest": "zwei\ndrei\n"})
    evaluation = read("flores200", files)
    assert [row[:3] for row in texts_of(evaluation, "source")] == [
        ("deu_Latn", "deu_Latn-dev:1", "eins"),
        ("deu_Latn", "deu_Latn-devtest:1", "zwei"),
        ("deu_Latn", "deu_Latn-devtest:2", "drei"),
    ]
    assert [table["split"].to_pylist() for table in (evaluation.items, evaluation.gold)] == [
        ["dev", "devtest", "devtest", "dev", "devtest", "devtest"],
        ["dev", "devtest", "devtest"],
    ]
    assert read("flores200", files, parts=["devtest"]).gold.num_rows == 2
    files["deu_Latn.devtest"].write_text("zwei\n")
    with pytest.raises(InputError, match=r"deu_Latn\.devtest:2: .*deu_Latn.*\b2\b.*eng_Latn \b3\b"):
        read("flores200", files)
    with pytest.raises(InputError, match=r"demo: .*fra_Latn\.dev; .*deu_Latn, eng_Latn"):
        read("flores200", files, ["fra_Latn"])


def test_altered_sentences_of_flores_are_targets_without_a_translation(tmp_path):
    files = flores(
        tmp_path, eng_Latn={"devtest": "two cats\nthree\n"}, deu_Latn={"devtest": "zwei\ndrei\n"}, fra_Latn={"devtest": "deux\ntrois\n"}
    )
    altered = corpus("text_lines", write(tmp_path, {"eng_Latn_augmented.devtest": "no cats\nthree\n"}), ["en"])
    evaluation = read("flores200", files, corpora={"altered": altered}, parts=["devtest"])
    targets = [row for row in texts_of(evaluation, "target") if row[0] == "fra_Latn"]
    assert [row[2] for row in targets] == ["two cats", "three", "no cats", "three"]
    assert evaluation.gold.num_rows == 4
    assert not set(evaluation.gold["right"].to_pylist()) & {row[1] for row in targets[2:]}
    texts = zip(evaluation.texts["lang"].to_pylist(), evaluation.texts["text"].to_pylist(), strict=True)
    assert [text for lang, text in texts if lang == "eng_Latn"] == ["two cats", "three", "no cats"]  # an equal string is one text


def test_translations_stand_in_the_same_order_in_every_language(tmp_path, lareqa):
    """Bootstrap draws are shared by position: position i is to be the same item in each language."""
    parts = {lang: {"devtest": "".join(f"{lang} {number}\n" for number in range(9))} for lang in ("eng_Latn", "deu_Latn", "fra_Latn")}
    choices = {f"test.{lang}.jsonl": "".join(json.dumps({**XCOPA, "label": i % 2}) + "\n" for i in range(9)) for lang in ("de", "sw")}
    rows = [{"id": f"xnli:{i}", "a_lang": lang, "a_text": f"{lang} {i}", "label": [0.0]} for i in range(9) for lang in ("de", "en")]
    made = (
        read("flores200", flores(tmp_path / "f", **parts), parts=["devtest"], limit=4),
        read("xcopa", write(tmp_path / "x", choices), limit=4),
        read("xquad_r", lareqa, part="questions"),
        read("labelled", {}, corpora={"xnli": pa.Table.from_pylist(rows)}, form="sentence", limit=4),
    )
    for evaluation in made:
        order = {}
        for item in evaluation.items.to_pylist():
            order.setdefault((item["subset"], item["role"]), []).append(item["group"] or item["item_id"])
        assert len(order) > 1
        assert len({tuple(items) for items in order.values()}) == 1, order


def test_flores_of_the_mirror(mirror):
    files = {path.name: path for path in (mirror / "flores200" / "devtest").iterdir()}
    evaluation = read("flores200", files, parts=["devtest"])
    assert evaluation.gold.num_rows == 1012 * (len(files) - 1)


def test_labelled_corpora_become_classes(tmp_path):
    line = "{}\t{}\t{}\t{}\n"
    text = (
        "language\tgold_label\tsentence1\tsentence2\n"
        + line.format("de", "neutral", "A.", "B.")
        + line.format("en", "entailment", "C.", "A.")
    )
    columns = {"language": "lang", "gold_label": "label", "sentence1": "a_text", "sentence2": "b_text"}
    labels = {"entailment": 0, "neutral": 1, "contradiction": 2}
    files = write(tmp_path, {"xnli.test.tsv": text})
    table = corpus("tsv", files, ["de", "en"], kind="labelled", columns=columns, header=True, labels=labels)
    found = read("labelled", {}, corpora={"xnli": table})
    assert [(row[0], *row[2:]) for row in texts_of(found)] == [("de", "A.", "B.", [1]), ("en", "C.", "A.", [0])]
    assert set(found.items["role"].to_pylist()) == {"pair"}
    sides = read("labelled", {}, ["de"], corpora={"xnli": table}, form="sides")
    assert [(row[0], *row[2:]) for row in texts_of(sides)] == [("de", "A.", None, None), ("de", "B.", None, None)]
    single = read("labelled", {}, corpora={"xnli": table}, form="sentence", splits={"xnli": "train"})
    assert single.items["split"].unique().to_pylist() == ["train"]
    graded = read("labelled", {}, corpora={"xnli": table}, form="graded", grades={"0": 1, "2": 0})
    assert graded.gold.select(["subset", "score"]).to_pylist() == [{"subset": "en", "score": 1.0}]
    assert [row[2] for row in texts_of(graded)] == ["C.", "A."]
    assert graded.items["role"].to_pylist() == ["first", "second"]
    with pytest.raises(InputError, match=r"demo: .*`graded`.*`grades`"):
        read("labelled", {}, corpora={"xnli": table}, form="graded")
    with pytest.raises(InputError, match=r"demo: .*'pairs'"):
        read("labelled", {}, corpora={"xnli": table}, form="pairs")


@pytest.mark.parametrize("options", [{}, {"form": "sides"}, {"form": "graded", "grades": {"0": 1, "1": 0}}])
def test_a_premise_is_one_in_all_languages_also_where_two_are_translated_alike(options):
    """Resample i of an average holds the same items in every language only where all have the same clusters."""
    premises = {"en": ["Uh-huh.", "Mhm.", "No."], "de": ["Aha.", "Aha.", "Nein."]}
    rows = [
        {
            "id": f"{lang}{at}",
            "a_lang": lang,
            "a_text": premises[lang][at // 2],
            "b_lang": lang,
            "b_text": f"{lang} {at}",
            "label": [float(at % 2)],
        }
        | {"group": f"pair{at}"}
        for lang in premises
        for at in range(6)
    ]
    for given, clusters in ((rows, [0, 0, 1, 1, 2, 2]), (rows[6:], [0, 0, 0, 0, 2, 2]), ([row | {"group": None} for row in rows], None)):
        items = read("labelled", {}, corpora={"xnli": pa.Table.from_pylist(given)}, same_first=True, **options).items.to_pylist()
        for lang in {row["subset"] for row in items}:
            found = [row["cluster"] for row in items if row["subset"] == lang and not row["item_id"].endswith((":second", ":b"))]
            assert [found.index(one) // 2 for one in found] == (clusters or {"en": [0, 0, 1, 1, 2, 2], "de": [0, 0, 0, 0, 2, 2]}[lang])


def test_paraphrases_of_the_mirror(mirror):
    files = {"dev-de.tsv": mirror / "paws-x" / "dev-de.tsv"}
    table = corpus("tsv", files, ["de"], kind="labelled", columns={1: "a_text", 2: "b_text", 3: "label"})
    found = read("labelled", {}, corpora={"pawsx": table})
    assert found.items.num_rows == 2000
    assert sum("NS" in (row[2].strip(), row[3].strip()) for row in texts_of(found)) > 0


def test_rows_without_label_or_second_text_are_named():
    row = {"id": ["c:f:1"], "a_lang": ["de"], "a_text": ["A."], "b_lang": ["de"], "group": [None]}
    one = pa.table({**row, "b_text": ["B."], "label": pa.array([None], pa.list_(pa.float32()))})
    with pytest.raises(InputError, match=r"c:f:1: .*label"):
        read("labelled", {}, corpora={"c": one})
    other = pa.table({**row, "b_text": pa.array([None], pa.string()), "label": [[1.0]]})
    with pytest.raises(InputError, match=r"c:f:1: .*second"):
        read("labelled", {}, corpora={"c": other})


def test_a_pool_of_sentences_and_its_queries():
    table = pa.table({"id": [str(i) for i in range(50)], "lang": ["en"] * 50, "text": [f"Sentence {i % 40}." for i in range(50)]})
    pool = read("sentence_pool", {}, ["en"], corpora={"wiki": table}, queries=["Where?"], size=10)
    assert [row[1] for row in texts_of(pool, "query")] == ["query-1"]
    chosen = {row[2] for row in texts_of(pool, "candidate")}
    assert len(chosen) == 10
    wider = read("sentence_pool", {}, ["en"], corpora={"wiki": table}, queries=["Where?"], size=100)
    assert chosen < {row[2] for row in texts_of(wider, "candidate")}
    assert len(texts_of(wider, "candidate")) == 40
    with pytest.raises(InputError, match=r"demo: .*'de'.*wiki"):
        read("sentence_pool", {}, ["de"], corpora={"wiki": table}, queries=["Wo?"])


def test_a_pool_holds_a_few_times_the_sentences_that_it_draws(monkeypatch):
    """What is drawn does not depend on what is let go on the way; 20,000 sentences of 100 letters would be 4 MB."""
    texts = [f"{i:0100}" for i in range(20_000)]
    table = pa.table({"id": texts, "lang": ["en"] * len(texts), "text": texts})
    whole = texts_of(read("sentence_pool", {}, ["en"], corpora={"wiki": table}, queries=["?"], size=200), "candidate")
    monkeypatch.setattr("crosslign.corpora.sampling.SPARE", 1000)
    monkeypatch.setattr("crosslign.corpora.evaluations.sentence_pool.pieces", lambda table: pieces(table, 1000))
    tracemalloc.start()
    drawn = texts_of(read("sentence_pool", {}, ["en"], corpora={"wiki": table}, queries=["?"], size=200), "candidate")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert drawn == whole
    values = draws(np.frombuffer(b"".join(xxhash.xxh3_128_digest(text.encode()) for text in texts), "<u8")[::2], 0)
    assert sorted(int(row[2]) for row in drawn) == np.sort(np.argsort(values)[:200]).tolist()
    assert peak < 2e6
