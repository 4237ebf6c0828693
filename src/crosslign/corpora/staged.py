"""Tables kept on disk between two passes, as one lightly compressed Arrow stream that is read once and removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pyarrow as pa


class Staged:
    """Tables of one schema, written one after another and read back in that order; memory holds one at a time.

    Writing ends with the `with` block. Empty tables are left out.

    Args:
        path: file to write.
        tables: how many an earlier process wrote there, where they are only to be read.

    Attributes:
        tables: how many were written.
    """

    def __init__(self, path: Path, tables: int = 0) -> None:
        self._path = path
        self.tables = tables
        self._writer: pa.RecordBatchStreamWriter | None = None

    def __enter__(self) -> Staged:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, table: pa.Table) -> None:
        """Append a table."""
        if not table.num_rows:
            return
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_stream(str(self._path), table.schema, options=options)
        self._writer.write_table(table.combine_chunks())
        self.tables += 1

    def read(self) -> Iterator[pa.Table]:
        """Yield the tables."""
        if not self.tables:
            return
        with pa.OSFile(str(self._path)) as source, pa.ipc.open_stream(source) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])
