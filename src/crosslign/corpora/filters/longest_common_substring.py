"""OpusFilter's LongestCommonSubstringFilter."""

from __future__ import annotations

import math

import numpy as np

from crosslign.corpora.filters import FILTERS, Column, Mask, PairRule, Setting
from crosslign.options import Share


@FILTERS.register(version=1)
class LongestCommonSubstring(PairRule):
    """Keep pairs whose longest common substring is shorter than `threshold` times the shorter side.

    It suffices to look for one common substring of the length that would be too long; and where that length is over half
    of the shorter side, all such substrings share its middle, which mostly is not to be found in the other side.
    OpusFilter's own search is not exact where a side has 200 characters or more (the junk heuristic of difflib).

    Args:
        setting: the corpus.
        threshold: share of the shorter side, above 0.
    """

    def __init__(self, setting: Setting, *, threshold: Share = 0.9) -> None:
        super().__init__(setting)
        self.threshold = threshold

        self._sizes: dict[int, int] = {}

    def accept(self, left: Column, right: Column) -> Mask:
        """Return which pairs have no common substring that is too long; an empty side has none."""
        return np.fromiter(map(self._passes, left.texts, right.texts), bool, len(left))

    def _passes(self, left: str, right: str) -> bool:
        shorter, longer = (left, right) if len(left) <= len(right) else (right, left)
        length = len(shorter)
        size = self._sizes.get(length) or self._sizes.setdefault(length, self._forbidden(length))
        if shorter[length - size : size] not in longer:
            return True
        return not any(shorter[start : start + size] in longer for start in range(length - size + 1))

    def _forbidden(self, length: int) -> int:
        """Return the least number of characters, at least 1, whose share of `length` reaches the threshold as a float does."""
        size = max(1, math.floor(self.threshold * length) - 1)
        while length and size / length < self.threshold:
            size += 1
        return size
