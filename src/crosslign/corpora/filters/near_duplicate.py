"""Rows that are nearly equal to an earlier one of the same corpus."""

from __future__ import annotations

from collections.abc import Sequence

from crosslign.corpora.filters import FILTERS, Filter, Mask, Setting, Sides
from crosslign.corpora.near_duplicates import NearByLanguage


@FILTERS.register
class NearDuplicate(Filter):
    """Keep the first of rows that are near twins; the two sides of a pair are compared as one text.

    Versions of one sentence (rows of one group) are no twins of each other.

    Args:
        setting: the corpus.
        threshold: least Jaccard similarity of character n-grams (crosslign.corpora.near_duplicates).
    """

    remembers = True

    def __init__(self, setting: Setting, *, threshold: float = 0.8) -> None:
        super().__init__(setting)
        self._indexes = NearByLanguage(threshold)

    def keep(self, batch: Sides) -> Mask:
        """Return which rows have no near twin before them."""
        whole = [
            text if right is None or batch.right_is_pivot else f"{text} {right}"
            for text, right in zip(batch.left_texts, batch.right_texts, strict=True)
        ]
        langs = list(batch.left_langs)
        if not batch.right_is_pivot:
            langs = [f"{lang}-{other}" if other else lang for lang, other in zip(langs, batch.right_langs, strict=True)]
        groups: Sequence[str | None] = batch.groups or [None] * len(batch)
        return self._indexes.by_language(langs, lambda index, rows: index.insert_new([whole[r] for r in rows], [groups[r] for r in rows]))
