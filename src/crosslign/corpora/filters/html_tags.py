"""OpusFilter's HtmlTagFilter."""

from __future__ import annotations

import re

from crosslign.corpora.filters import FILTERS, SideRule

TAG = re.compile(r"</?[A-Za-z][^<>]*>|<!--|<!DOCTYPE\b", re.IGNORECASE)
"""An opening or closing tag, a comment, a document type; a lone `<` or `a < b` is none."""


@FILTERS.register
class HtmlTags(SideRule):
    """Keep sentences without HTML tags or comments."""

    def accept(self, text: str, lang: str) -> bool:
        """Tell whether there is no tag."""
        return "<" not in text or TAG.search(text) is None
