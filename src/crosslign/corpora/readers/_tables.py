"""Rows gathered into Arrow tables of bounded size, in the columns of a corpus schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from crosslign.files.rows import SCHEMAS

ROWS = 8_192
"""Rows of a table: as Python objects they take some 300 bytes a side, and this many keep the columns' work vectorised."""


def tables(rows: Iterable[Sequence[Any]], kind: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield tables of at most 8,192 rows.

    Args:
        rows: one tuple a row, in the order of `columns`.
        kind: a kind of corpus in `SCHEMAS`.
        columns: the columns that the tuples fill; the others are null.
    """
    schema = SCHEMAS[kind]
    waiting = iter(rows)
    while chunk := list(islice(waiting, ROWS)):
        filled = dict(zip(columns, zip(*chunk, strict=True), strict=True))
        yield pa.table(
            [pa.array(filled[field.name], field.type) if field.name in filled else pa.nulls(len(chunk), field.type) for field in schema],
            schema=schema,
        )
