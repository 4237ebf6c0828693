"""Rows that were there before."""

from __future__ import annotations

from typing import Literal

from crosslign.corpora.dedup import KeySet, bare, digest, keys_array
from crosslign.corpora.filters import FILTERS, Filter, Mask, Setting, Sides


@FILTERS.register
class ExactDuplicate(Filter):
    """Keep the first of rows that are equal in all their own sides and languages.

    Memory is 24 bytes a row that stays.

    Args:
        setting: the corpus.
        compare: `key` compares by the key of PROTOCOLS A0.8 (case, width, spaces and punctuation do not count), `text` by
            the text as it stands.
    """

    remembers = True

    def __init__(self, setting: Setting, *, compare: Literal["key", "text"] = "key") -> None:
        super().__init__(setting)
        self._form = bare if compare == "key" else str
        self._seen = KeySet()

    def keep(self, batch: Sides) -> Mask:
        """Return which rows are new."""
        return self._seen.insert(keys_array(digest(row) for row in self._rows(batch)))

    def _rows(self, batch: Sides) -> list[str]:
        columns = [
            ["" if text is None else f"{lang}\x1e{self._form(text)}" for text, lang in zip(texts, langs, strict=True)]
            for texts, langs in batch.own
        ]
        return ["\x1f".join(row) for row in zip(*columns, strict=True)]
