"""Sentences that are nearly equal: MinHash finds the candidates, the exact Jaccard similarity decides.

Two sentences are near twins when the sets of their character 5-grams (3-grams in languages without spaces
between words), taken after NFKC and casefold, without punctuation and with single spaces, have a Jaccard
similarity of at least the threshold. There are no false positives. A pair at exactly the threshold is found
with a probability of at least 0.998, a pair above it with more; equal texts are always found.
"""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from crosslign.corpora.characters import WORDS
from crosslign.corpora.segments import SortedKeys
from crosslign.languages import counts_characters

MOST_HASHES = 192
MISSED = 0.002
CHUNK = 2048
MIX = np.uint64(0x9E3779B97F4A7C15)


def plain(text: str) -> str:
    """Return a text as near twins are compared: NFKC, casefold, no punctuation, single spaces; itself where nothing is left."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.translate(WORDS).split()) or folded


def shingle_size(lang: str) -> int:
    """Return the n of the character n-grams of a language: 3 where words are not set apart by spaces, otherwise 5."""
    return 3 if counts_characters(lang) else 5


def shingles(text: str, size: int) -> frozenset[str]:
    """Return the character n-grams of a plain text; a shorter text is its own only one."""
    return frozenset(text[start : start + size] for start in range(max(1, len(text) - size + 1)))


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Return the share of common members, 0 to 1."""
    common = len(left & right)
    return common / (len(left) + len(right) - common)


def bands_for(threshold: float) -> tuple[int, int]:
    """Return (bands, hashes a band): the longest bands that miss a pair at the threshold with at most 0.002, in at most 192 hashes."""
    for rows in range(8, 1, -1):
        bands = 1 if threshold >= 1 else math.ceil(math.log(MISSED) / math.log1p(-(threshold**rows)))
        if bands * rows <= MOST_HASHES:
            return bands, rows
    return MOST_HASHES, 1


def _shingle_hashes(texts: Sequence[str], size: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the 32-bit hashes of all n-grams of all texts, and where each text's begin."""
    padded = [text.ljust(size, "\0") for text in texts]
    codes = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    lengths = np.fromiter(map(len, padded), np.int64, len(padded))
    ends = np.cumsum(lengths)
    hashes = np.zeros(len(codes) - size + 1, np.uint64)
    for offset in range(size):
        hashes = (hashes ^ codes[offset : len(codes) - size + 1 + offset]) * MIX
        hashes ^= hashes >> np.uint64(29)
    whole = np.ones(len(hashes), bool)
    for end in range(1, size):  # an n-gram that begins here would run into the next text
        whole[ends[:-1] - end] = False
    counts = lengths - size + 1
    return (hashes[whole] >> np.uint64(32)).astype(np.uint32), np.cumsum(counts) - counts


def band_keys(texts: Sequence[str], size: int, bands: int, rows: int) -> NDArray[np.uint64]:
    """Return the MinHash band keys of plain texts, uint64 of shape [texts, bands]."""
    draw = np.random.default_rng(0)  # one fixed family of hash functions: results do not depend on a seed
    factors = draw.integers(0, 2**31, (bands, rows), dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    terms = draw.integers(0, 2**32, (bands, rows), dtype=np.uint32)
    keys = np.empty((len(texts), bands), np.uint64)
    for start in range(0, len(texts), CHUNK):
        hashes, starts = _shingle_hashes(texts[start : start + CHUNK], size)
        for band in range(bands):
            key = np.full(len(starts), band, np.uint64)
            for factor, term in zip(factors[band], terms[band], strict=True):
                key = (key ^ np.minimum.reduceat(hashes * factor + term, starts)) * MIX
                key ^= key >> np.uint64(29)
            keys[start : start + CHUNK, band] = key
    return keys


class NearIndex:
    """Sentences of one language that others are compared with.

    Memory is about 16 bytes a band (27 at threshold 0.8, 45 at 0.6) and the text, for each indexed sentence.

    Args:
        threshold: least Jaccard similarity of near twins, above 0 and at most 1.
        size: n of the character n-grams.
    """

    def __init__(self, threshold: float, size: int = 5) -> None:
        self.threshold = threshold
        self.size = size
        self.bands, self.rows = bands_for(threshold)
        self._keys = SortedKeys(np.uint64)
        self._texts: list[str] = []
        self._groups: list[str | None] = []

    def add(self, texts: Sequence[str]) -> None:
        """Index texts, whatever they are near to."""
        plains = [plain(text) for text in texts]
        self._store(plains, band_keys(plains, self.size, self.bands, self.rows), [None] * len(plains))

    def near(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Return, for each text, whether an indexed one is its near twin."""
        plains = [plain(text) for text in texts]
        earlier = self._candidates(band_keys(plains, self.size, self.bands, self.rows))
        mask = np.zeros(len(plains), bool)
        for row, numbers in earlier.items():
            mask[row] = self._has_twin(plains[row], (self._texts[number] for number in sorted(numbers)))
        return mask

    def insert_new(self, texts: Sequence[str], groups: Sequence[str | None]) -> NDArray[np.bool_]:
        """Index, in order, the texts that have no near twin among those indexed before; return which they are.

        Texts of one group (versions of one sentence) may be near each other. The result does not depend on
        how texts are cut into calls.
        """
        plains = [plain(text) for text in texts]
        keys = band_keys(plains, self.size, self.bands, self.rows)
        earlier = self._candidates(keys)
        shared = _shared(keys)
        buckets: dict[int, list[int]] = defaultdict(list)
        new = np.ones(len(plains), bool)
        for row in sorted(set(earlier) | set(shared)):
            old = ((self._texts[n], self._groups[n]) for n in sorted(earlier.get(row, ())))
            fresh = ((plains[n], groups[n]) for n in sorted({n for bucket in shared.get(row, ()) for n in buckets[bucket]}))
            others = (text for pool in (old, fresh) for text, group in pool if group is None or group != groups[row])
            new[row] = not self._has_twin(plains[row], others)
            if new[row]:
                for bucket in shared.get(row, ()):
                    buckets[bucket].append(row)
        kept = np.flatnonzero(new).tolist()
        self._store([plains[row] for row in kept], keys[kept], [groups[row] for row in kept])
        return new

    def _store(self, plains: Sequence[str], keys: NDArray[np.uint64], groups: Sequence[str | None]) -> None:
        numbers = np.arange(len(self._texts), len(self._texts) + len(plains))
        self._keys.add(keys.ravel(), np.repeat(numbers, self.bands))
        self._texts.extend(plains)
        self._groups.extend(groups)

    def _candidates(self, keys: NDArray[np.uint64]) -> dict[int, set[int]]:
        """Return the numbers of indexed texts that share a band, by row."""
        found: dict[int, set[int]] = defaultdict(set)
        positions, numbers = self._keys.find(keys.ravel())
        for row, number in zip((positions // self.bands).tolist(), numbers.tolist(), strict=True):
            found[row].add(number)
        return dict(found)

    def _has_twin(self, text: str, others: Iterable[str]) -> bool:
        own = shingles(text, self.size)
        return any(jaccard(own, shingles(other, self.size)) >= self.threshold for other in others)


def _shared(keys: NDArray[np.uint64]) -> dict[int, list[int]]:
    """Return, by row, its band keys that another row of the same batch has too."""
    values, counts = np.unique(keys, return_counts=True)
    repeated = np.isin(keys, values[counts > 1])
    found: dict[int, list[int]] = defaultdict(list)
    for row, band in zip(*(index.tolist() for index in np.nonzero(repeated)), strict=True):
        found[row].append(int(keys[row, band]))
    return dict(found)


class NearByLanguage:
    """One `NearIndex` a language; the index of a new language is made when its first text comes.

    Args:
        threshold: least Jaccard similarity of near twins.
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self._indexes: dict[str, NearIndex] = {}

    def index(self, lang: str) -> NearIndex:
        """Return the index of a language."""
        if lang not in self._indexes:
            self._indexes[lang] = NearIndex(self.threshold, shingle_size(lang))
        return self._indexes[lang]

    def by_language(self, langs: Sequence[str], ask: Callable[[NearIndex, NDArray[np.int64]], NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Ask each language's index about its rows, and put the answers (one bool a row) together."""
        answers = np.zeros(len(langs), bool)
        column = np.array(langs, dtype=object)
        for lang in sorted(set(langs)):
            rows = np.flatnonzero(column == lang)
            answers[rows] = ask(self.index(lang), rows)
        return answers
