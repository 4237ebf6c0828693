"""Filters that look back at earlier rows or at other corpora."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.corpora import dedup, near_duplicates
from crosslign.corpora.filters import FILTERS, Setting, Sides
from crosslign.corpora.pipeline import Pipeline
from crosslign.errors import InputError
from crosslign.files import write_rows
from crosslign.files.rows import SCHEMAS

TEXT = st.text("aAb .!ßＡ界", max_size=6)


def mono(texts, langs=None, groups=()):
    return Sides(texts, langs or ["en"] * len(texts), [None] * len(texts), [None] * len(texts), groups=groups)


def pairs(rows):
    return Sides([a for a, _ in rows], ["en"] * len(rows), [b for _, b in rows], ["de"] * len(rows))


def split_keep(name, texts, cut, **options):
    step = FILTERS.get(name)(Setting(("en",)), **options)
    return np.concatenate([step.keep(mono(texts[:cut])), step.keep(mono(texts[cut:]))]).tolist()


@settings(max_examples=80)
@given(texts=st.lists(TEXT, max_size=12), cut=st.integers(0, 12))
def test_exact_duplicates_first_wins_whatever_the_batches(texts, cut):
    seen, expected = set(), []
    for text in texts:
        expected.append(text not in seen)
        seen.add(text)
    assert split_keep("exact_duplicate", texts, cut, compare="text") == expected


def test_exact_duplicates_by_key_and_by_text():
    texts = ["Hello, world", "hello world!", "HELLO  WORLD", "other", "Hello, world"]
    assert split_keep("exact_duplicate", texts, 2) == [True, False, False, True, False]
    assert split_keep("exact_duplicate", texts, 2, compare="text") == [True, True, True, True, False]


def test_exact_duplicates_know_languages_and_pairs():
    step = FILTERS.get("exact_duplicate")(Setting(("de", "en")))
    assert step.keep(mono(["Test", "Test", "test"], ["en", "de", "de"])).tolist() == [True, True, False]
    step = FILTERS.get("exact_duplicate")(Setting(("de", "en")))
    assert step.keep(pairs([("a", "b"), ("a", "c"), ("b", "b"), ("A", "B"), ("ab", "")])).tolist() == [True, True, True, False, True]
    # A pivot is no part of the row.
    step = FILTERS.get("exact_duplicate")(Setting(("de", "en")))
    assert step.keep(Sides(["x", "x"], ["de", "de"], ["a", "b"], ["en", "en"], right_is_pivot=True)).tolist() == [True, False]


LONG = "and it came to pass in those days that there went out a decree from the king of the land"
NEAR = "and it came to pass in those days, that there went out a decree from the KING of this land"
FAR = "the children were playing in the garden when it began to rain and they ran into the house"


def test_near_duplicates_keep_versions_of_one_group():
    step = FILTERS.get("near_duplicate")(Setting(("en",)), threshold=0.7)
    assert step.keep(mono([LONG, FAR, NEAR])).tolist() == [True, True, False]
    assert step.keep(mono([NEAR.upper()])).tolist() == [False]
    grouped = FILTERS.get("near_duplicate")(Setting(("en",)), threshold=0.7)
    assert grouped.keep(mono([LONG, NEAR, LONG], groups=["1", "1", "2"])).tolist() == [True, True, False]
    assert grouped.keep(mono([LONG], groups=["1"])).tolist() == [True]


def test_near_duplicates_compare_pairs_as_wholes_and_languages_apart():
    step = FILTERS.get("near_duplicate")(Setting(("de", "en")), threshold=0.7)
    other = "ein ganz anderer Satz, der mit dem ersten gar nichts zu tun hat und auch länger ist als dieser hier war"
    assert step.keep(pairs([(LONG, FAR), (NEAR, other), (NEAR, FAR)])).tolist() == [True, True, False]
    step = FILTERS.get("near_duplicate")(Setting(("de", "en")), threshold=0.7)
    assert step.keep(mono([LONG, NEAR], ["en", "de"])).tolist() == [True, True]


@pytest.fixture
def reference(tmp_path):
    path = tmp_path / "held_out.parquet"
    rows = {"id": ["r:1", "r:2"], "lang": ["en", "de"], "text": [LONG, FAR]}
    write_rows(path, pa.table(rows), "mono")
    return {"held_out": path}


def test_not_near_drops_near_twins_of_other_corpora(reference):
    step = FILTERS.get("not_near")(Setting(("de", "en"), reference), corpora=["held_out"], threshold=0.7)
    assert step.keep(mono([NEAR, FAR, "short"], ["en", "en", "en"])).tolist() == [False, True, True]
    assert step.keep(mono([FAR, NEAR], ["de", "de"])).tolist() == [False, True]
    # Rows of the corpus itself are not learnt.
    assert step.keep(mono(["short"])).tolist() == [True]
    # Either side of a pair counts.
    assert step.keep(pairs([("so", FAR), (LONG, "so"), ("so", "so")])).tolist() == [False, False, True]


def test_not_near_drops_whole_groups(reference):
    step = FILTERS.get("not_near")(Setting(("de", "en"), reference), corpora=["held_out"], threshold=0.7)
    batch = mono(["ein Satz", "another", NEAR], ["de", "en", "en"], groups=["g1", "g2", "g1"])
    assert step.needs_survey
    step.survey(batch)
    assert step.keep(batch).tolist() == [False, True, False]


def test_not_near_names_a_corpus_that_is_missing(reference):
    with pytest.raises(InputError, match=r"not_near: .*'elsewhere'"):
        FILTERS.get("not_near")(Setting(("en",), reference, "mine"), corpora=["elsewhere"])


def pairs_of(rows, start=0):
    made = [{"id": f"c:{n}", "a_lang": "en", "a_text": a, "b_lang": "de", "b_text": b} for n, (a, b) in enumerate(rows, start)]
    return pa.Table.from_pylist(made, schema=SCHEMAS["bitext"])


@pytest.mark.parametrize("limit", [0, 3, 20, 10_000])
def test_exact_duplicates_beyond_memory_are_those_within(tmp_path, monkeypatch, limit):
    draw = random.Random(4)
    rows = [(f"s {draw.randrange(60)}", f"t {draw.randrange(2)}") for _ in range(400)]
    held_out = {(f"S {n}!", f"t {side}") for n in range(0, 60, 7) for side in range(2)}
    write_rows(tmp_path / "other.parquet", pairs_of(sorted(held_out)), "bitext")
    expected, seen = [], {(a.lower().rstrip("!"), b) for a, b in held_out}
    for number, row in enumerate(rows):
        if row not in seen:
            expected.append(f"c:{number}")
        seen.add(row)
    monkeypatch.setattr(dedup, "IN_MEMORY", limit)
    steps = [{"exact_duplicate": {"corpora": ["other"]}}]
    pipeline = Pipeline("c", "bitext", ("en", "de"), steps, {"other": tmp_path / "other.parquet"})
    batches = [pairs_of(rows[start : start + 30], start) for start in range(0, 400, 30)]
    kept = [row for batch in pipeline.apply(batches) for row in batch["id"].to_pylist()]
    assert kept == expected
    assert pipeline.counts == [{"filter": "exact_duplicate", "before": 400, "after": len(expected)}]


def test_exact_duplicates_of_a_corpus_that_is_not_there():
    with pytest.raises(InputError, match=r"exact_duplicate: .*'other'"):
        FILTERS.get("exact_duplicate")(Setting(("en",)), corpora=["other"])


def jaccard_of_grams(left, right):
    a, b = ({text[i : i + 5] for i in range(len(text) - 4)} for text in (left, right))
    return len(a & b) / len(a | b)


@pytest.mark.parametrize("held", [1, 7, 40, 10_000])
def test_near_duplicates_beyond_memory_are_those_within(monkeypatch, held):
    draw = random.Random(5)
    words = (LONG + " " + FAR).split()
    rows = []
    for _ in range(300):  # more than half of the rows differ from an earlier one in a word or none
        a, b = (
            draw.choice(rows)
            if rows and draw.random() < 0.6
            else (" ".join(draw.choices(words, k=12)), " ".join(draw.choices(words, k=12)))
        )
        rows.append((a.replace(draw.choice(words), draw.choice(words), 1), b))
    kept: list[int] = []
    for number, row in enumerate(rows):
        if all(jaccard_of_grams(" ".join(row), " ".join(rows[other])) < 0.8 for other in kept):
            kept.append(number)
    assert 60 < len(kept) < 240
    monkeypatch.setattr(near_duplicates, "HELD", held)
    pipeline = Pipeline("c", "bitext", ("en", "de"), [{"near_duplicate": {"threshold": 0.8}}], {})
    batches = [pairs_of(rows[start : start + 30], start) for start in range(0, 300, 30)]
    found = [row for batch in pipeline.apply(batches) for row in batch["id"].to_pylist()]
    assert found == [f"c:{number}" for number in kept]
    assert pipeline.counts == [{"filter": "near_duplicate", "before": 300, "after": len(kept)}]
