"""XTREME's translated training sets: original pair, translated pair, label, one file a language, lines in any order.

The files of two languages do not hold their rows in one order, and not in that of the data set they were made from.
A row is therefore known by its original texts: rows of one original pair are the same item, whatever line they stand on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._fields import finite
from crosslign.corpora.readers._left_out import BROKEN, EMPTY, SKIPPED, leave_out
from crosslign.corpora.readers._lines import check_text, left_out, read_lines
from crosslign.corpora.readers._parts import TextFile, parts_of
from crosslign.corpora.readers._tables import tables
from crosslign.errors import InputError
from crosslign.registry import nearest

COLUMNS = ("original premise", "original hypothesis", "translated premise", "translated hypothesis", "label")


@READERS.register(version=1, gives="labelled")
def read(
    files: Mapping[str, Path],
    corpus: str,
    langs: Sequence[str],
    *,
    file_langs: Mapping[str, str],
    original: str = "en",
    labels: Mapping[str, float] | None = None,
    skip: Sequence[str] = (),
    skip_empty: bool = False,
    skip_broken: bool = False,
) -> Iterator[pa.Table]:
    """Yield `labelled` rows: of each line the translated pair, and the original pair where it is met for the first time.

    The group is a hash of the original pair and its label, so that the originals and all translations of an item share it.

    Args:
        files: path by catalog name, read in that order.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>`, with `.<language>` behind for an original pair.
        langs: languages to read; with `original` among them original pairs are read too.
        file_langs: language of the translations by file name; files of other languages are skipped.
        original: language of the original pairs.
        labels: number of each label by name; without it, labels are read as numbers.
        skip: texts that are placeholders (`NS` of PAWS-X); a pair with one of them is left out.
        skip_empty: leave out pairs without a text, instead of refusing them.
        skip_broken: leave lines out that have not five columns or no label of `labels` (the files of PAWS-X have some), or are not UTF-8.

    Raises:
        InputError: a line has not five columns, an unknown label, an empty text (`file:line`), a file of no known language.
    """
    if unknown := [name for name in files if name not in file_langs]:
        raise InputError(f"the language of {unknown[0]!r} is unknown", where=corpus, do="Name it in `file_langs`")
    parts = [part for part in parts_of(files, langs, None, file_langs, corpus) if part.langs[0] in langs]
    columns = ("id", "a_lang", "a_text", "b_lang", "b_text", "label", "group")
    reader = _Reader(corpus, original if original in langs else "", labels, frozenset(skip), skip_empty, skip_broken)
    yield from tables((row for part in parts for row in reader.rows(part)), "labelled", columns)


class _Reader:
    """Reads one file after another and knows which original pairs were met."""

    def __init__(
        self,
        corpus: str,
        original: str,
        labels: Mapping[str, float] | None,
        skip: frozenset[str],
        skip_empty: bool,
        skip_broken: bool,
    ) -> None:
        self.corpus, self.original, self.labels = corpus, original, labels
        self.skip, self.skip_empty, self.skip_broken = skip, skip_empty, skip_broken
        self._met: set[bytes] = set()

    def rows(self, part: TextFile) -> Iterator[tuple[Any, ...]]:
        for number, line in read_lines(part, broken=left_out if self.skip_broken else None):
            fields = line.split("\t")
            if self.skip_broken and (len(fields) != len(COLUMNS) or (self.labels is not None and fields[4] not in self.labels)):
                leave_out(BROKEN)
                continue
            if len(fields) != len(COLUMNS):
                raise InputError("wrong number of columns", where=part.at(number), why=f"found {len(fields)}, expected {len(COLUMNS)}")
            label = self._label(fields[4], part, number)
            key = hashlib.sha256("\t".join((*fields[:2], fields[4])).encode("utf-8", "surrogatepass")).digest()[:16]
            row = f"{self.corpus}:{part.name}:{number}"
            if self.original and key not in self._met:
                self._met.add(key)
                yield from self._pair(f"{row}.{self.original}", self.original, fields[:2], label, key.hex(), part, number)
            yield from self._pair(row, part.langs[0], fields[2:4], label, key.hex(), part, number)

    def _label(self, text: str, part: TextFile, number: int) -> float:
        if self.labels is not None:
            if text not in self.labels:
                raise InputError(f"unknown label {text!r}", where=part.at(number), why=nearest(text, list(self.labels)))
            return float(self.labels[text])
        value = finite(text)
        if value is None:
            raise InputError("label is not a number", where=part.at(number), why=f"found {text!r}")
        return value

    def _pair(
        self, row: str, lang: str, texts: Sequence[str], label: float, group: str, part: TextFile, number: int
    ) -> Iterator[tuple[Any, ...]]:
        skipped = any(text in self.skip for text in texts)
        if skipped or (self.skip_empty and not all(text.strip() for text in texts)):
            leave_out(SKIPPED if skipped else EMPTY)
            return
        first, second = (check_text(text, part, number, "text") for text in texts)
        yield row, lang, first, lang, second, [label], group
