"""Keys of equal sentences, and sets of keys."""

from __future__ import annotations

import tracemalloc
import unicodedata

import numpy as np
import pyarrow as pa
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.corpora.dedup import KEY_TYPE, KeySet, KeysOnDisk, RowSet, bare, bares, digest, digests, keys_of
from crosslign.corpora.segments import SortedKeys


def slow_bare(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(c for c in folded if unicodedata.category(c)[0] not in "PSZC")
    return kept if kept else "\0" + folded


@settings(max_examples=200)
@given(st.lists(st.text()))
def test_bare_follows_the_rule(texts):
    assert bares(texts) == [bare(text) for text in texts] == [slow_bare(text) for text in texts]


@settings(max_examples=100)
@given(st.lists(st.text(st.characters(exclude_categories=("Cs",)))))
def test_columns_have_the_digests_of_their_texts(texts):
    column = pa.array(texts, pa.string())
    for found, expected in ((digests(column), texts), (keys_of(column), map(slow_bare, texts))):
        assert found.tobytes() == b"".join(xxhash.xxh3_128_digest(text.encode()) for text in expected)


def test_disguises_have_one_key():
    same = ["Wo ist Straße 7?", "wo ist STRASSE 7", "Ｗｏ　ｉｓｔ Straße ７！", "wo\u00adist\u200b strasse\t7…", "«Wo ist Straße 7»"]
    assert len(set(bares(same))) == 1
    others = ["Wo ist Straße 8?", "résumé", "resume", "😀", "🙁", "a\ud800", ""]  # marks count; of nothing but symbols the text itself
    assert len(set(bares([*same, *others]))) == 1 + len(others)


@settings(max_examples=60)
@given(st.lists(st.lists(st.text("abc", max_size=2), max_size=6), max_size=6))
def test_key_set_is_a_set(batches):
    keys, seen = KeySet(), set()
    for batch in batches:
        hashed = np.array([digest(text) for text in batch], KEY_TYPE)
        expected = []
        for text in batch:
            expected.append(text not in seen and text not in batch[: len(expected)])
        assert keys.contains(hashed).tolist() == [text in seen for text in batch]
        assert keys.insert(hashed).tolist() == expected
        seen.update(batch)


def test_keys_that_end_in_zero_bytes_stay_apart():
    keys = np.array([b"\1" + b"\0" * 15, b"\1" + b"\0" * 14 + b"\1", b"\0" * 16, b"\1" + b"\0" * 15], KEY_TYPE)
    found = KeySet()
    assert found.insert(keys).tolist() == [True, True, True, False]
    assert found.contains(keys).all()


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=8), st.lists(st.integers(0, 12), max_size=6))
def test_sorted_keys_is_a_multimap(batches, asked):
    index, expected, number = SortedKeys(np.uint64), [], 0
    for batch in batches:
        index.add(np.array(batch, np.uint64), np.arange(number, number + len(batch)))
        expected += list(zip(batch, range(number, number + len(batch)), strict=True))
        number += len(batch)
    positions, values = index.find(np.array(asked, np.uint64))
    found = sorted(zip(positions.tolist(), values.tolist(), strict=True))
    assert found == sorted((place, value) for place, key in enumerate(asked) for stored, value in expected if stored == key)


def test_sorted_keys_stay_few_arrays():
    index = SortedKeys(np.uint64)
    for number in range(1000):
        index.add(np.array([number], np.uint64), np.array([number]))
    assert len(index._segments) <= 12


@settings(max_examples=60)
@given(st.sets(st.integers(0, 40)), st.integers(0, 41), st.integers(0, 41), st.integers(1, 5))
def test_row_set_is_a_set(rows, start, stop, parts):
    found, ordered = RowSet(41), sorted(rows)
    for part in range(parts):
        found.add(np.array(ordered[part::parts][::-1], np.int64))
    assert found.mask(start, max(start, stop)).tolist() == [row in rows for row in range(start, max(start, stop))]
    assert found.all() == (len(rows) == 41)


def test_new_rows_take_a_bit_each(tmp_path):
    """Beside the answer there is one part of 256 at a time: some 1,560 keys here, in copies well under 200 bytes each."""
    rows, random = 400_000, np.random.default_rng(0)
    keys = KeysOnDisk(tmp_path)
    values = np.zeros((rows, 2), np.uint64)
    values[:, 0] = random.integers(0, 2**63, rows)
    values[rows // 2 :] = values[: rows // 2]
    for batch in np.array_split(values, 3):
        keys.add(np.ascontiguousarray(batch).view("S16").ravel())
    tracemalloc.start()
    new = keys.new()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert new.mask(0, rows // 2).all()
    assert not new.mask(rows // 2, rows).any()
    assert not new.all()
    assert peak < rows / 8 + 1700 * 200


def test_a_part_of_many_keys_is_sorted_in_several_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(KeysOnDisk, "AT_ONCE", 40)
    random = np.random.default_rng(3)
    values = random.integers(0, 2**63, (20_000, 2)).astype(np.uint64)
    values[::7] = values[1]
    first = np.zeros(len(values), bool)
    first[np.unique(values, axis=0, return_index=True)[1]] = True
    keys = KeysOnDisk(tmp_path)
    for batch in np.array_split(values, 5):
        keys.add(np.ascontiguousarray(batch).view("S16").ravel())
    assert keys.new().mask(0, len(values)).tolist() == first.tolist()
