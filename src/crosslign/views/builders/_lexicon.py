"""Translations of words into several languages, looked up for whole arrays of words at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosslign.views.builders._words import characters, fingerprints

Dictionary = Mapping[str, Sequence[str]]
"""Translations of each lower-cased word."""


class Lexicon:
    """The words of one language with their translations into each target.

    Args:
        dictionaries: one a target, in the order of their numbers.

    Attributes:
        words: how many it has.
        translations: all of them, by target, then by number of the word, then in the order of its dictionary.
        identity: whether a translation is its word itself but for case, shape [translations].
    """

    def __init__(self, dictionaries: Sequence[Dictionary]) -> None:
        # In the order of the dictionaries, most of which have frequent words first: what is asked for most lies together.
        words = list(dict.fromkeys(word for dictionary in dictionaries for word in dictionary))
        self.words = len(words)
        data, offsets = characters(pa.array(words, pa.large_string()))
        values = fingerprints(data, offsets[:-1], offsets[1:])
        order = np.argsort(values)
        self._numbers = np.append(order, 0).astype(np.int32)
        self._fingerprints = np.append(values[order], np.uint64(np.iinfo(np.uint64).max))
        bits = len(words).bit_length() + 1  # two to four times as many stretches of fingerprints as words
        self._shift = np.uint64(64 - bits)
        starts = np.searchsorted(values[order], np.arange(1 << bits, dtype=np.uint64) << self._shift)
        self._starts = starts.astype(np.int32)  # of the caches' size
        listed = [(word, dictionary.get(word, ())) for dictionary in dictionaries for word in (*words, "")]  # the last: no word of it
        self._first = np.cumsum([0, *(len(others) for _, others in listed)])
        self.translations = pa.array([other for _, others in listed for other in others], pa.large_string())
        self.identity = np.array([other.lower() == word for word, others in listed for other in others], bool)

    def find(self, values: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the number of each word by its fingerprint; `words` where it is in no dictionary."""
        at = self._starts[values >> self._shift].astype(np.int64)
        found = self._fingerprints[at]
        behind = np.flatnonzero(found < values)
        while len(behind):
            at[behind] += 1
            found[behind] = self._fingerprints[at[behind]]
            behind = behind[found[behind] < values[behind]]
        return np.where(found == values, self._numbers[at], self.words)

    def ways(self, targets: NDArray[np.int64], words: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return, for numbers of targets and of words, the number of the first translation, and how many there are."""
        places = targets * (self.words + 1) + words
        first = self._first[places]
        return first, self._first[places + 1] - first
