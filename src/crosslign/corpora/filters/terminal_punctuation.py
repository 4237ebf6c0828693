"""OpusFilter's TerminalPunctuationFilter (Vázquez et al. 2019)."""

from __future__ import annotations

import math

from crosslign.corpora.characters import keep_if
from crosslign.corpora.filters import FILTERS, PairRule, Setting

MARKS = keep_if(frozenset(".?!…。．？！؟۔।").__contains__)
"""OpusFilter's four marks and their counterparts of other scripts, which it does not see."""


def penalty(left: str, right: str) -> float:
    """Return −log(1 + difference of the numbers of marks + marks beyond the first of each side), at most 0."""
    a, b = len(left.translate(MARKS)), len(right.translate(MARKS))
    return -math.log(1 + abs(a - b) + max(a - 1, 0) + max(b - 1, 0))


@FILTERS.register
class TerminalPunctuation(PairRule):
    """Keep pairs whose terminal punctuation goes together.

    Args:
        setting: the corpus.
        threshold: least score, 0 or below.
    """

    def __init__(self, setting: Setting, *, threshold: float = -2.0) -> None:
        super().__init__(setting)
        self.threshold = threshold

    def accept(self, left: str, left_lang: str, right: str, right_lang: str) -> bool:
        """Tell whether the score reaches the threshold."""
        return penalty(left, right) >= self.threshold
