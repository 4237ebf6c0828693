"""OpusFilter's CharacterScoreFilter, with the scripts looked up by language."""

from __future__ import annotations

import functools

import regex

from crosslign.corpora.characters import CharacterTable, keep_if
from crosslign.corpora.filters import FILTERS, Setting, SideRule
from crosslign.languages import scripts_of

_HAS_SCRIPT = regex.compile(r"(?V1)[\p{Alphabetic}--[\p{Script=Common}\p{Script=Inherited}]]").match
SCRIPTED = keep_if(lambda character: _HAS_SCRIPT(character) is not None)
"""Keeps alphabetic characters that belong to a script; marks that all scripts share say nothing."""


@functools.cache
def expected(scripts: tuple[str, ...]) -> CharacterTable:
    """Return the table that keeps alphabetic characters of these scripts."""
    matches = regex.compile("[" + "".join(rf"\p{{Script={script}}}" for script in scripts) + "]").match
    return keep_if(lambda character: _HAS_SCRIPT(character) is not None and matches(character) is not None)


@FILTERS.register
class CharacterScript(SideRule):
    """Keep sentences of which at least `min_share` of the letters belong to the scripts of their language.

    Args:
        setting: the corpus.
        min_share: least share of alphabetic characters, 0 to 1 (PROTOCOLS A.6.5 has 0.9).
    """

    def __init__(self, setting: Setting, *, min_share: float = 0.9) -> None:
        super().__init__(setting)
        self.min_share = min_share

    def accept(self, text: str, lang: str) -> bool:
        """Tell whether enough letters are of the expected scripts; a text without letters passes."""
        letters = text.translate(SCRIPTED)
        return not letters or len(letters.translate(expected(scripts_of(lang)))) / len(letters) >= self.min_share
