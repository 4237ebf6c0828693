"""OpusFilter's LengthFilter."""

from __future__ import annotations

import numpy as np

from crosslign.corpora.filters import FILTERS, Column, Mask, Setting, SideRule
from crosslign.options import Natural, Positive


@FILTERS.register(version=1)
class Length(SideRule):
    """Keep sentences of a bounded length, bounds included.

    Args:
        setting: the corpus.
        min_words, max_words: bounds in words.
        min_characters, max_characters: bounds for languages that are counted in characters (zh, ja, th, km, lo, my);
            those of words where they are not given.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        min_words: Natural = 1,
        max_words: Positive = 100,
        min_characters: Natural | None = None,
        max_characters: Positive | None = None,
    ) -> None:
        super().__init__(setting)
        self.words = min_words, max_words
        self.characters = min_words if min_characters is None else min_characters, max_words if max_characters is None else max_characters

    def accept(self, side: Column) -> Mask:
        """Return which lengths lie within the bounds."""
        low, high = (np.where(side.in_characters, self.characters[n], self.words[n]) for n in range(2))
        return (low <= side.units) & (side.units <= high)
