"""OpusFilter's LengthRatioFilter."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crosslign.corpora.filters import FILTERS, Column, Mask, PairRule, Setting


@FILTERS.register
class LengthRatio(PairRule):
    """Keep pairs whose longer side is less than `max_ratio` times as long as the shorter.

    Args:
        setting: the corpus.
        max_ratio: bound that the ratio stays below.
        unit: `word` counts each side in its own unit (words; characters in languages without spaces between words, as a
            list of units does in OpusFilter), `char` counts all characters of both sides.
    """

    def __init__(self, setting: Setting, *, max_ratio: float = 3.0, unit: Literal["word", "char"] = "word") -> None:
        super().__init__(setting)
        self.max_ratio = max_ratio
        self.unit = unit

    vectorised = True

    def accept(self, left: Column, right: Column) -> Mask:
        """Return which ratios lie below the bound; a side without any unit has no ratio."""
        a, b = (left.lengths, right.lengths) if self.unit == "char" else (left.units, right.units)
        shorter, longer = np.minimum(a, b), np.maximum(a, b)
        return np.asarray((shorter > 0) & (longer / np.maximum(shorter, 1) < self.max_ratio))
