"""OpusFilter's LengthRatioFilter."""

from __future__ import annotations

from typing import Literal

from crosslign.corpora.filters import FILTERS, PairRule, Setting
from crosslign.corpora.filters._units import units


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

    def accept(self, left: str, left_lang: str, right: str, right_lang: str) -> bool:
        """Tell whether the ratio lies below the bound; a side without any unit has no ratio."""
        lengths = (len(left), len(right)) if self.unit == "char" else (units(left, left_lang), units(right, right_lang))
        return min(lengths) > 0 and max(lengths) / min(lengths) < self.max_ratio
