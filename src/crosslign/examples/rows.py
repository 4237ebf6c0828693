"""Rows that are read part by part, and put into another order, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosslign.corpora.sampling import priorities
from crosslign.corpora.segments import SortedKeys
from crosslign.corpora.staged import Staged
from crosslign.files import head_of, iter_rows, read_rows
from crosslign.files.rows import pieces
from crosslign.files.temporary import temporary_folder

SHELF = 131_072
"""Rows that are put into order together."""
MOST_SHELVES = 256
PLACE = "place"


@dataclass(frozen=True)
class Rows:
    """Rows of a corpus, a view or a training set, to be read as often as they are asked for.

    Attributes:
        columns: names of the columns.
        size: number of rows.
        parts: called with some of the columns, yields these in tables of at most 65,536 rows, at least one table.
    """

    columns: Sequence[str]
    size: int
    parts: Callable[[Sequence[str]], Iterator[pa.Table]]

    @classmethod
    def of_file(cls, path: Path) -> Rows:
        """Return the rows of a Parquet file."""
        columns, size = head_of(path)

        def parts(names: Sequence[str]) -> Iterator[pa.Table]:
            for part in iter_rows(path, list(names)) if size else [read_rows(path)]:
                yield part.select(list(names))

        return cls(columns, size, parts)

    def table(self, columns: Sequence[str]) -> pa.Table:
        """Return some columns of all rows at once."""
        return pa.concat_tables(list(self.parts(columns)))


def gathered(parts: Iterable[pa.Table], order: NDArray[np.int64]) -> Iterator[pa.Table]:
    """Yield rows by number, in that order, in tables of at most 65,536 rows.

    The parts are read once. Each row goes to the shelf (a temporary file, TMPDIR) of its places in the order; one shelf after the
    other is then sorted in memory. Memory is about 32 bytes for each number in the order, and one shelf.

    Args:
        parts: the rows, at least one table (of no row, where there is none).
        order: row numbers, each as often as the row is wanted, shape [n].
    """
    size = max(SHELF, -(-len(order) // MOST_SHELVES))
    by_row = np.argsort(order, kind="stable")
    with temporary_folder("crosslign-shelves-") as folder:
        with ExitStack() as stack:
            shelves = [stack.enter_context(Staged(Path(folder, f"{n}.arrow"))) for n in range(-(-len(order) // size))]
            start = 0
            for part in parts:
                first, last = np.searchsorted(order, [start, start + part.num_rows], sorter=by_row)
                places = by_row[first:last]
                places = places[np.argsort(places // size, kind="stable")]
                picked = part.take(pa.array(order[places] - start)).append_column(PLACE, pa.array(places))
                ends = np.searchsorted(places // size, np.arange(len(shelves) + 1))
                for shelf, begin, end in zip(shelves, ends, ends[1:], strict=False):
                    shelf.write(picked.slice(begin, end - begin))
                start += part.num_rows
        if not shelves:
            yield part.slice(0, 0)
        for shelf in shelves:
            table = pa.concat_tables(list(shelf.read()))
            yield from pieces(table.take(pa.array(np.argsort(table[PLACE].to_numpy()))).drop_columns([PLACE]))


def cut(parts: Iterator[pa.Table], sizes: Iterable[int]) -> Iterator[pa.Table]:
    """Yield the rows of tables (at least one) in tables of the given sizes, whose sum is at most the number of rows."""
    waiting = next(parts)
    for size in sizes:
        while waiting.num_rows < size:
            waiting = pa.concat_tables([waiting, next(parts)])
        yield waiting.slice(0, size)
        waiting = waiting.slice(size)


def in_steps(parts: Iterator[pa.Table], size: int, step: int) -> Iterator[pa.Table]:
    """Yield `size` rows of tables in tables of at most 131,072 that are whole multiples of `step`, as `size` is one."""
    most = max(SHELF // step, 1) * step
    return cut(parts, (min(most, size - start) for start in range(0, size, most)))


class Numbers:
    """The numbers of rows by their id, 16 bytes a row.

    Ids are compared by 64 bits of hash: among ten million, two are mistaken with a probability of 3 in a million.
    """

    def __init__(self, parts: Iterable[pa.Table]) -> None:
        self._keys = SortedKeys(np.uint64)
        self.size = 0
        for part in parts:
            self._keys.add(priorities(part["id"].to_pylist(), 0), np.arange(self.size, self.size + part.num_rows))
            self.size += part.num_rows

    def find(self, ids: pa.ChunkedArray) -> NDArray[np.int64]:
        """Return the number of the row of each id, -1 where there is none."""
        found = np.full(len(ids), -1, np.int64)
        positions, numbers = self._keys.find(priorities(ids.to_pylist(), 0))
        found[positions] = numbers
        return found
