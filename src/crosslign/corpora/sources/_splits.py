"""One split of a data set on the hub: the Parquet files that hold it (`crosslign.config.splits`), joined to one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from crosslign.errors import InputError
from crosslign.files.checksums import copy_summed, sha256_file
from crosslign.files.rows import parquet_file

ROWS = 8192
PART = (
    "Remove the repository from the hub's cache and run the same command again; if its parts differ on the hub, name one file with `path`"
)


def join(paths: Sequence[str], get: Callable[[str], Path], rows: int | None, dest: Path) -> str:
    """Write the first rows of several Parquet files as one, and return its SHA-256; one that is wanted whole is copied as it is.

    Args:
        paths: in the repository.
        get: brings one of them here; asked for no more files than the rows lie in.
        rows: how many are wanted; None for all.
        dest: file to write.
    """
    if rows is None and len(paths) == 1:
        return copy_summed(get(paths[0]), dest)
    left = -1 if rows is None else rows
    with ExitStack() as writing:
        writer: pq.ParquetWriter | None = None
        for path in paths if left else ():
            here = get(path)
            with _usable(path), parquet_file(here) as file:
                writer = writer or writing.enter_context(pq.ParquetWriter(dest, file.schema_arrow, compression="zstd"))
                for batch in file.iter_batches(ROWS):
                    kept = batch if left < 0 else batch.slice(0, left)
                    writer.write_table(pa.Table.from_batches([kept]).cast(writer.schema))
                    left -= 0 if left < 0 else kept.num_rows
                    if not left:
                        break
            if not left:
                break
    return sha256_file(dest)


@contextmanager
def _usable(path: str) -> Iterator[None]:
    """Turn what pyarrow says of a damaged part, or of one with other columns than those before it, into an `InputError`."""
    try:
        yield
    except (pa.ArrowException, ValueError, OSError) as error:
        if getattr(error, "errno", None):  # of the disk
            raise
        why = str(error).splitlines()[0].rstrip(".")
        raise InputError("a part of the split cannot be joined with the others", where=path, why=why, do=PART) from error
