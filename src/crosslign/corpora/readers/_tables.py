"""Rows gathered into Arrow tables of bounded size, in the columns of a corpus schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crosslign.errors import InputError
from crosslign.files.rows import SCHEMAS

ROWS = 8_192
"""Rows of a table: as Python objects they take some 300 bytes a side, and this many keep the columns' work vectorised."""


def tables(rows: Iterable[Sequence[Any]], kind: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield tables of at most 8,192 rows.

    Args:
        rows: one tuple a row, in the order of `columns`.
        kind: a kind of corpus in `SCHEMAS`.
        columns: the columns that the tuples fill, the row's id first; the others are null.

    Raises:
        InputError: half a character (an escaped surrogate in JSON) or NUL, which no file of text can hold; names the row.
    """
    schema = SCHEMAS[kind]
    waiting = iter(rows)
    while chunk := list(islice(waiting, ROWS)):
        filled = dict(zip(columns, zip(*chunk, strict=True), strict=True))
        try:
            arrays = [
                pa.array(filled[field.name], field.type) if field.name in filled else pa.nulls(len(chunk), field.type) for field in schema
            ]
        except UnicodeEncodeError as error:
            row = next(row for row in chunk if any(isinstance(value, str) and not _whole(value) for value in row))
            raise InputError("a text with half a character", where=str(row[0]), why=str(error)) from error
        if any(pa.types.is_string(array.type) and pc.any(pc.match_substring(array, "\0")).as_py() for array in arrays):
            row = next(row for row in chunk if any(isinstance(value, str) and "\0" in value for value in row))
            raise InputError("a NUL character", where=str(row[0]), why="no sentence holds one")
        yield pa.table(arrays, schema=schema)


def _whole(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
