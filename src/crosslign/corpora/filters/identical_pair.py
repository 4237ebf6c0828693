"""Pairs of which one side is a copy of the other."""

from __future__ import annotations

from crosslign.corpora.dedup import bare
from crosslign.corpora.filters import FILTERS, PairRule


@FILTERS.register
class IdenticalPair(PairRule):
    """Keep pairs whose sides differ in more than case, width, spaces and punctuation (the key of PROTOCOLS A0.8)."""

    def accept(self, left: str, left_lang: str, right: str, right_lang: str) -> bool:
        """Tell whether the sides differ."""
        return bare(left) != bare(right)
