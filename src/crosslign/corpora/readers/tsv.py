"""Separated columns, with and without quoting, with and without a header: bitext or labelled pairs."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._lines import check_text, read_lines
from crosslign.corpora.readers._tables import tables
from crosslign.errors import InputError
from crosslign.registry import nearest

KINDS = {"bitext": ("a_text", "b_text", "score"), "labelled": ("a_text", "b_text", "label", "group")}
NUMBERS = {"score", "label"}


@dataclass(frozen=True)
class _Format:
    kind: str
    columns: Mapping[str, str]
    delimiter: str
    quoting: bool
    header: bool
    labels: Mapping[str, float] | None


@READERS.register
def read(
    files: Mapping[str, Path],
    corpus: str,
    langs: Sequence[str],
    *,
    columns: Mapping[str | int, str],
    kind: str = "bitext",
    delimiter: str = "\t",
    quoting: bool = False,
    header: bool = False,
    labels: Mapping[str, float] | None = None,
    file_langs: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[pa.Table]:
    """Yield `bitext` or `labelled` rows.

    Args:
        files: path by catalog name, read in that order.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>`, the line on which a row begins.
        langs: one language (both sides) or two (first, second side).
        columns: what to take: column name (with a header) or number from 1, to one of a_text, b_text,
            score (bitext), label, group (labelled).
        kind: `bitext` or `labelled`.
        delimiter: one character.
        quoting: fields may stand in double quotes and then hold delimiters and line ends (RFC 4180).
        header: the first line names the columns.
        labels: number by label name; without it a label is read as a number.
        file_langs: one or two languages by file name, where `langs` does not hold for all files.

    Raises:
        InputError: a wrong number of columns, an empty text, an unknown label, broken quoting (`file:line`).
    """
    names = {str(name): column for name, column in columns.items()}
    unknown = set(names.values()) - set(KINDS.get(kind, ()))
    if unknown or "a_text" not in names.values():
        raise InputError(
            f"columns of a {kind} corpus are {KINDS.get(kind, 'not known')}, a_text among them",
            where=corpus,
            why=f"found {sorted(names.values())}",
        )
    form = _Format(kind, names, delimiter, quoting, header, labels)
    filled = list(names.values())
    with_b = "b_text" in filled
    order = ("id", "a_lang", *(("b_lang",) if with_b else ()), *filled)
    yield from tables(_rows(files, corpus, langs, file_langs or {}, form), kind, order)


def _languages(name: str, langs: Sequence[str], file_langs: Mapping[str, Sequence[str]], corpus: str) -> tuple[str, str]:
    chosen = file_langs.get(name, langs)
    if isinstance(chosen, str) or len(chosen) not in (1, 2):
        raise InputError(f"{name} needs one language or two", where=corpus, why=f"found {chosen!r}", do="Name them in `file_langs`")
    return chosen[0], chosen[-1]


def _records(path: Path, form: _Format) -> Iterator[tuple[int, list[str]]]:
    """Yield (line on which it begins, fields) of each record."""
    if not form.quoting:
        for number, text in read_lines(path):
            yield number, text.split(form.delimiter)
        return
    lines = (text + "\n" for _, text in read_lines(path))
    reader = csv.reader(lines, delimiter=form.delimiter, quotechar='"', doublequote=True, strict=True)
    start = 1
    try:
        for fields in reader:
            yield start, fields
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError("broken quoting", where=f"{path}:{reader.line_num}", why=str(error)) from error


def _positions(first: list[str], path: Path, form: _Format) -> list[int]:
    """Return the index of each wanted column in a record."""
    found = []
    for name in form.columns:
        if form.header and name in first:
            found.append(first.index(name))
        elif name.isascii() and name.isdigit() and 1 <= int(name) <= len(first):
            found.append(int(name) - 1)
        else:
            known = first if form.header else [str(number + 1) for number in range(len(first))]
            raise InputError(f"no column {name!r}", where=f"{path}:1", why=nearest(name, known))
    return found


def _value(text: str, column: str, path: Path, number: int, form: _Format) -> Any:
    if column not in NUMBERS:
        return check_text(text, path, number, f"column {column}")
    if column == "label" and form.labels is not None:
        if text not in form.labels:
            raise InputError(f"unknown label {text!r}", where=f"{path}:{number}", why=nearest(text, list(form.labels)))
        return [float(form.labels[text])]
    try:
        value = float(text)
    except ValueError as error:
        raise InputError(f"{column} is no number", where=f"{path}:{number}", why=f"found {text!r}") from error
    return [value] if column == "label" else value


def _rows(
    files: Mapping[str, Path], corpus: str, langs: Sequence[str], file_langs: Mapping[str, Sequence[str]], form: _Format
) -> Iterator[tuple[Any, ...]]:
    for name, path in files.items():
        a_lang, b_lang = _languages(name, langs, file_langs, corpus)
        sides = (a_lang, b_lang) if "b_text" in form.columns.values() else (a_lang,)
        width, positions = 0, list[int]()
        for number, fields in _records(path, form):
            if not width:
                width, positions = len(fields), _positions(fields, path, form)
                if form.header:
                    continue
            if len(fields) != width:
                raise InputError("wrong number of columns", where=f"{path}:{number}", why=f"found {len(fields)}, expected {width}")
            values = (
                _value(fields[position], column, path, number, form)
                for position, column in zip(positions, form.columns.values(), strict=True)
            )
            yield f"{corpus}:{name}:{number}", *sides, *values
