"""Rows that are nearly equal to an earlier one of the same corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa

from crosslign.corpora import near_duplicates
from crosslign.corpora.filters import FILTERS, Filter, Mask, Setting, Sides
from crosslign.corpora.near_duplicates import NearByLanguage
from crosslign.corpora.staged import Staged
from crosslign.files.temporary import temporary_folder
from crosslign.options import Share


@FILTERS.register(version=1)
class NearDuplicate(Filter):
    """Keep the first of rows that are near twins; the two sides of a pair are compared as one text.

    Versions of one sentence (rows of one group) are not twins of each other. Memory is bounded: once 200,000 rows stay, the
    following ones are compared with these, and those without a twin wait in a temporary folder (TMPDIR) for the next turn, in
    which they are compared with each other in the same way. The rows that stay are those of one turn.

    Args:
        setting: the corpus.
        threshold: least Jaccard similarity of the sets of their character 5-grams (3-grams in languages without spaces between words).
    """

    remembers = True

    def __init__(self, setting: Setting, *, threshold: Share = 0.8) -> None:
        super().__init__(setting)
        self._threshold = threshold
        self._indexes = NearByLanguage(threshold)

    def keep(self, batch: Sides) -> Mask:
        """Return which rows have no near twin before them, and hold these."""
        langs, texts, groups = _wholes(batch)
        return self._indexes.by_language(langs, lambda index, rows: index.insert_new([texts[r] for r in rows], [groups[r] for r in rows]))

    def _twins(self, batch: Sides) -> Mask:
        """Return which rows have a near twin among those that are held."""
        langs, texts, groups = _wholes(batch)
        return self._indexes.by_language(langs, lambda index, rows: index.near([texts[r] for r in rows], [groups[r] for r in rows]))

    def keep_of_all(self, tables: Iterable[pa.Table], sides: Callable[[pa.Table], Sides]) -> Iterator[tuple[pa.Table, Mask]]:
        """Yield each table with which of its rows stay; rows that wait come later, in their order."""
        with temporary_folder("crosslign-near-duplicates-") as folder:
            for turn in count():
                waiting = iter(tables)
                for table in waiting:
                    yield table, self.keep(sides(table))
                    if len(self._indexes) >= near_duplicates.HELD:
                        break
                with Staged(Path(folder, f"{turn % 2}.arrow")) as staged:  # the other one is being read
                    for table in waiting:
                        twins = self._twins(sides(table))
                        staged.write(table.filter(pa.array(~twins)))
                        yield table.filter(pa.array(twins)), np.zeros(int(twins.sum()), bool)
                if not staged.tables:
                    return
                self._indexes = NearByLanguage(self._threshold)
                tables = staged.read()


def _wholes(batch: Sides) -> tuple[list[str], list[str], Sequence[str | None]]:
    """Return the languages, the text and the group of each row."""
    if batch.right_is_pivot:
        return list(batch.left_langs), list(batch.left_texts), batch.groups or [None] * len(batch)
    texts = [text if right is None else f"{text} {right}" for text, right in zip(batch.left_texts, batch.right_texts, strict=True)]
    langs = [f"{lang}-{other}" if other else lang for lang, other in zip(batch.left_langs, batch.right_langs, strict=True)]
    return langs, texts, batch.groups or [None] * len(batch)
