"""Rows gathered into Arrow tables of bounded size, in the columns of a corpus schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
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
    waiting = iter(rows)
    while chunk := list(islice(waiting, ROWS)):
        yield table_of(dict(zip(columns, zip(*chunk, strict=True), strict=True)), kind)


def table_of(columns: Mapping[str, Sequence[Any] | pa.Array], kind: str) -> pa.Table:
    """Return a table of a kind of corpus from some of its columns, its rows' ids first; errors as those of `tables`."""
    ids = next(iter(columns.values()))
    try:
        arrays = [
            pa.nulls(len(ids), field.type)
            if (column := columns.get(field.name)) is None
            else column
            if isinstance(column, pa.Array)
            else pa.array(column, field.type)
            for field in SCHEMAS[kind]
        ]
    except UnicodeEncodeError as error:
        raise InputError(
            "a text contains half of a surrogate pair", where=_first(columns, lambda text: not _whole(text)), why=str(error)
        ) from error
    if any(pa.types.is_string(array.type) and _holds_nul(array) for array in arrays):
        raise InputError("a NUL character", where=_first(columns, lambda text: "\0" in text), why="text cannot contain it")
    return pa.table(arrays, schema=SCHEMAS[kind])


def line_ids(prefix: str, first: int, count: int) -> pa.Array:
    """Return the row ids of lines in turn: `<prefix>:<number>`."""
    return pc.binary_replace_slice(pa.array(np.arange(first, first + count)).cast(pa.string()), 0, 0, f"{prefix}:")


def _holds_nul(texts: pa.Array) -> bool:
    data = texts.buffers()[2]  # a look at all bytes takes a tenth of the time of one at each text
    return data is not None and b"\0" in bytes(data) and bool(pc.any(pc.match_substring(texts, "\0")).as_py())


def _first(columns: Mapping[str, Sequence[Any]], bad: Callable[[str], bool]) -> str:
    """Return the id of the first row that has a bad text."""
    return next(str(row[0]) for row in zip(*columns.values(), strict=True) if any(isinstance(value, str) and bad(value) for value in row))


def _whole(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
