"""Training data of tasks in their official formats: choices, laws, mentions."""

import json

import pytest

from crosslign.corpora import READERS
from crosslign.errors import InputError


def rows(reader, files, langs, **options):
    return [row for table in READERS.get(reader)(files, "c", langs, **options) for row in table.to_pylist()]


def written(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return {path.name: path}


SIQA = {"context": "It rained.", "question": "What then?", "answerA": "Sun.", "answerB": "A wet street.", "answerC": "Snow."}
COPA = {"premise": "It rained.", "choice1": "The street got wet.", "choice2": "The sun rose.", "question": "effect", "label": 0}


def test_each_answer_of_social_iqa_is_a_row_of_its_question(tmp_path):
    files = written(tmp_path / "train.jsonl", [SIQA, SIQA])
    files["train-labels.lst"] = tmp_path / "train-labels.lst"
    files["train-labels.lst"].write_text("2\n3\n")
    found = rows("multiple_choice", files, ["en"])
    assert [row["label"] for row in found] == [[0.0], [1.0], [0.0], [0.0], [0.0], [1.0]]
    assert [row["group"] for row in found] == ["train.jsonl:1"] * 3 + ["train.jsonl:2"] * 3
    assert (found[1]["a_text"], found[1]["b_text"], found[1]["id"]) == ("It rained. What then?", "A wet street.", "c:train.jsonl:1:2")


def test_copa_asks_for_cause_or_effect_in_words(tmp_path):
    found = rows("multiple_choice", written(tmp_path / "train.jsonl", [COPA]), ["en"])
    assert [(row["a_text"], row["b_text"], row["label"]) for row in found] == [
        ("It rained. What was the effect?", "The street got wet.", [1.0]),
        ("It rained. What was the effect?", "The sun rose.", [0.0]),
    ]
    with pytest.raises(InputError, match=r"train\.jsonl:1: .*label.* 2 .* 2 "):
        rows("multiple_choice", written(tmp_path / "train.jsonl", [{**COPA, "label": 2}]), ["en"])


def law(identity, texts, concepts):
    return {"celex_id": identity, "text": texts, "eurovoc_concepts": {"level_1": concepts}}


def test_laws_have_all_their_classes_and_share_a_group_over_languages(tmp_path):
    laws = [
        law("A", {"en": "one", "de": "eins", "fr": ""}, ["100162", "100142"]),
        law("B", {"en": "two"}, []),
        law("C", {"de": "drei"}, ["100143"]),
    ]
    found = rows("multi_eurlex", written(tmp_path / "train.jsonl", laws), ["en", "de"])
    assert [(row["id"], row["group"], row["label"]) for row in found] == [
        ("c:A:en", "A", [0.0, 20.0]),
        ("c:A:de", "A", [0.0, 20.0]),
        ("c:C:de", "C", [1.0]),
    ]
    with pytest.raises(InputError, match=r"train\.jsonl:1: '100163'.*100142.*100162"):
        rows("multi_eurlex", written(tmp_path / "train.jsonl", [law("A", {"en": "one"}, ["100163"])]), ["en"])


def test_a_mention_stands_in_braces_beside_its_entitys_description(tmp_path):
    text = "Rome fell. The Goths took it."
    context = {"text": text, "language": "en", "sentence_spans": [{"start": 0, "end": 10}, {"start": 11, "end": 29}]}
    mention = {"example_id": "1", "mention_span": {"start": 15, "end": 20}, "entity_id": "Q1"}
    entity = {
        "entity_id": "Q1",
        "description": "A people. In the East.",
        "description_language": "en",
        "sentence_spans": [{"start": 0, "end": 9}],
    }
    pair = {"contextual_mention": {"context": context, "mention": mention}, "entity": entity}
    other = {"contextual_mention": {"context": {**context, "language": "de"}, "mention": mention}, "entity": entity}
    found = rows("mention_pairs", written(tmp_path / "wikipedia_pairs-train.jsonl", [pair, other]), ["en"])
    assert [(row["a_text"], row["b_text"], row["id"]) for row in found] == [
        ("Goths: The { Goths } took it.", "A people.", "c:wikipedia_pairs-train.jsonl:1")
    ]
    with pytest.raises(InputError, match=r"p\.jsonl:1: .*'entity\.entity_id'.*contextual_mention"):
        rows("mention_pairs", written(tmp_path / "p.jsonl", [{"contextual_mention": pair["contextual_mention"]}]), ["en"])
    with pytest.raises(InputError, match=r"p\.jsonl:1: .*description_language.*\b5\b"):
        rows("mention_pairs", written(tmp_path / "p.jsonl", [{**pair, "entity": {**entity, "description_language": 5}}]), ["en"])


def test_several_members_of_an_archive_are_read_one_after_the_other(tmp_path):
    import zipfile

    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (("x/dev.tsv", "one"), ("x/test.tsv", "two")):
            archive.writestr(name, f"{text}\n")
    found = rows("tsv", {"a.zip": path}, ["en"], kind="mono", columns={"1": "text"}, member=["x/dev.tsv", "x/test.tsv"])
    assert [row["text"] for row in found] == ["one", "two"]
