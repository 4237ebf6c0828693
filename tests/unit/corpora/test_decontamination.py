"""Evaluation sentences kept out of every shape of examples."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.corpora.decontamination import Decontamination
from crosslign.files import write_rows
from crosslign.files.rows import SCHEMAS


def decontaminated(table, evaluations):
    cleaner = Decontamination(evaluations)
    return cleaner.clean(table), cleaner.counts


@pytest.fixture
def evaluations(tmp_path):
    sets = {
        "first": [("Where is the station?", None), ("Guten Morgen!", None)],
        "second": [("A premise.", "A hypothesis."), ("I went home", None)],
    }
    for name, texts in sets.items():
        rows = {
            "text_id": [f"{name}:{n}" for n in range(len(texts))],
            "lang": ["xx"] * len(texts),
            "text": [t for t, _ in texts],
            "pair_text": [p for _, p in texts],
        }
        write_rows(tmp_path / f"{name}.parquet", pa.table(rows), "texts")
    return {name: tmp_path / f"{name}.parquet" for name in sets}


def table(shape, rows):
    return pa.Table.from_pylist([{"id": f"x:{n}", "rows": ["r"], **row} for n, row in enumerate(rows)], schema=SCHEMAS[shape])


def ids(examples):
    return examples["id"].to_pylist()


def test_disguises_are_seen_through(evaluations):
    disguises = [
        "where IS the station",
        "  Where is the station ?!",
        "Ｗｈｅｒｅ is the sta\u00adtion",
        "Whereisthestation",
        "“Where is the station”",
    ]
    honest = ["Where is the stations?", "Where is a station?"]
    kept, counts = decontaminated(table("pairs", [{"a_text": text, "a_lang": "en"} for text in [*disguises, *honest]]), evaluations)
    assert ids(kept) == ["x:5", "x:6"]
    assert counts == {
        "before": 7,
        "after": 2,
        "pair_level": 5,  # one sentence only: both rules agree
        "evaluations": {
            "first": {"dropped": 5, "pair_level": 5, "corpora": {"r": 5}},
            "second": {"dropped": 0, "pair_level": 0, "corpora": {}},
        },
    }


def test_either_side_drops_and_the_pair_rule_wants_both(evaluations):
    rows = [
        {"a_text": "Where is the station?", "a_lang": "en", "b_text": "Guten Morgen", "b_lang": "de"},
        {"a_text": "Where is the station?", "a_lang": "en", "b_text": "Wo?", "b_lang": "de"},
        {"a_text": "So", "a_lang": "en", "b_text": "A hypothesis", "b_lang": "de"},
        {"a_text": "guten morgen", "a_lang": "en", "b_text": "i went home", "b_lang": "de"},
        {"a_text": "So", "a_lang": "en", "b_text": "Wo?", "b_lang": "de"},
    ]
    kept, counts = decontaminated(table("pairs", rows), evaluations)
    assert ids(kept) == ["x:4"]
    assert counts["evaluations"] == {
        "first": {"dropped": 3, "pair_level": 1, "corpora": {"r": 3}},
        "second": {"dropped": 2, "pair_level": 0, "corpora": {"r": 2}},
    }
    assert (counts["before"], counts["after"], counts["pair_level"]) == (5, 1, 1)


def test_by_the_pair_one_side_alone_drops_nothing(evaluations):
    rows = [
        {"a_text": "Where is the station?", "a_lang": "en", "b_text": "guten morgen", "b_lang": "de"},
        {"a_text": "Where is the station?", "a_lang": "en", "b_text": "Ich ging nach Hause", "b_lang": "de"},
        {"a_text": "Where is the station?", "a_lang": "en", "b_text": "I went home", "b_lang": "en"},  # of two sets
    ]
    cleaner = Decontamination(evaluations, "pair")
    assert ids(cleaner.clean(table("pairs", rows))) == ["x:1", "x:2"]
    counts = cleaner.counts
    assert (counts["before"], counts["after"], counts["pair_level"]) == (3, 2, 1)
    assert [counts["evaluations"][name]["dropped"] for name in ("first", "second")] == [3, 1]
    assert counts["evaluations"]["first"]["corpora"] == {"r": 1}


def test_hard_negatives_groups_and_views_count(evaluations):
    triplet = {"a_text": "x", "a_lang": "en", "b_text": "y", "b_lang": "en", "c_lang": "en"}
    kept, counts = decontaminated(table("triplets", [{**triplet, "c_text": "I went home."}, {**triplet, "c_text": "z"}]), evaluations)
    assert ids(kept) == ["x:1"]
    assert counts["pair_level"] == 0
    groups = [
        {"texts": ["x", "I went home!", "y"], "langs": ["en", "de", "fr"]},
        {"texts": ["x", "y"], "langs": ["en", "de"]},
        {"texts": ["I went home", "A premise"], "langs": ["en", "de"]},
    ]
    kept, counts = decontaminated(table("groups", groups), evaluations)
    assert ids(kept) == ["x:1"]
    assert counts["evaluations"]["second"] == {"dropped": 2, "pair_level": 1, "corpora": {"r": 2}}
    view = {"kind": "full", "lang": "de", "a_text": "guten Morgen", "b_text": None}
    rows = [{"a_text": "x", "a_lang": "en", "views": [view]}, {"a_text": "x", "a_lang": "en", "views": []}, {"a_text": "x", "a_lang": "en"}]
    assert ids(decontaminated(table("labelled_examples", rows), evaluations)[0]) == ["x:1", "x:2"]


def test_nothing_to_keep_out_keeps_all():
    rows = table("pairs", [{"a_text": "x", "a_lang": "en"}])
    kept, counts = decontaminated(rows, {})
    assert kept.equals(rows)
    assert counts == {"before": 1, "after": 1, "pair_level": 0, "evaluations": {}}


@settings(max_examples=40)
@given(rows=st.lists(st.tuples(st.text("ab!", max_size=2), st.one_of(st.none(), st.text("ab!", max_size=2))), max_size=8))
def test_against_a_slow_rule(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("sets") / "texts.parquet"
    write_rows(path, pa.table({"text_id": ["t"], "lang": ["en"], "text": ["A!"]}), "texts")
    kept, counts = decontaminated(
        table("pairs", [{"a_text": a, "a_lang": "en", "b_text": b, "b_lang": b and "en"} for a, b in rows]), {"set": path}
    )
    bad = [{text.strip("!").lower() == "a" for text in row if text is not None} for row in rows]
    assert ids(kept) == [f"x:{n}" for n, hits in enumerate(bad) if True not in hits]
    assert counts["pair_level"] == sum(hits == {True} for hits in bad)
