"""Classes of Unicode characters, as tables that are filled in while characters are met."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_UNKNOWN = 255


class CharacterTable(dict[int, "int | str | None"]):
    """A table for `str.translate` whose entries are decided the first time a character is seen.

    Args:
        replace: what a character becomes: a string, or None to delete it; the character itself to keep it.
    """

    def __init__(self, replace: Callable[[str], str | None]) -> None:
        super().__init__()
        self._replace = replace

    def __missing__(self, code: int) -> str | None:
        found = self[code] = self._replace(chr(code))
        return found


class ClassTable:
    """The class of every character, found out when the character is first met.

    Args:
        classify: class of a character, 0 to 254.
    """

    def __init__(self, classify: Callable[[str], int]) -> None:
        self._classes = np.full(0x110000, _UNKNOWN, np.uint8)
        self._classify = classify

    def of(self, codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """Return the class of each code point, uint8 of the same shape."""
        found = self._classes[codes]
        new = codes[found == _UNKNOWN]
        if len(new):
            for code in np.unique(new).tolist():
                self._classes[code] = self._classify(chr(code))
            found = self._classes[codes]
        return found


def _wordless(character: str) -> bool:
    return unicodedata.category(character)[0] in "PSZC"


BARE = CharacterTable(lambda character: None if _wordless(character) else character)
"""Deletes punctuation, symbols, separators and control characters: Unicode categories P, S, Z and C."""

WORDLESS = ClassTable(_wordless)
"""1 for what `BARE` deletes, 0 for other characters."""

WORDS = CharacterTable(lambda character: character if not _wordless(character) else (" " if character.isspace() else None))
"""As `BARE`, but white space becomes a space."""
