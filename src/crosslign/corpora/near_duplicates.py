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
from crosslign.languages import counts_characters

MOST_HASHES = 192
MISSED = 0.002
SEED = 0
"""Of the hash functions: one fixed family, results do not depend on a corpus' seed."""
AT_ONCE = 4_096
"""Sentences whose n-grams are held together."""
HELD = 200_000
"""Sentences that are held to be compared with at a time, about 4 kB each; what is beyond them waits on disk."""


def plain(text: str) -> str:
    """Return a text as near twins are compared: NFKC, casefold, no punctuation, single spaces; itself where nothing is left."""
    folded = unicodedata.normalize("NFKC", text).casefold().encode("utf-8", "replace").decode()  # no lone surrogates
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
        for text, _, sketch in self._sketched(texts):
            self._store(text, sketch, None)

    def near(self, texts: Sequence[str], groups: Sequence[str | None] | None = None) -> NDArray[np.bool_]:
        """Return, for each text, whether an indexed one (of another group, where it has one) is its near twin."""
        named = groups or [None] * len(texts)
        found = (self._has_twin(own, sketch, group) for (_, own, sketch), group in zip(self._sketched(texts), named, strict=True))
        return np.fromiter(found, bool, len(texts))

    def insert_new(self, texts: Sequence[str], groups: Sequence[str | None]) -> NDArray[np.bool_]:
        """Index, in order, the texts that have no near twin among those indexed before; return which they are.

        Texts of one group (versions of one sentence) may be near each other. The result does not depend on
        how texts are cut into calls.
        """
        new = np.zeros(len(texts), bool)
        for row, ((text, own, sketch), group) in enumerate(zip(self._sketched(texts), groups, strict=True)):
            if not self._has_twin(own, sketch, group):
                self._store(text, sketch, group)
                new[row] = True
        return new

    def _sketched(self, texts: Sequence[str]) -> Iterator[tuple[str, frozenset[str], RMinHash]]:
        """Yield each text as it is compared, with its character n-grams and their MinHash."""
        for start in range(0, len(texts), AT_ONCE):
            plains = [plain(text) for text in texts[start : start + AT_ONCE]]
            grams = [shingles(text, self.size) for text in plains]
            yield from zip(plains, grams, RMinHash.from_token_sets(grams, num_perm=self._hashes, seed=SEED), strict=True)

    def _store(self, text: str, sketch: RMinHash, group: str | None) -> None:
        self._bands.insert(len(self._texts), sketch)
        self._texts.append(text)
        self._groups.append(group)

    def _has_twin(self, own: frozenset[str], sketch: RMinHash, group: str | None) -> bool:
        others = [number for number in self._bands.query(sketch) if group is None or self._groups[number] != group]
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
