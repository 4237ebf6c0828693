"""OpusFilter's AlphabetRatioFilter."""

from __future__ import annotations

import regex

from crosslign.corpora.characters import keep_if
from crosslign.corpora.filters import FILTERS, Setting, SideRule

_IS_ALPHABETIC = regex.compile(r"\p{Alphabetic}").match
ALPHABETIC = keep_if(lambda character: _IS_ALPHABETIC(character) is not None)


@FILTERS.register
class AlphabetRatio(SideRule):
    """Keep sentences in which at least `threshold` of the characters are alphabetic (Unicode property).

    Args:
        setting: the corpus.
        threshold: least share, 0 to 1.
        exclude_whitespace: leave white space out of the whole.
    """

    def __init__(self, setting: Setting, *, threshold: float = 0.75, exclude_whitespace: bool = False) -> None:
        super().__init__(setting)
        self.threshold = threshold
        self.exclude_whitespace = exclude_whitespace

    def accept(self, text: str, lang: str) -> bool:
        """Tell whether enough characters are alphabetic; an empty text passes."""
        whole = "".join(text.split()) if self.exclude_whitespace else text
        return not whole or len(whole.translate(ALPHABETIC)) / len(whole) >= self.threshold
