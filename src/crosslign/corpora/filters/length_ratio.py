"""OpusFilter's LengthRatioFilter."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from crosslign.corpora.filters import FILTERS, Column, Mask, PairRule, Setting
from crosslign.options import Ge

TOKENS_PER_WORD = 1.4
"""Word pieces of BERT's English vocabulary for a word between spaces: 1.33 to 1.46 in prose; for a Chinese character 0.95 to 1."""


@FILTERS.register(version=1)
class LengthRatio(PairRule):
    """Keep pairs whose longer side is less than `max_ratio` times as long as the shorter.

    Args:
        setting: the corpus.
        max_ratio: bound that the ratio stays below.
        unit: `word` counts each side in its own unit (words; characters in languages without spaces between words, as a
            list of units does in OpusFilter), `char` counts all characters of both sides, `token` estimates word pieces: 1.4 for
            a word, one for a character of the languages without spaces.
    """

    def __init__(
        self, setting: Setting, *, max_ratio: Annotated[float, Ge(1)] = 3.0, unit: Literal["word", "char", "token"] = "word"
    ) -> None:
        super().__init__(setting)
        self.max_ratio = max_ratio
        self.unit = unit

    vectorised = True

    def accept(self, left: Column, right: Column) -> Mask:
        """Return which ratios lie below the bound; one empty side has none, two are alike."""
        a, b = self._lengths(left), self._lengths(right)
        shorter, longer = np.minimum(a, b), np.maximum(a, b)
        return np.asarray((longer == 0) | (shorter > 0) & (longer / np.where(shorter > 0, shorter, 1) < self.max_ratio))

    def _lengths(self, side: Column) -> NDArray[np.float64]:
        if self.unit == "token":
            return np.where(side.in_characters, 1.0, TOKENS_PER_WORD) * side.units
        return (side.lengths if self.unit == "char" else side.units).astype(np.float64)
