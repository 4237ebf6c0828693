"""Near twins against a brute-force search over all pairs."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.corpora.near_duplicates import NearByLanguage, NearIndex, bands_for, jaccard, plain, shingles

TEXT = "in the beginning king went out of city and he said unto them bring forth water from great river before sun light"
WORDS = TEXT.split()


@cache
def slow_shingles(text: str, size: int) -> set[str]:
    return {plain(text)[i : i + size] for i in range(max(1, len(plain(text)) - size + 1))}


def slow_jaccard(left: str, right: str, size: int) -> float:
    a, b = (slow_shingles(text, size) for text in (left, right))
    return len(a & b) / len(a | b)


def family(draw: random.Random, count: int) -> list[str]:
    """Sentences of which many differ in a few words only."""
    texts: list[str] = []
    for _ in range(count):
        words = draw.choice(texts).split() if texts and draw.random() < 0.6 else draw.choices(WORDS, k=draw.randint(8, 24))
        for _ in range(draw.randint(0, 3)):
            words[draw.randrange(len(words))] = draw.choice(WORDS)
        texts.append(" ".join(words))
    return texts


@pytest.mark.parametrize("threshold", [0.8, *(pytest.param(other, marks=pytest.mark.long) for other in (0.5, 0.6, 0.95))])
def test_pairs_are_those_of_brute_force(threshold):
    texts = family(random.Random(7), 240)
    held_out, others = texts[:120], texts[120:]
    index = NearIndex(threshold)
    index.add(held_out)
    similar = [max(slow_jaccard(text, other, 5) for other in held_out) for text in others]
    expected = np.array(similar) >= threshold
    found = index.near(others)
    assert not (found & ~expected).any()  # never a false twin
    assert 10 < expected.sum() < 110
    assert (found != expected).sum() <= 1  # one in 500 at the very threshold may be missed


@pytest.mark.parametrize("batch", [1, 7, 150])
def test_first_wins_against_brute_force_whatever_the_batches(batch):
    texts = family(random.Random(3), 150)
    kept: list[str] = []
    expected = []
    for text in texts:
        expected.append(all(slow_jaccard(text, other, 5) < 0.8 for other in kept))
        if expected[-1]:
            kept.append(text)
    index = NearIndex(0.8)
    found = [
        flag
        for start in range(0, len(texts), batch)
        for flag in index.insert_new(texts[start : start + batch], [None] * len(texts[start : start + batch])).tolist()
    ]
    assert found == expected
    assert 20 < sum(expected) < 140


def test_many_equal_texts_cost_no_more_than_a_few():
    index = NearIndex(0.8)
    mask = index.insert_new(["the same sentence again and again"] * 20_000, [None] * 20_000)
    assert mask.sum() == 1
    assert mask[0]


@settings(max_examples=80)
@given(st.lists(st.text(max_size=12), min_size=1, max_size=8))
def test_any_text_is_its_own_twin(texts):
    index = NearIndex(0.9)
    index.add(texts)
    assert index.near(texts).all()
    assert index.near([text.upper() + " !" for text in ("straße", "ok")]).dtype == bool


@settings(max_examples=100)
@given(st.text("abc ", max_size=12), st.text("abc ", max_size=12))
def test_jaccard_of_shingles(left, right):
    value = jaccard(shingles(plain(left), 5), shingles(plain(right), 5))
    assert value == slow_jaccard(left, right, 5)
    assert 0 <= value <= 1
    assert (value == 1) == (shingles(plain(left), 5) == shingles(plain(right), 5))


def test_bands_miss_less_than_promised():
    for threshold in np.linspace(0.05, 1.0, 20):
        bands, rows = bands_for(float(threshold))
        assert bands * rows <= 192
        assert (1 - threshold**rows) ** bands <= 0.002 or (rows == 1 and bands == 192)


def test_languages_without_spaces_have_shorter_shingles():
    indexes = NearByLanguage(0.6)
    assert indexes.index("zh").size == 3
    assert indexes.index("en").size == 5


def test_lone_surrogates_and_empty_batches():
    index = NearIndex(0.8)
    index.add([])
    assert index.near([]).tolist() == []
    assert index.insert_new(["\ud800 x", "\ud800 X", ""], [None] * 3).tolist() == [True, False, True]


TWINS = [  # by hand: 5-grams in common / 5-grams in either
    ("abcdefgh", "abcdefgi", 3 / 5),
    ("Abc, defgh!", "abc defgh", 1.0),
    ("The cat sat on the mat.", "the cat sat on the map", 17 / 19),
    ("the cat sat on the mat", "a dog lay in a house", 0.0),
    ("abc", "abd", 0.0),
]


@pytest.mark.parametrize(("left", "right", "similarity"), TWINS)
def test_hand_made_pairs_are_twins_up_to_their_similarity(left, right, similarity):
    for threshold in (0.3, 0.6, 17 / 19, 1.0):
        index = NearIndex(threshold)
        index.add([left])
        assert index.near([right]).tolist() == [similarity >= threshold]
