"""OpusFilter's HtmlTagFilter."""

from __future__ import annotations

import re

import numpy as np

from crosslign.corpora.filters import FILTERS, Column, Mask, SideRule
from crosslign.corpora.filters._columns import LESS_THAN

TAG = re.compile(r"</?[A-Za-z][^<>]*>|<!--|<!DOCTYPE\b", re.IGNORECASE)
"""An opening or closing tag, a comment, a document type; a lone `<` or `a < b` is none."""


@FILTERS.register(version=1)
class HtmlTags(SideRule):
    """Keep sentences without HTML tags or comments."""

    def accept(self, side: Column) -> Mask:
        """Return which sentences have no tag."""
        mask = np.ones(len(side), bool)
        for row in np.flatnonzero(side.count(side.having(LESS_THAN))).tolist():
            mask[row] = TAG.search(side.texts[row]) is None
        return mask
