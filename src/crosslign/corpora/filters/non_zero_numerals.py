"""OpusFilter's NonZeroNumeralsFilter (Vázquez et al. 2019)."""

from __future__ import annotations

import unicodedata
from difflib import SequenceMatcher

import numpy as np

from crosslign.corpora.characters import CharacterTable
from crosslign.corpora.filters import FILTERS, Column, Mask, PairRule, Setting
from crosslign.corpora.filters._columns import NUMERAL
from crosslign.options import Share


def _digit(character: str) -> str | None:
    value = unicodedata.decimal(character, 0)
    return str(value) if value else None


DIGITS = CharacterTable(_digit)
"""Keeps decimal digits other than zero, of any script, as 1 to 9."""


@FILTERS.register(version=1)
class NonZeroNumerals(PairRule):
    """Keep pairs whose digits, zeros left out, are alike: twice the matching ones over all is at least `threshold`.

    Digits of other scripts count as the ASCII ones (OpusFilter does not see them).

    Args:
        setting: the corpus.
        threshold: least similarity, 0 to 1; two sides without digits have 1.
    """

    def __init__(self, setting: Setting, *, threshold: Share = 0.5) -> None:
        super().__init__(setting)
        self.threshold = threshold

    def accept(self, left: Column, right: Column) -> Mask:
        """Return which rows have digits that are alike."""
        mask = np.ones(len(left), bool)
        numbers = left.count(left.having(NUMERAL)) + right.count(right.having(NUMERAL))
        for row in np.flatnonzero(numbers).tolist():
            a, b = left.texts[row].translate(DIGITS), right.texts[row].translate(DIGITS)
            mask[row] = a == b or SequenceMatcher(None, a, b, autojunk=False).ratio() >= self.threshold
        return mask
