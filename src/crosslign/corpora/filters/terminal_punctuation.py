"""OpusFilter's TerminalPunctuationFilter (Vázquez et al. 2019)."""

from __future__ import annotations

import math

import numpy as np

from crosslign.corpora.filters import FILTERS, Column, Mask, PairRule, Setting
from crosslign.corpora.filters._columns import MARK


@FILTERS.register(version=1)
class TerminalPunctuation(PairRule):
    """Keep pairs whose terminal punctuation goes together.

    The score is −log(1 + difference of the numbers of marks + marks beyond the first of each side), at most 0.

    Args:
        setting: the corpus.
        threshold: least score, 0 or below.
    """

    def __init__(self, setting: Setting, *, threshold: float = -2.0) -> None:
        super().__init__(setting)
        self.threshold = threshold

    vectorised = True

    def accept(self, left: Column, right: Column) -> Mask:
        """Return which scores reach the threshold."""
        a, b = (side.count(side.having(MARK)) for side in (left, right))
        sums, which = np.unique(1 + np.abs(a - b) + np.maximum(a - 1, 0) + np.maximum(b - 1, 0), return_inverse=True)
        reached = np.array([-math.log(total) >= self.threshold for total in sums.tolist()], bool)
        return reached[which]
