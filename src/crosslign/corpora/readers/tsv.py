"""Separated columns, with and without quoting, with and without a header."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._fields import Field, Form, Kind, read_fields
from crosslign.corpora.readers._left_out import BROKEN, leave_out
from crosslign.corpora.readers._lines import left_out, place_of, read_lines
from crosslign.corpora.readers._parts import Members, OneOrTwo, TextFile, parts_of
from crosslign.corpora.readers._quoted import quoted_records
from crosslign.errors import InputError
from crosslign.options import Character, MinLen
from crosslign.registry import nearest


@dataclass(frozen=True)
class _Layout:
    delimiter: str
    quoting: bool
    header: bool
    ragged: bool
    skip_broken: bool


@READERS.register(version=1)
def read(
    files: Mapping[str, Path],
    corpus: str,
    langs: Sequence[str],
    *,
    columns: Annotated[Mapping[str | int, Field], MinLen(1)],
    kind: Kind = "bitext",
    delimiter: Character = "\t",
    quoting: bool = False,
    header: bool = False,
    ragged: bool = False,
    labels: Mapping[str, float] | None = None,
    file_langs: Mapping[str, OneOrTwo] | None = None,
    member: Members | None = None,
    skip: Mapping[str, Sequence[str]] | None = None,
    skip_empty: bool = False,
    skip_broken: bool = False,
    group_lines: bool = False,
) -> Iterator[pa.Table]:
    """Yield `mono`, `bitext` or `labelled` rows.

    Args:
        files: path by catalog name, read in that order.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>`, the line on which a row begins.
        langs: one language (both sides) or two (first, second side); all of them where a column names each row's.
        columns: what to take: column name (with a header) or number from 1, to one of text (mono), a_text, b_text,
            score (bitext), label, group (labelled), lang (any: the row's language; rows of others are left out).
        kind: `mono`, `bitext` or `labelled`.
        delimiter: one character.
        quoting: fields in double quotes may contain delimiters and line ends (RFC 4180).
        header: the first line names the columns.
        ragged: rows may have more columns or fewer than the first, if those to take are there (STS benchmark: some rows name sources).
        labels: number of each label by name; without it, labels are read as numbers.
        file_langs: one or two languages by file name, where `langs` does not hold for all files.
        member: member of each file that is an archive; `{lang}` in it stands for each language.
        skip: values by column; a row that has one of them is left out (SNLI's label `-`, the placeholder `NS` of PAWS-X).
        skip_empty: leave out rows without a text, instead of refusing them.
        skip_broken: leave out rows with another number of columns, an unreadable label or score, a NUL, or bytes that are not UTF-8.
        group_lines: rows of equal line number in the files are the same item in several languages.

    Raises:
        InputError: a wrong number of columns, an empty text, an unknown label, broken quoting (`file:line`).
    """
    texts = {str(name): values for name, values in (skip or {}).items()}
    form = Form(kind, {str(name): column for name, column in columns.items()}, labels, texts, skip_empty, group_lines, skip_broken)
    records = functools.partial(_records, layout=_Layout(delimiter, quoting, header, ragged, skip_broken))
    yield from read_fields(parts_of(files, langs, member, file_langs, corpus), records, form, corpus, langs)


def _lines(part: TextFile, layout: _Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield (line on which it begins, fields) of each record."""
    if not layout.quoting:
        for number, text in read_lines(part, broken=left_out if layout.skip_broken else None):
            yield number, text.split(layout.delimiter)
        return
    yield from quoted_records(part, layout.delimiter, skip_broken=layout.skip_broken)


def _positions(first: list[str], part: TextFile, wanted: Sequence[str], layout: _Layout) -> list[int]:
    """Return the index of each wanted column in a record."""
    found = []
    for name in wanted:
        if layout.header and name in first:
            found.append(place_of(name, first, part))
        elif name.isascii() and name.isdigit() and 1 <= int(name) <= len(first):
            found.append(int(name) - 1)
        else:
            known = first if layout.header else [str(number + 1) for number in range(len(first))]
            raise InputError(f"no column {name!r}", where=part.at(1), why=nearest(name, known))
    return found


def _records(part: TextFile, wanted: Sequence[str], *, layout: _Layout) -> Iterator[tuple[int, list[str]]]:
    width, positions = 0, list[int]()
    for number, fields in _lines(part, layout):
        if not width:
            if layout.header and number > 1:
                raise InputError("the first line, which names the columns, is not text", where=part.at(1))
            width, positions = len(fields), _positions(fields, part, wanted, layout)
            if layout.header:
                continue
        if len(fields) <= max(positions) if layout.ragged else len(fields) != width:
            if layout.skip_broken:
                leave_out(BROKEN)
                continue
            raise InputError("wrong number of columns", where=part.at(number), why=f"found {len(fields)}, expected {width}")
        yield number, [fields[position] for position in positions]
