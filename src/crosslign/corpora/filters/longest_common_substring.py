"""OpusFilter's LongestCommonSubstringFilter."""

from __future__ import annotations

import math

from crosslign.corpora.filters import FILTERS, PairRule, Setting


@FILTERS.register
class LongestCommonSubstring(PairRule):
    """Keep pairs whose longest common substring is shorter than `threshold` times the shorter side.

    It suffices to look for one common substring of the length that would be too long. OpusFilter's own search is
    not exact where a side has 200 characters or more (the junk heuristic of difflib).

    Args:
        setting: the corpus.
        threshold: share of the shorter side, above 0.
    """

    def __init__(self, setting: Setting, *, threshold: float = 0.9) -> None:
        super().__init__(setting)
        self.threshold = threshold

    def accept(self, left: str, left_lang: str, right: str, right_lang: str) -> bool:
        """Tell whether no common substring is too long; an empty side has none."""
        shorter, longer = sorted((left, right), key=len)
        size = self._forbidden(len(shorter))
        return not shorter or not any(shorter[start : start + size] in longer for start in range(len(shorter) - size + 1))

    def _forbidden(self, length: int) -> int:
        """Return the least number of characters, at least 1, whose share of `length` reaches the threshold as a float does."""
        size = max(1, math.floor(self.threshold * length) - 1)
        while length and size / length < self.threshold:
            size += 1
        return size
