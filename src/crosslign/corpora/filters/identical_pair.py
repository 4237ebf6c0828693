"""Pairs of which one side is a copy of the other."""

from __future__ import annotations

import numpy as np

from crosslign.corpora.dedup import bare
from crosslign.corpora.filters import FILTERS, Column, Mask, PairRule


@FILTERS.register
class IdenticalPair(PairRule):
    """Keep pairs whose sides differ in more than case, width, spaces and punctuation (the key of PROTOCOLS A0.8)."""

    def accept(self, left: Column, right: Column) -> Mask:
        """Return which rows have sides that differ."""
        return np.fromiter((bare(a) != bare(b) for a, b in zip(left.texts, right.texts, strict=True)), bool, len(left))
