"""Mentions and entities of Mewsli-X in the form of its official build, and as prepared at the hub."""

from __future__ import annotations

import json

import pytest
from test_graded_sets import read, write
from test_ranked_and_labelled_sets import texts_of

from crosslign.errors import InputError


def context(text, spans, lang="en"):
    return {"text": text, "language": lang, "sentence_spans": [{"start": a, "end": b} for a, b in spans]}


def mention(identity, start, end, entity):
    return {"example_id": identity, "mention_span": {"start": start, "end": end}, "entity_id": entity}


def entity(identity, text, spans):
    spans = [{"start": a, "end": b} for a, b in spans]
    return {"entity_id": identity, "description": text, "description_language": "de", "sentence_spans": spans}


@pytest.fixture
def mewsli(tmp_path):
    mentions = [
        {"context": context("News. The bus in Rome stopped.", [(0, 5), (6, 30)]), "mentions": [mention("m1", 17, 21, "Q220")]},
        {"context": context("Rome again.", [(0, 11)], "de"), "mention": mention("m2", 0, 4, "Q220")},
    ]
    entities = [entity("Q1", "Das All.  Es ist groß.", [(0, 8), (10, 22)]), entity("Q220", "Hauptstadt Italiens", [])]
    lines = {"wikinews_mentions-test.jsonl": mentions, "candidate_set_entities.jsonl": entities}
    return write(tmp_path, {name: "".join(json.dumps(row) + "\n" for row in rows) for name, rows in lines.items()})


def test_mentions_and_entities(mewsli):
    queries, candidates = (read("mewsli_x", mewsli, part=part) for part in ("mentions", "entities"))
    assert [row[:3] for row in texts_of(queries)] == [
        ("en", "m1", "Rome: The bus in { Rome } stopped."),
        ("de", "m2", "Rome: { Rome } again."),
    ]
    assert [(row["subset"], row["left"], row["right"]) for row in queries.gold.to_pylist()] == [("en", "m1", "Q220"), ("de", "m2", "Q220")]
    assert [row[1:3] for row in texts_of(candidates)] == [("Q1", "Das All. Es ist groß."), ("Q220", "Hauptstadt Italiens")]
    assert [row[1] for row in texts_of(read("mewsli_x", mewsli, ["de"], part="mentions"))] == ["m2"]


@pytest.mark.parametrize("code", [5, None, ["de"], ""])
def test_a_description_in_a_language_that_is_no_text_is_named(mewsli, code):
    record = {**entity("Q220", "Rom", []), "description_language": code}
    mewsli["candidate_set_entities.jsonl"].write_text(json.dumps(record) + "\n")
    with pytest.raises(InputError, match=r"entities\.jsonl:1: .*description_language.*(text|empty)"):
        read("mewsli_x", mewsli, part="entities")


def test_mewsli_mistakes(mewsli):
    broken = {"context": context("Rome again.", [(0, 3)]), "mention": mention("m1", 0, 4, "Q220")}
    mewsli["wikinews_mentions-test.jsonl"].write_text(json.dumps(broken) + "\n")
    with pytest.raises(InputError, match=r"mentions-test\.jsonl:1: .*mention.* 0 to 4"):
        read("mewsli_x", mewsli, part="mentions")
    good = json.dumps({"context": context("Rome again.", [(0, 11)]), "mention": mention("m1", 0, 4, "Q220")})
    mewsli["wikinews_mentions-test.jsonl"].write_text(f"{good}\n{good}\n")
    with pytest.raises(InputError, match=r"mentions-test\.jsonl:2: .*'m1'.*twice"):
        read("mewsli_x", mewsli, part="mentions")
    mewsli["wikinews_mentions-test.jsonl"].write_text(json.dumps({"context": context("Rome again.", [(0, 11)]), "mentions": 1}) + "\n")
    with pytest.raises(InputError, match=r"mentions-test\.jsonl:1: .*Mewsli-X"):
        read("mewsli_x", mewsli, part="mentions")
    del mewsli["candidate_set_entities.jsonl"]
    with pytest.raises(InputError, match=r"demo: .*candidate_set_entities\.jsonl.*missing"):
        read("mewsli_x", mewsli, part="mentions")


def test_mentions_of_a_document_are_resampled_as_one(tmp_path):
    text, spans = "Berlin liegt in Deutschland. Dort wohnt Scholz.", [(0, 28), (29, 47)]
    first = {**context(text, spans, "de"), "document_id": "7"}
    records = [
        {"context": first, "mentions": [mention("a", 0, 6, "Q64"), mention("b", 16, 27, "Q183")]},
        {"context": first, "mention": mention("c", 40, 46, "Q9")},
        {"context": {**first, "language": "nl"}, "mention": mention("d", 0, 6, "Q64")},  # a number of one Wikinews is another's, too
        {"context": context(text, spans, "de"), "mentions": [mention("e", 0, 6, "Q64"), mention("f", 40, 46, "Q9")]},
        {"context": context(text, spans, "de"), "mention": mention("g", 0, 6, "Q64")},
    ]
    entities = [entity(code, "Stadt", []) for code in ("Q64", "Q183", "Q9")]
    lines = {"wikinews_mentions-test.jsonl": records, "candidate_set_entities.jsonl": entities}
    files = write(tmp_path, {name: "".join(json.dumps(row) + "\n" for row in rows) for name, rows in lines.items()})
    bundles = {}
    for item in read("mewsli_x", files, part="mentions").items.to_pylist():
        bundles.setdefault(item["cluster"], []).append(item["item_id"])
    assert list(bundles.values()) == [["a", "b", "c"], ["d"], ["e", "f"], ["g"]]


def test_the_prepared_copy_names_no_documents(tmp_path):
    rows = "".join(json.dumps({"mention": f"Rom: {{ Rom }} {at}", "entity_id": "Q220"}) + "\n" for at in range(2))
    entities = json.dumps({"entity_id": "Q220", "description": "Rom"}) + "\n"
    files = write(tmp_path, {"wikinews_mentions-de-test.jsonl": rows, "candidate_entities.jsonl": entities})
    assert "cluster" not in read("mewsli_x", files, part="mentions").items.column_names
