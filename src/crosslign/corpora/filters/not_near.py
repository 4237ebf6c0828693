"""Rows that are nearly equal to one of another corpus: what keeps splits apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from crosslign.corpora.columns import sentences_of
from crosslign.corpora.filters import FILTERS, Filter, Mask, Setting, Sides
from crosslign.corpora.near_duplicates import NearByLanguage, NearIndex
from crosslign.errors import InputError
from crosslign.files import read_rows
from crosslign.options import Ids, Share


@FILTERS.register(version=1)
class NotNear(Filter):
    """Keep rows none of whose sentences is a near twin of a sentence of the reference corpora, in the same language.

    In a corpus of aligned groups one near twin, in any language, drops its whole group: a translation of a held-out
    sentence is no less a leak.

    Args:
        setting: the corpus; its references hold the corpora's rows.
        corpora: ids of the reference corpora.
        threshold: least Jaccard similarity of the sets of their character 5-grams (3-grams in languages without spaces between words).

    Raises:
        InputError: a reference corpus is not there.
    """

    needs_survey = True
    remembers = True

    def __init__(self, setting: Setting, *, corpora: Ids, threshold: Share = 0.8) -> None:
        super().__init__(setting)
        self._indexes = NearByLanguage(threshold)
        self._leaked: set[str] = set()
        for corpus in corpora:
            if corpus not in setting.references:
                raise InputError(f"corpus {corpus!r} is not among the references", where=f"{setting.where}: not_near")
            self._learn(setting, corpus)

    def _learn(self, setting: Setting, corpus: str) -> None:
        for langs, texts in sentences_of(read_rows(setting.references[corpus])):
            for lang in sorted(set(langs.drop_null().unique().to_pylist())):
                if not setting.langs or lang in setting.langs:
                    self._indexes.index(lang).add(texts.filter(pc.equal(langs, lang)).drop_null().unique().to_pylist())

    def _near(self, batch: Sides) -> Mask:
        near = np.zeros(len(batch), bool)
        for texts, langs in batch.own:
            there = [row for row, text in enumerate(texts) if text is not None]

            def ask(index: NearIndex, rows: np.ndarray, texts: Sequence[str | None] = texts, there: Sequence[int] = there) -> Mask:
                return index.near([str(texts[there[row]]) for row in rows])

            near[there] |= self._indexes.by_language([str(langs[row]) for row in there], ask)
        return near

    def survey(self, batch: Sides) -> None:
        """Note the groups that have a near twin."""
        if batch.groups:
            self._leaked.update(batch.groups[row] for row in np.flatnonzero(self._near(batch)).tolist())

    def keep(self, batch: Sides) -> Mask:
        """Return which rows, or groups, have no near twin."""
        if batch.groups:
            return np.fromiter((group not in self._leaked for group in batch.groups), bool, len(batch))
        return ~self._near(batch)
