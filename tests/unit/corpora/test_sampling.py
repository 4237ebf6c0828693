"""Draws that hang on keys and counters alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from crosslign.corpora import sampling
from crosslign.corpora.dedup import digests
from crosslign.corpora.sampling import Draw, below, draws

MASK = 2**64 - 1


def test_draws_are_those_of_splitmix64():
    """The first numbers of the published generator (Vigna's splitmix64.c) from the state 1234567."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert draws(np.full(5, 1234567, np.uint64), np.arange(5)).tolist() == published


def test_a_draw_hangs_on_its_own_key_and_counter():
    keys, counters = np.arange(50, dtype=np.uint64) * np.uint64(7), np.arange(50)[::-1]
    whole = draws(keys, counters)
    assert [int(draws(keys[n : n + 1], int(counters[n]))[0]) for n in range(50)] == whole.tolist()
    assert keys.tolist() == [7 * n for n in range(50)]  # nothing is scrambled in its place


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 14, 1000])
def test_below_is_uniform(bound):
    numbers = draws(np.arange(200_000, dtype=np.uint64), 3)
    for half in (numbers, numbers << np.uint64(32)):
        counts = np.bincount(below(half, np.full(len(half), bound)), minlength=bound)
        assert len(counts) == bound
        expected = len(numbers) / bound
        chi = ((counts - expected) ** 2 / expected).sum()
        assert chi < bound - 1 + 5 * (2 * bound) ** 0.5 + 1  # five standard deviations


def test_below_reaches_its_ends():
    ends = np.array([0, MASK], np.uint64)
    assert below(ends, np.array([5, 5])).tolist() == [0, 4]
    assert below(ends, np.array([2**31, 2**31])).tolist() == [0, 2**31 - 1]


def test_neighbours_share_nothing():
    """Bits of consecutive counters, of consecutive keys and of both halves of a draw are equal in half of all cases."""
    keys = np.repeat(np.arange(2000, dtype=np.uint64), 100)
    numbers = draws(keys, np.tile(np.arange(100), 2000)).reshape(2000, 100)
    halves = (numbers >> np.uint64(32)) ^ (numbers & np.uint64(0xFFFFFFFF))
    for differing, bits in ((numbers[:, 1:] ^ numbers[:, :-1], 64), (numbers[1:] ^ numbers[:-1], 64), (halves, 32)):
        share = np.bitwise_count(differing).sum() / (differing.size * bits)
        assert abs(share - 0.5) < 5 * 0.5 / (differing.size * bits) ** 0.5


@pytest.mark.parametrize(("size", "piece"), [(1, 1), (40, 16), (40, 8192), (5000, 8)])
def test_a_draw_gives_the_first_rows_of_the_least_keys_in_their_order_however_rows_lie_in_memory(monkeypatch, size, piece):
    """By hand: the priority of a key is its draw; repeated keys are one row, the first; ties do not occur."""
    monkeypatch.setattr(sampling, "SPARE", 20)
    monkeypatch.setattr(sampling, "PIECE", piece)
    texts = [f"text {n * 7919 % 611}" for n in range(2000)]
    draw = Draw(size, 5, lambda table: digests(table["text"]))
    for start in range(0, len(texts), 37):
        rows = range(start, min(start + 37, len(texts)))
        draw.add(draw.drawable(pa.table({"id": [f"r{row}" for row in rows], "text": [texts[row] for row in rows]})))
    found = [row for table in draw.drawn() for row in table["id"].to_pylist()]
    first = {text: row for row, text in reversed(list(enumerate(texts)))}
    keys = {text: int(np.frombuffer(xxhash.xxh3_128_digest(text.encode()), "<u8")[0]) for text in first}
    least = sorted(first, key=lambda text: int(draws(np.array([keys[text]], np.uint64), 5)[0]))[:size]
    assert found == [f"r{row}" for row in sorted(first[text] for text in least)]
    assert len(found) == min(size, 611)
