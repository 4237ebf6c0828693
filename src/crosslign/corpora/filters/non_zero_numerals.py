"""OpusFilter's NonZeroNumeralsFilter (Vázquez et al. 2019)."""

from __future__ import annotations

import unicodedata
from difflib import SequenceMatcher

from crosslign.corpora.characters import CharacterTable
from crosslign.corpora.filters import FILTERS, PairRule, Setting


def _digit(character: str) -> str | None:
    value = unicodedata.decimal(character, 0)
    return str(value) if value else None


DIGITS = CharacterTable(_digit)
"""Keeps decimal digits other than zero, of any script, as 1 to 9."""


@FILTERS.register
class NonZeroNumerals(PairRule):
    """Keep pairs whose digits, zeros left out, are alike: twice the matching ones over all is at least `threshold`.

    Digits of other scripts count as the ASCII ones (OpusFilter does not see them).

    Args:
        setting: the corpus.
        threshold: least similarity, 0 to 1; two sides without digits have 1.
    """

    def __init__(self, setting: Setting, *, threshold: float = 0.5) -> None:
        super().__init__(setting)
        self.threshold = threshold

    def accept(self, left: str, left_lang: str, right: str, right_lang: str) -> bool:
        """Tell whether the digits of the two sides are alike."""
        a, b = left.translate(DIGITS), right.translate(DIGITS)
        return a == b or SequenceMatcher(None, a, b, autojunk=False).ratio() >= self.threshold
