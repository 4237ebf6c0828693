"""Rows equal to an earlier row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosslign.corpora import dedup
from crosslign.corpora.columns import sentences_of
from crosslign.corpora.dedup import KeySet, KeysOnDisk, bares, digests
from crosslign.corpora.filters import FILTERS, Filter, Mask, Setting, Sides
from crosslign.corpora.staged import Staged
from crosslign.errors import InputError
from crosslign.files import iter_rows
from crosslign.files.temporary import temporary_folder
from crosslign.options import Id


@FILTERS.register(version=1)
class ExactDuplicate(Filter):
    """Keep the first of rows that are equal in all their own sides and languages, and none that a named corpus has.

    Memory is bounded: when more rows stay than 250,000, the following ones are written to a temporary folder (TMPDIR), their
    keys are compared part by part, and what is new is read back.

    Args:
        setting: the corpus; its references hold the rows of `corpora`.
        compare: `key` compares letters and digits (case, width, spaces and punctuation do not count), `text` the unchanged text.
        corpora: ids of corpora whose rows are dropped, too.

    Raises:
        InputError: a named corpus is not there.
    """

    remembers = True
    draws_first = True

    def __init__(self, setting: Setting, *, compare: Literal["key", "text"] = "key", corpora: Sequence[Id] = ()) -> None:
        super().__init__(setting)
        self._by_key = compare == "key"
        self._seen = KeySet()
        self._unread = list(corpora)
        for corpus in corpora:
            if corpus not in setting.references:
                raise InputError(f"corpus {corpus!r} is not among the references", where=f"{setting.where}: exact_duplicate")

    def keep(self, batch: Sides) -> Mask:
        """Return which rows are new."""
        for keys in self._known():
            self._seen.insert(keys)
        return self._seen.insert(self._keys((pa.array(langs, pa.string()), pa.array(texts, pa.string())) for texts, langs in batch.own))

    def keep_of_all(self, tables: Iterable[pa.Table], sides: Callable[[pa.Table], Sides]) -> Iterator[tuple[pa.Table, Mask]]:
        """Yield each table with which of its rows are new; `sides` would make a Python object of each sentence."""
        if self.drawn:
            return ((table, ~self.elsewhere(table)) for table in tables)
        return self.new(tables)

    def new(self, tables: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, Mask]]:
        """Yield each table with which of its rows are new, by the sentences in its columns."""
        waiting = iter(tables)
        for table in waiting:
            known = self._known()
            while len(self._seen) < dedup.IN_MEMORY and (keys := next(known, None)) is not None:
                self._seen.insert(keys)
            if len(self._seen) >= dedup.IN_MEMORY:
                yield from self._on_disk(chain([table], waiting), known)
                return
            yield table, self._seen.insert(self._keys(sentences_of(table)))

    def _on_disk(self, tables: Iterable[pa.Table], known: Iterable[NDArray[np.bytes_]]) -> Iterator[tuple[pa.Table, Mask]]:
        with temporary_folder("crosslign-dedup-") as folder:
            keys = KeysOnDisk(Path(folder))
            for part in chain(self._seen.parts(), known):
                keys.add(part, known=True)
            self._seen = KeySet()
            with Staged(Path(folder, "rows.arrow")) as staged:
                for table in tables:
                    keys.add(self._keys(sentences_of(table)))
                    staged.write(table)
            new, start = keys.new(), 0
            for table in staged.read():
                yield table, new.mask(start, start + table.num_rows)
                start += table.num_rows

    def keys(self, table: pa.Table) -> NDArray[np.bytes_]:
        """Return the key of each row."""
        return self._keys(sentences_of(table))

    def elsewhere(self, table: pa.Table) -> NDArray[np.bool_]:
        """Return which rows the named corpora have."""
        for keys in self._known():
            self._seen.insert(keys)
        return self._seen.contains(self.keys(table))

    def _known(self) -> Iterator[NDArray[np.bytes_]]:
        """Yield the keys of the named corpora, once."""
        while self._unread:
            corpus = self._unread.pop()
            for batch in iter_rows(self.setting.references[corpus]):
                yield self._keys(sentences_of(batch))

    def _keys(self, sides: Iterable[tuple[pa.Array, pa.Array]]) -> NDArray[np.bytes_]:
        """Return the key of each row from the languages and texts of its sides; one that is not there adds nothing."""
        said = []
        for langs, texts in sides:
            said += [pc.if_else(texts.is_valid(), langs, None) if texts.null_count else langs, _bare(texts) if self._by_key else texts]
        return digests(pc.binary_join_element_wise(*said, "\x1f", null_handling="skip"))


def _bare(texts: pa.Array) -> pa.Array:
    return pa.array(bares([text or "" for text in texts.to_pylist()]), pa.string(), mask=texts.is_null().to_numpy(zero_copy_only=False))
