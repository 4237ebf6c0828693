"""Sentences that are nearly equal: MinHash (rensa) finds the candidates, the exact Jaccard similarity decides.

Two sentences are near twins when the sets of their character 5-grams (3-grams in languages without spaces
between words), taken after NFKC and casefold, without punctuation and with single spaces, have a Jaccard
similarity of at least the threshold. There are no false positives. A pair at exactly the threshold is found
with a probability of at least 0.998, a pair above it with more; equal texts are always found.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from rensa import RMinHash, RMinHashLSH

from crosslign.corpora.characters import WORDS
from crosslign.corpora.sampling import GOLDEN
from crosslign.languages import counts_characters

MOST_HASHES = 192
MISSED = 0.002
SEED = 0
"""Of the hash functions: one fixed family, results do not depend on a corpus' seed."""
AT_ONCE = 4_096
"""Sentences whose n-grams are held together."""
HELD = 200_000
"""Sentences that are held to be compared with at a time, about 4 kB each; what is beyond them waits on disk."""


_SPACED = bytes(ord(" ") if chr(byte).isspace() else byte for byte in range(128)).lower() + bytes(range(128, 256))
_WORDLESS = bytes(byte for byte in range(128) if not chr(byte).isalnum() and not chr(byte).isspace())


def plain(text: str) -> str:
    """Return a text as near twins are compared: NFKC, casefold, no punctuation, single spaces; itself where nothing is left."""
    if text.isascii():  # the same, by a table of bytes
        return " ".join(text.encode().translate(_SPACED, _WORDLESS).decode().split()) or text.casefold()
    folded = unicodedata.normalize("NFKC", text).casefold().encode("utf-8", "replace").decode()  # no lone surrogates
    return " ".join(folded.translate(WORDS).split()) or folded


def shingles(text: str, size: int) -> frozenset[str]:
    """Return the character n-grams of a plain text; a shorter text is its own only one."""
    return frozenset([text[start : start + size] for start in range(max(1, len(text) - size + 1))])


def hashed_shingles(texts: Sequence[str], size: int) -> list[list[bytes]]:
    """Return the character n-grams of plain texts for MinHash: 64 bits each, in their order, repeated ones too."""
    lengths = np.maximum([len(text) for text in texts], size)
    padded = "".join(text.ljust(size, "\0") for text in texts)  # a shorter text is its own only one
    codes = np.frombuffer(padded.encode("utf-32-le"), "<u4").astype(np.uint64)
    hashes = np.zeros(len(codes) - size + 1, np.uint64)
    for place in range(size):
        hashes = hashes * GOLDEN + codes[place : place + len(hashes)]
    every, ends = hashes.view("S8").tolist(), np.cumsum(lengths).tolist()
    return [every[end - length : end - size + 1] for end, length in zip(ends, lengths.tolist(), strict=True)]


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


class NearIndex:
    """Sentences of one language that others are compared with.

    Args:
        threshold: least Jaccard similarity of near twins, above 0 and at most 1.
        size: n of the character n-grams.
    """

    def __init__(self, threshold: float, size: int = 5) -> None:
        self.threshold = threshold
        self.size = size
        bands, rows = bands_for(threshold)
        self._hashes = bands * rows
        self._bands = RMinHashLSH(threshold, self._hashes, bands)
        self._texts: list[str] = []
        self._groups: list[str | None] = []

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, texts: Sequence[str]) -> None:
        """Index texts, whatever they are near to."""
        for text, sketch in self._sketched(texts):
            self._store(text, sketch, None)

    def near(self, texts: Sequence[str], groups: Sequence[str | None] | None = None) -> NDArray[np.bool_]:
        """Return, for each text, whether an indexed one (of another group, where it has one) is its near twin."""
        named = groups or [None] * len(texts)
        found = (self._has_twin(text, sketch, group) for (text, sketch), group in zip(self._sketched(texts), named, strict=True))
        return np.fromiter(found, bool, len(texts))

    def insert_new(self, texts: Sequence[str], groups: Sequence[str | None]) -> NDArray[np.bool_]:
        """Index, in order, the texts that have no near twin among those indexed before; return which they are.

        Texts of one group (versions of one sentence) may be near each other. The result does not depend on
        how texts are cut into calls.
        """
        new = np.zeros(len(texts), bool)
        for row, ((text, sketch), group) in enumerate(zip(self._sketched(texts), groups, strict=True)):
            if not self._has_twin(text, sketch, group):
                self._store(text, sketch, group)
                new[row] = True
        return new

    def _sketched(self, texts: Sequence[str]) -> Iterator[tuple[str, RMinHash]]:
        """Yield each text as it is compared, with the MinHash of its character n-grams."""
        for start in range(0, len(texts), AT_ONCE):
            plains = [plain(text) for text in texts[start : start + AT_ONCE]]
            hashed = hashed_shingles(plains, self.size)
            yield from zip(plains, RMinHash.from_token_sets(hashed, num_perm=self._hashes, seed=SEED), strict=True)

    def _store(self, text: str, sketch: RMinHash, group: str | None) -> None:
        self._bands.insert(len(self._texts), sketch)
        self._texts.append(text)
        self._groups.append(group)

    def _has_twin(self, text: str, sketch: RMinHash, group: str | None) -> bool:
        others = [number for number in self._bands.query(sketch) if group is None or self._groups[number] != group]
        own = shingles(text, self.size) if others else frozenset()
        return any(jaccard(own, shingles(self._texts[number], self.size)) >= self.threshold for number in others)


class NearByLanguage:
    """One `NearIndex` a language; the index of a new language is made when its first text comes.

    Args:
        threshold: least Jaccard similarity of near twins.
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self._indexes: dict[str, NearIndex] = {}

    def __len__(self) -> int:
        return sum(map(len, self._indexes.values()))

    def index(self, lang: str) -> NearIndex:
        """Return the index of a language."""
        if lang not in self._indexes:
            shingle = 3 if counts_characters(lang) else 5  # characters: languages whose words are not set apart by spaces have shorter ones
            self._indexes[lang] = NearIndex(self.threshold, shingle)
        return self._indexes[lang]

    def by_language(self, langs: Sequence[str], ask: Callable[[NearIndex, NDArray[np.int64]], NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Ask each language's index about its rows, and put the answers (one bool a row) together."""
        answers = np.zeros(len(langs), bool)
        column = np.array(langs, dtype=object)
        for lang in sorted(set(langs)):
            rows = np.flatnonzero(column == lang)
            answers[rows] = ask(self.index(lang), rows)
        return answers
