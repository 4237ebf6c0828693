"""Sentences of many languages in one table, a language a column, as XNLI's 15-way file has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._left_out import EMPTY, leave_out
from crosslign.corpora.readers._lines import check_text, place_of, read_lines
from crosslign.corpora.readers._parts import Members, TextFile, parts_of
from crosslign.corpora.readers._tables import tables
from crosslign.errors import InputError
from crosslign.options import Character


@READERS.register(version=1, gives="multiway")
def read(
    files: Mapping[str, Path],
    corpus: str,
    langs: Sequence[str],
    *,
    delimiter: Character = "\t",
    codes: Mapping[str, str] | None = None,
    member: Members | None = None,
    skip_empty: bool = False,
) -> Iterator[pa.Table]:
    """Yield `multiway` rows, line after line; the group is the file's name and the line.

    Args:
        files: path by catalog name, read in that order; the first line names the languages.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>.<language>`.
        langs: languages to read.
        delimiter: one character.
        codes: name of the column of a language, where it is not its code.
        member: member of each file that is an archive.
        skip_empty: leave out empty sentences, instead of refusing them.

    Raises:
        InputError: a language has no column, a wrong number of columns, an empty sentence (`file:line`).
    """
    parts = parts_of(files, langs, member, None, corpus)
    columns = ("id", "group", "lang", "text")
    yield from tables(_rows(parts, corpus, langs, delimiter, codes or {}, skip_empty), "multiway", columns)


def _rows(
    parts: Sequence[TextFile], corpus: str, langs: Sequence[str], delimiter: str, codes: Mapping[str, str], skip_empty: bool
) -> Iterator[tuple[str, ...]]:
    for part in parts:
        header: list[str] = []
        positions: list[tuple[str, int]] = []
        for number, text in read_lines(part):
            fields = text.split(delimiter)
            if not header:
                header = fields
                positions = [(lang, place_of(codes.get(lang, lang), header, part)) for lang in langs]
                continue
            if len(fields) != len(header):
                raise InputError("wrong number of columns", where=part.at(number), why=f"found {len(fields)}, expected {len(header)}")
            for lang, position in positions:
                if skip_empty and not fields[position].strip():
                    leave_out(EMPTY)
                else:
                    sentence = check_text(fields[position], part, number, f"column {lang}")
                    yield f"{corpus}:{part.name}:{number}.{lang}", f"{part.name}:{number}", lang, sentence
