"""Words of whole columns of texts, found, looked up and replaced without a Python object for each."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosslign.corpora.sampling import GOLDEN, scrambled

SPACE = 0x20
_LETTER = np.array([chr(byte).isascii() and chr(byte).isalnum() for byte in range(256)])
"""Bytes that are a whole character of a word's own: no punctuation, no part of a longer character."""
_KEPT = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)
"""The first 0 to 8 bytes of a little-endian number."""


def split_punctuation(word: str) -> tuple[str, str, str]:
    """Split a word into (punctuation before, the word itself, punctuation after)."""
    start, end = 0, len(word)
    while start < end and unicodedata.category(word[start])[0] == "P":
        start += 1
    while end > start and unicodedata.category(word[end - 1])[0] == "P":
        end -= 1
    return word[:start], word[start:end], word[end:]


def characters(texts: pa.LargeStringArray) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of all texts, one after another, and where each begins, shape [texts + 1]."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = texts.buffers()[2]
    held = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return held[offsets[0] : offsets[-1]], offsets - offsets[0]


def _texts(data: Any, offsets: NDArray[np.int64]) -> pa.LargeStringArray:
    """Return texts that lie one after another in a buffer."""
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), data)


def _parted(data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> pa.LargeStringArray:
    """Return what lies before, in and between stretches of bytes: every second text, from the second on, is a stretch."""
    places = np.full(2 * len(starts) + 2, len(data))
    places[0], places[1:-1:2], places[2:-1:2] = 0, starts, ends
    return _texts(pa.py_buffer(data), places)


def single_spaced(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return texts with one space for each run of white space, none at their ends; none may be null."""
    data, offsets = characters(texts)
    space = data == SPACE
    odd = data < SPACE
    odd[1:] |= space[1:] & space[:-1]
    first, last = offsets[:-1], offsets[1:] - 1
    there = np.flatnonzero(last >= first)
    mask = np.zeros(len(texts), bool)
    mask[there] = space[first[there]] | space[last[there]]
    if odd.any():
        mask[np.searchsorted(offsets, np.flatnonzero(odd), "right") - 1] = True
    mask |= ~np.asarray(pc.string_is_ascii(texts))  # white space beyond ASCII is rare, and Python knows it
    return _changed(texts, mask, lambda text: " ".join(text.split()))


def _changed(texts: pa.LargeStringArray, mask: NDArray[np.bool_], change: Any) -> pa.LargeStringArray:
    if not mask.any():
        return texts
    marked = pa.array(mask)
    return pc.replace_with_mask(texts, marked, pa.array([change(text) for text in texts.filter(marked).to_pylist()], pa.large_string()))


def fingerprints(data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return 64 bits for each stretch of bytes, from eight of its bytes at a time.

    Of ten million distinct words beside 200,000, two share them by chance with a probability of one in ten million.
    """
    windows: NDArray[np.uint64] = np.ndarray(len(data) + 1, "<u8", np.concatenate([data, np.zeros(8, np.uint8)]), strides=(1,))
    left = ends - starts
    found = scrambled((windows[starts] & _KEPT[np.minimum(left, 8)]) ^ (left.astype(np.uint64) * GOLDEN))
    longer = np.flatnonzero(left > 8)
    at, left = starts[longer], left[longer]
    while len(longer):
        at, left = at + 8, left - 8
        found[longer] = scrambled((found[longer] + GOLDEN) ^ (windows[at] & _KEPT[np.minimum(left, 8)]))
        more = left > 8
        longer, at, left = longer[more], at[more], left[more]
    return found


@dataclass(frozen=True)
class Words:
    """The words of texts, as places in the bytes of all of them.

    Attributes:
        data: bytes of the texts, one after another.
        offsets: where each text begins, shape [texts + 1].
        starts, ends: where each word begins and ends, shape [words].
        firsts: number of the first word of each text, shape [texts + 1].
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    firsts: NDArray[np.int64]

    @classmethod
    def of(cls, texts: pa.LargeStringArray, strip_punctuation: bool) -> Words:
        """Return the words of single-spaced texts: what stands between spaces, or that without the punctuation around it."""
        data, offsets = characters(texts)
        begins = np.zeros(len(data) + 1, bool)
        np.equal(data, SPACE, out=begins[1:])
        begins[offsets] = True
        places = np.flatnonzero(begins)
        starts, ends = places[:-1], places[1:] - 1
        ends += data[ends] != SPACE  # the last word of a text has no space behind it
        firsts = np.searchsorted(places, offsets)
        if strip_punctuation:
            before, after = _punctuation(data, starts, ends)
            starts, ends = starts + before, ends - after
        return cls(data, offsets, starts, ends, firsts)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Words of each text."""
        return np.diff(self.firsts)

    def lowered(self) -> NDArray[np.uint64]:
        """Return 64 bits for each word in lower case."""
        capital = self.data - np.uint8(ord("A")) < 26
        found = fingerprints(self.data | capital * np.uint8(ord("a") - ord("A")), self.starts, self.ends)
        asked = np.searchsorted(self.starts, np.flatnonzero(self.data >= 0x80), "right") - 1
        asked = asked[np.diff(asked, prepend=-1) > 0]  # each word with characters beyond ASCII, or such punctuation behind it, once
        if len(asked):
            words = _parted(self.data, self.starts[asked], self.ends[asked]).take(pa.array(2 * np.arange(len(asked)) + 1))
            coded = words.dictionary_encode()
            data, offsets = characters(pa.array([word.lower() for word in coded.dictionary.to_pylist()], pa.large_string()))
            found[asked] = fingerprints(data, offsets[:-1], offsets[1:])[coded.indices]
        return found

    def replaced(self, which: NDArray[np.int64], new: pa.LargeStringArray) -> pa.LargeStringArray:
        """Return the texts with the words of these numbers, ascending, replaced, each by its new one."""
        starts, ends = self.starts[which], self.ends[which]
        between = _parted(self.data, starts, ends)
        order = np.arange(2 * len(which) + 1)
        order[1::2] = len(between) + np.arange(len(which))
        whole = pa.concat_arrays([between, new]).take(pa.array(order))
        longer = np.cumsum(np.append(0, np.diff(characters(new)[1]) - (ends - starts)))
        return _texts(whole.buffers()[2], self.offsets + longer[np.searchsorted(which, self.firsts)])


def _punctuation(
    data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bytes of punctuation before and after each word."""
    before, after = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    asked = np.flatnonzero(~(_LETTER[data[starts]] & _LETTER[data[ends - 1]]))
    words = _parted(data, starts[asked], ends[asked]).take(pa.array(2 * np.arange(len(asked)) + 1)).dictionary_encode()
    split = [split_punctuation(word) for word in words.dictionary.to_pylist()]
    for side, sizes in ((0, before), (2, after)):
        sizes[asked] = np.array([len(parts[side].encode()) for parts in split], np.int64)[words.indices]
    return before, after
