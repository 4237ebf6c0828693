"""Tables of the four shapes of examples, put together from rows of corpora."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from crosslign.errors import InputError
from crosslign.examples.rows import Rows
from crosslign.files.rows import SCHEMAS

SHAPES = ("pairs", "triplets", "groups", "labelled_examples")


def shape_of(columns: Sequence[str]) -> str:
    """Return the shape that has these columns."""
    for shape in SHAPES:
        if SCHEMAS[shape].names == list(columns):
            return shape
    raise ValueError(f"no shape of examples has the columns {columns}")


def shaped(shape: str, **columns: pa.ChunkedArray | pa.Array) -> pa.Table:
    """Return a table in the columns of a shape; columns that are not given are null."""
    size = len(next(iter(columns.values())))
    fields = SCHEMAS[shape]
    return pa.table([_cast(columns[f.name], f.type) if f.name in columns else pa.nulls(size, f.type) for f in fields], schema=fields)


def _cast(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    return column if column.type == kind else column.cast(kind)


def row_lists(*ids: pa.ChunkedArray) -> pa.Array:
    """Return list<string>: the i-th id of every column, for each row i."""
    stacked = pa.chunked_array([chunk for column in ids for chunk in column.chunks], pa.string())
    size, width = len(ids[0]), len(ids)
    order = np.arange(size * width).reshape(width, size).T.ravel()
    values = pa.concat_arrays(stacked.take(pa.array(order)).chunks) if size else pa.array([], pa.string())
    return pa.ListArray.from_arrays(pa.array(np.arange(0, size * width + 1, width), pa.int32()), values)


def lists(column: pa.ChunkedArray, size: int) -> pa.Array:
    """Return list<string>: every `size` values of a column, one after another."""
    values = pa.concat_arrays([pa.array([], pa.string()), *column.chunks])
    return pa.ListArray.from_arrays(pa.array(np.arange(0, len(values) + 1, size), pa.int32()), values)


def checked(corpora: Sequence[Rows], columns: Sequence[str], name: str) -> Sequence[Rows]:
    """Return the corpora that a builder takes.

    Raises:
        InputError: there is no corpus, or one lacks one of the columns; `name` is the training set's.
    """
    for rows in corpora:
        if missing := [column for column in columns if column not in rows.columns]:
            raise InputError(
                f"a corpus lacks the column {missing[0]!r}",
                where=name,
                why=f"it has {list(rows.columns)}",
                do="Name a corpus of the kind that the builder needs",
            )
    if not corpora:
        raise InputError("this builder needs corpora", where=name, do="Name them in `from`")
    return corpora


def parts_of(corpora: Sequence[Rows], columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield some columns of the rows of several corpora, one corpus after another."""
    return (part for rows in corpora for part in rows.parts(columns))
