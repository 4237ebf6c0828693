"""Triplets in quoted columns, as SimCSE's `nli_for_simcse.csv` has them: premise, entailed, contradicting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._left_out import BROKEN, EMPTY, leave_out
from crosslign.corpora.readers._lines import check_text, place_of
from crosslign.corpora.readers._parts import Members, TextFile, parts_of
from crosslign.corpora.readers._quoted import quoted_records
from crosslign.corpora.readers._tables import tables
from crosslign.errors import InputError
from crosslign.options import Len

LABELS = (0.0, 2.0)
"""Class numbers of XNLI of the two rows that a triplet becomes: entailment, contradiction."""


@READERS.register(version=1, gives="labelled", languages=1)
def read(
    files: Mapping[str, Path],
    corpus: str,
    langs: Sequence[str],
    *,
    columns: Annotated[Sequence[str], Len(3, 3)] = ("sent0", "sent1", "hard_neg"),
    member: Members | None = None,
    skip_empty: bool = False,
    skip_broken: bool = False,
) -> Iterator[pa.Table]:
    """Yield `labelled` rows, two a triplet: premise with entailed, premise with contradicting sentence, in one group.

    Args:
        files: path by catalog name; the first line names the columns (RFC 4180).
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>:<column>`.
        langs: the language of all sentences.
        columns: names of the columns of premise, entailed and contradicting sentence.
        member: member of each file that is an archive.
        skip_empty: leave out triplets without a sentence, instead of refusing them.
        skip_broken: leave out triplets with another number of columns, a NUL, or bytes that are not UTF-8.

    Raises:
        InputError: a column is missing, a wrong number of columns, an empty sentence, broken quoting (`file:line`).
    """
    order = ("id", "a_lang", "a_text", "b_lang", "b_text", "label", "group")
    parts = parts_of(files, langs, member, None, corpus)
    rows = (row for part in parts for row in _rows(part, corpus, langs[0], columns, skip_empty, skip_broken))
    yield from tables(rows, "labelled", order)


def _rows(part: TextFile, corpus: str, lang: str, columns: Sequence[str], skip_empty: bool, skip_broken: bool) -> Iterator[tuple[Any, ...]]:
    for number, cells in _cells(part, columns, skip_broken):
        if skip_empty and not all(cell.strip() for cell in cells):
            leave_out(EMPTY)
            continue
        first, *others = (check_text(cell, part, number, f"column {column}") for cell, column in zip(cells, columns, strict=True))
        for second, column, label in zip(others, columns[1:], LABELS, strict=True):
            yield f"{corpus}:{part.name}:{number}:{column}", lang, first, lang, second, [label], f"{part.name}:{number}"


def _cells(part: TextFile, columns: Sequence[str], skip_broken: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield (line on which it begins, premise, entailed and contradicting sentence) of each triplet."""
    records = quoted_records(part, skip_broken=skip_broken)
    _, header = next(records, (1, []))
    places = [place_of(column, header, part) for column in columns]
    for number, fields in records:
        if len(fields) == len(header):
            yield number, [fields[place] for place in places]
        elif skip_broken:
            leave_out(BROKEN)
        else:
            raise InputError("wrong number of columns", where=part.at(number), why=f"found {len(fields)}, expected {len(header)}")
