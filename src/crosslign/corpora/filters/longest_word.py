"""OpusFilter's LongWordFilter."""

from __future__ import annotations

from crosslign.corpora.filters import FILTERS, Setting, SideRule
from crosslign.languages import counts_characters


@FILTERS.register
class LongestWord(SideRule):
    """Keep sentences whose words are all shorter than `threshold` characters; languages without spaces between words pass.

    Args:
        setting: the corpus.
        threshold: length that no word reaches.
    """

    def __init__(self, setting: Setting, *, threshold: int = 40) -> None:
        super().__init__(setting)
        self.threshold = threshold

    def accept(self, text: str, lang: str) -> bool:
        """Tell whether all words are short enough."""
        return counts_characters(lang) or max(map(len, text.split()), default=0) < self.threshold
