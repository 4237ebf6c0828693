"""OpusFilter's LongWordFilter."""

from __future__ import annotations

import numpy as np

from crosslign.corpora.filters import FILTERS, Column, Mask, Setting, SideRule
from crosslign.options import Positive


@FILTERS.register(version=1)
class LongestWord(SideRule):
    """Keep sentences whose words are all shorter than `threshold` characters; languages without spaces between words pass.

    Args:
        setting: the corpus.
        threshold: length that no word reaches.
    """

    def __init__(self, setting: Setting, *, threshold: Positive = 40) -> None:
        super().__init__(setting)
        self.threshold = threshold

    def accept(self, side: Column) -> Mask:
        """Return which sentences have short words only."""
        starts, ends = side.words
        too_long = np.diff(np.searchsorted(starts[ends - starts >= self.threshold], side.bounds)) > 0
        return side.in_characters | ~too_long
