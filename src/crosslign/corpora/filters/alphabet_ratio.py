"""OpusFilter's AlphabetRatioFilter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crosslign.corpora.filters import FILTERS, Column, Mask, Setting, SideRule
from crosslign.corpora.filters._columns import ALPHABETIC
from crosslign.options import Share


@FILTERS.register(version=1)
class AlphabetRatio(SideRule):
    """Keep sentences in which at least `threshold` of the characters are alphabetic (Unicode property).

    Args:
        setting: the corpus.
        threshold: least share, 0 to 1.
        exclude_whitespace: do not count white space.
    """

    def __init__(self, setting: Setting, *, threshold: Share = 0.75, exclude_whitespace: bool = False) -> None:
        super().__init__(setting)
        self.threshold = threshold
        self.exclude_whitespace = exclude_whitespace

    def accept(self, side: Column) -> Mask:
        """Return which sentences have enough alphabetic characters; an empty one has."""
        return self.share(side) >= self.threshold

    def share(self, side: Column) -> NDArray[np.float64]:
        """Return the share of alphabetic characters of each sentence; 1 of an empty one."""
        whole = side.lengths - side.spaces if self.exclude_whitespace else side.lengths
        alphabetic = side.lengths - side.count(~side.having(ALPHABETIC))
        return np.where(whole == 0, 1.0, alphabetic / np.maximum(whole, 1))
