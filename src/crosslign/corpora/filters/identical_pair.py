"""Pairs of which one side is a copy of the other."""

from __future__ import annotations

from operator import ne

import numpy as np

from crosslign.corpora.dedup import bares
from crosslign.corpora.filters import FILTERS, Column, Mask, PairRule


@FILTERS.register(version=1)
class IdenticalPair(PairRule):
    """Keep pairs whose sides differ in more than case, width, spaces and punctuation."""

    def accept(self, left: Column, right: Column) -> Mask:
        """Return which rows have sides that differ."""
        return np.fromiter(map(ne, bares(left.texts), bares(right.texts)), bool, len(left))
