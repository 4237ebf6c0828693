"""Classes of Unicode characters, as tables that `str.translate` fills in while it meets them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable


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


def keep_if(keep: Callable[[str], bool]) -> CharacterTable:
    """Return a table that deletes every character for which `keep` is false."""
    return CharacterTable(lambda character: character if keep(character) else None)


def _wordless(character: str) -> bool:
    return unicodedata.category(character)[0] in "PSZC"


BARE = keep_if(lambda character: not _wordless(character))
"""Deletes punctuation, symbols, separators and control characters: Unicode categories P, S, Z and C."""

WORDS = CharacterTable(lambda character: character if not _wordless(character) else (" " if character.isspace() else None))
"""As `BARE`, but white space becomes a space."""
