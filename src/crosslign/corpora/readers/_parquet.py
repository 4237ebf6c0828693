"""Columns of text of a Parquet file, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from crosslign.errors import InputError
from crosslign.files.rows import parquet_file
from crosslign.registry import nearest

ROWS = 256
"""Rows that are in memory at a time; each may be an article."""


def read_texts(path: Path, column: str, *beside: str, do: str = "", again: str = "") -> Iterator[tuple[list[str | None], ...]]:
    """Yield the columns `beside`, then the texts of `column`, of 256 rows at a time.

    Args:
        path: the file.
        column: a column of texts; one inside another is written `translation.de`.
        beside: further columns, of any type.
        do: what a message about a column advises.
        again: what a message about a damaged file advises.

    Raises:
        InputError: the file is missing or not Parquet, lacks a column, or that of the texts holds none.
    """
    try:
        with parquet_file(path) as file:
            names = [name.split(".") for name in (*beside, column)]
            kind = [_type(file.schema_arrow, name, path, do) for name in names][-1]
            held = kind.value_type if pa.types.is_dictionary(kind) else kind  # repeated texts, or categories of pandas
            if not any(is_text(held) for is_text in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
                raise InputError(f"column {column!r} is not text", where=str(path), why=f"its type is {kind}", do=do)
            for batch in file.iter_batches(ROWS, columns=[outer for outer, *_ in names]):
                yield tuple(_inner(batch[outer], inner).to_pylist() for outer, *inner in names)
    except FileNotFoundError as error:
        raise InputError("file is missing", where=str(path)) from error
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
        raise InputError("not a readable Parquet file", where=str(path), why=str(error).splitlines()[0], do=again) from error


def _type(schema: pa.Schema, name: Sequence[str], path: Path, do: str) -> pa.DataType:
    """Return the type of a column."""
    fields: pa.Schema | pa.DataType = schema
    for part in name:
        known = [one.name for one in fields] if isinstance(fields, pa.Schema | pa.StructType) else []
        if part not in known:
            raise InputError(f"no column {'.'.join(name)!r}", where=str(path), why=nearest(part, known), do=do)
        fields = fields.field(part).type
    return fields


def _inner(column: pa.Array, inner: Sequence[str]) -> pa.Array:
    return pc.struct_field(column, list(inner)) if inner else column
