"""Rows in Parquet: one schema a kind of corpus or shape of examples (docs/internals.md, Rows)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crosslign.errors import InputError
from crosslign.files.atomic import atomic_path

STRING, FLOATS = pa.string(), pa.list_(pa.float32())
VIEWS = pa.list_(pa.struct([("kind", STRING), ("lang", STRING), ("a_text", STRING), ("b_text", STRING)]))

_PAIR = {"id": STRING, "a_lang": STRING, "a_text": STRING, "b_lang": STRING, "b_text": STRING}
_EXAMPLE = {"id": STRING, "rows": pa.list_(STRING)}
_PAIRS = {**_EXAMPLE, "a_text": STRING, "a_lang": STRING, "b_text": STRING, "b_lang": STRING}

SCHEMAS: dict[str, pa.Schema] = {
    name: pa.schema(list(columns.items()))
    for name, columns in {
        "mono": {"id": STRING, "lang": STRING, "text": STRING},
        "bitext": {**_PAIR, "score": pa.float32()},
        "multiway": {"id": STRING, "group": STRING, "lang": STRING, "text": STRING, "version": STRING},
        "labelled": {**_PAIR, "label": FLOATS, "group": STRING},
        "texts": {"text_id": STRING, "lang": STRING, "text": STRING, "pair_text": STRING},
        "items": {
            "item_id": STRING,
            "subset": STRING,
            "split": STRING,
            "role": STRING,
            "text_id": STRING,
            "label": FLOATS,
            "group": STRING,
        },
        "gold": {"subset": STRING, "split": STRING, "left": STRING, "right": STRING, "score": pa.float32()},
        "resamples": {"subset": STRING, "metric": STRING, "direction": STRING, "protocol": STRING, "values": FLOATS},
        "pairs": _PAIRS,
        "triplets": {**_PAIRS, "c_text": STRING, "c_lang": STRING},
        "groups": {**_EXAMPLE, "texts": pa.list_(STRING), "langs": pa.list_(STRING), "c_text": STRING, "c_lang": STRING},
        "labelled_examples": {**_PAIRS, "label": FLOATS, "group": STRING, "supervised": pa.bool_(), "views": VIEWS},
    }.items()
}
"""Arrow schema of each kind of rows, by name."""
ROW_GROUP = 65_536
"""Rows of a row group, whatever the batches were: equal rows are equal bytes."""
_OPTIONS = {"compression": "zstd", "dictionary_pagesize_limit": 65_536}
"""Columns of sentences and ids, which hardly repeat, are given up as dictionaries early: faster to write and to read, and smaller."""


def _fit(table: pa.Table, schema: pa.Schema) -> pa.Table:
    unknown = set(table.column_names) - set(schema.names)
    if unknown:
        raise ValueError(f"columns {sorted(unknown)} are not in the schema {schema.names}")
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(table.num_rows, field.type) for field in schema
    ]
    return pa.table(columns, schema=schema)


def write_rows(path: Path, table: pa.Table, kind: str | pa.Schema) -> None:
    """Write a table under its schema (zstd), whole or not at all.

    Args:
        path: final path.
        table: rows; columns of the schema that are absent are written as null.
        kind: a name in `SCHEMAS`, or a schema (a view adds columns to that of its corpus).

    Raises:
        ValueError: a column that the schema does not know.
    """
    schema = SCHEMAS[kind] if isinstance(kind, str) else kind
    with atomic_path(path) as temporary:
        pq.write_table(_fit(table, schema), temporary, **_OPTIONS)


def write_batches(path: Path, batches: Iterable[pa.Table], kind: str | pa.Schema, check: Callable[[Path], None] | None = None) -> int:
    """Write tables that come one after another as `write_rows` writes one, in bounded memory; return the number of rows.

    Args:
        path, batches, kind: as for `write_rows`.
        check: looks at the whole file before it gets its name, and raises where it may not have it.
    """
    schema = SCHEMAS[kind] if isinstance(kind, str) else kind
    waiting, total = schema.empty_table(), 0
    with atomic_path(path) as temporary:
        with pq.ParquetWriter(temporary, schema, **_OPTIONS) as writer:
            for batch in batches:
                total += batch.num_rows
                waiting = pa.concat_tables([waiting, _fit(batch, schema)])
                while waiting.num_rows >= ROW_GROUP:
                    writer.write_table(waiting.slice(0, ROW_GROUP).combine_chunks())  # pages and dictionaries end where chunks do
                    waiting = waiting.slice(ROW_GROUP)
            if waiting.num_rows:
                writer.write_table(waiting.combine_chunks())
        if check:
            check(temporary)
    return total


def parquet_file(path: Path, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file to read it in parts; pyarrow would read ahead, and keep all that was read in memory.

    Args:
        path: the file.
        options: of `pyarrow.parquet.ParquetFile`.
    """
    return pq.ParquetFile(path, pre_buffer=False, **options)


@contextmanager
def _readable(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; what is wrong with it becomes an `InputError`."""
    try:
        with parquet_file(path) as file:
            yield file
    except FileNotFoundError as error:
        raise InputError("file is missing", where=str(path), do="Run the target that makes it") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            "not a readable Parquet file", where=str(path), why=str(error).splitlines()[0], do="Delete it; the next run rebuilds it"
        ) from error


def iter_rows(path: Path, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """Yield the rows of a Parquet file in tables of at most 65,536; errors as those of `read_rows`."""
    with _readable(path) as file:
        for batch in file.iter_batches(ROW_GROUP, columns=columns):
            yield pa.Table.from_batches([batch])


def pieces(table: pa.Table, size: int = ROW_GROUP) -> Iterator[pa.Table]:
    """Yield a table in pieces of at most `size` rows; an empty one as it is."""
    for start in range(0, max(table.num_rows, 1), size):
        yield table.slice(start, size)


def head_of(path: Path) -> tuple[list[str], int]:
    """Return the columns of a Parquet file and the number of its rows; errors as those of `read_rows`."""
    with _readable(path) as file:
        return file.schema_arrow.names, file.metadata.num_rows


def read_rows(path: Path, kind: str | None = None) -> pa.Table:
    """Read a Parquet file and, where `kind` is given, check that it has that schema's columns.

    Raises:
        InputError: the file is missing or unreadable, or a column is missing; names the file and the column.
    """
    with _readable(path) as file:
        table = file.read()
    if kind:
        missing = [name for name in SCHEMAS[kind].names if name not in table.column_names]
        if missing:
            raise InputError(
                f"column {missing[0]!r} is missing", where=str(path), why=f"a {kind} file has the columns {SCHEMAS[kind].names}"
            )
    return table


class ParquetRows:
    """Rows of a Parquet file by number; one row group is in memory at a time."""

    def __init__(self, path: Path) -> None:
        self._file = parquet_file(path)
        sizes = [self._file.metadata.row_group(at).num_rows for at in range(self._file.num_row_groups)]
        self._ends = np.cumsum([0, *sizes])
        self._held: tuple[int, pa.Table | None] = (-1, None)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def _group(self, at: int) -> pa.Table:
        if self._held[0] != at:
            self._held = at, self._file.read_row_group(at)
        return self._held[1]

    def between(self, start: int, stop: int) -> pa.Table:
        """Return the rows from `start` to before `stop`."""
        groups = np.flatnonzero((self._ends[1:] > start) & (self._ends[:-1] < stop)).tolist()
        parts = []
        for at in groups:
            first = max(start - int(self._ends[at]), 0)
            parts.append(self._group(at).slice(first, min(stop, int(self._ends[at + 1])) - int(self._ends[at]) - first))
        return pa.concat_tables(parts)
