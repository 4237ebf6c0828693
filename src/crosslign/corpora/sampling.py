"""Draws that depend on a seed and a name alone, never on the order in which rows arrive."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from crosslign.corpora.staged import Staged

SPARE = 65_536
"""Rows that are held beyond twice those wanted, before those that cannot be drawn any more are let go."""
PIECE = 8192
"""Rows that lie together in memory, or a few more."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: what a counter is multiplied by."""


def priorities(keys: Sequence[str], seed: int) -> NDArray[np.uint64]:
    """Return one pseudo-random uint64 a key: equal for equal (key, seed), whatever stands around it."""
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(key.encode("utf-8", "surrogatepass"), seed) for key in keys), np.uint64, len(keys))


def sample(keys: Sequence[str], size: int, seed: int) -> NDArray[np.int64]:
    """Return the positions, ascending, of `size` keys drawn without replacement; all where there are fewer.

    The keys of least priority are taken, so a smaller sample is part of every larger one of the same seed
    (docs/papers/msimcse.md asks this of the 10 k … 5 M series).
    """
    return lowest(priorities(keys, seed), size)


def lowest(values: NDArray[np.uint64], size: int) -> NDArray[np.int64]:
    """Return the positions, ascending, of the `size` least priorities; of equal ones the first."""
    return np.sort(np.argsort(values, kind="stable")[:size])


class Lowest:
    """The least of many priorities that come batch by batch, in memory for a few times as many as are wanted.

    Args:
        size: how many are wanted, at least 1.

    Attributes:
        bound: no wanted priority is above it; it falls as batches come.
    """

    def __init__(self, size: int) -> None:
        self.size = max(size, 1)
        self.bound = np.uint64(np.iinfo(np.uint64).max)
        self._held = np.empty(0, np.uint64)

    def add(self, values: NDArray[np.uint64]) -> None:
        """Add priorities, shape [n]; those above the bound may be left out."""
        self._held = np.concatenate([self._held, values])
        if len(self._held) > 2 * self.size + SPARE:
            self.final()

    def final(self) -> np.uint64:
        """Return the greatest wanted priority of those that came."""
        if len(self._held) > self.size:
            self._held = np.partition(self._held, self.size - 1)[: self.size]
            self.bound = self._held.max()
        return self.bound


Keys = Callable[[pa.Table], NDArray[np.bytes_]]
"""The key of each row: rows of equal keys count as one."""


class Draw:
    """A sample of rows that come table by table: those of the least priorities, in the order in which they came.

    The priority of a row depends only on the seed and its key (on its id, where rows have no keys). So rows of equal keys are drawn or left
    together, the first of them stands for all, and whether duplicates, or rows that filters drop, are taken out before the draw or after it
    is all the same. Memory is that of some three times the sample, however many rows come.

    Args:
        size: rows that are wanted.
        seed: of the draw.
        keys: the key of each row; None where no rows count as one.

    Attributes:
        bound: no row of a greater priority is drawn any more; it falls as rows come.
        repeats: rows that were left out since another one of their key stands for them.
    """

    def __init__(self, size: int, seed: int, keys: Keys | None = None) -> None:
        self.size = max(size, 1)
        self.bound = np.uint64(np.iinfo(np.uint64).max)
        self.repeats = 0
        self._seed, self._keys = seed, keys
        self._held: list[_Held] = []
        self._rows = 0

    def _priorities(self, table: pa.Table) -> tuple[NDArray[np.uint64], NDArray[np.bytes_] | None]:
        if self._keys is None:
            return priorities(table["id"].to_pylist(), self._seed), None
        keys = self._keys(table)
        return draws(np.ascontiguousarray(keys).view("<u8")[::2], self._seed), keys

    def drawable(self, table: pa.Table) -> pa.Table:
        """Return the rows of a table that can still be drawn."""
        if not table.num_rows or self.bound == np.iinfo(np.uint64).max:
            return table
        return table.filter(pa.array(self._priorities(table)[0] <= self.bound))

    def add(self, table: pa.Table) -> None:
        """Add rows that filters have left."""
        if table.num_rows:
            held = _Held(table, *self._priorities(table))
            self._hold(held.chosen(held.values <= self.bound))
        if self._rows > 2 * self.size + SPARE:
            self._settle()

    def _hold(self, held: _Held) -> None:
        if held.table.num_rows:
            self._held.append(held)
            self._rows += held.table.num_rows

    def _settle(self) -> None:
        """Keep the first of rows of equal keys, and of these the wanted number."""
        values = np.concatenate([held.values for held in self._held])
        wanted = np.ones(len(values), bool)
        if self._keys is not None:
            wanted = _first(np.concatenate([held.keys for held in self._held if held.keys is not None]))
            self.repeats += len(values) - int(wanted.sum())
        if wanted.sum() > self.size:
            places = np.flatnonzero(wanted)
            places = places[lowest(values[places], self.size)]
            self.bound = values[places].max()
            wanted[:] = False
            wanted[places] = True
        # Table by table, each let go when what stays of it is copied: all rows twice would be half of the memory.
        before, self._held, self._rows, start = self._held[::-1], [], 0, 0
        few: list[_Held] = []
        while before:
            held = before.pop()
            end = start + held.table.num_rows
            few.append(held.chosen(wanted[start:end]))
            start = end
            if not before or sum(part.table.num_rows for part in few) >= PIECE:
                self._hold(_Held.joined(few))
                few = []

    def drawn(self) -> Iterator[pa.Table]:
        """Yield the sample, once all rows have come."""
        if self._held:
            self._settle()
        self._held.reverse()
        while self._held:
            yield self._held.pop().table


@dataclass(frozen=True)
class _Held:
    """Rows that may be drawn, with the priority and, where rows have keys, the key of each."""

    table: pa.Table
    values: NDArray[np.uint64]
    keys: NDArray[np.bytes_] | None

    def chosen(self, wanted: NDArray[np.bool_]) -> _Held:
        """Return some of the rows, copied: a slice would keep the others in memory."""
        if wanted.all():
            return self
        return _Held(self.table.filter(pa.array(wanted)), self.values[wanted], None if self.keys is None else self.keys[wanted])

    @classmethod
    def joined(cls, parts: Sequence[_Held]) -> _Held:
        """Return the rows of several together, in one piece: tables of a few rows take more memory than the rows."""
        keys = [part.keys for part in parts if part.keys is not None]
        table = pa.concat_tables([part.table for part in parts]).combine_chunks()
        return cls(table, np.concatenate([part.values for part in parts]), np.concatenate(keys) if keys else None)


def _first(keys: NDArray[np.bytes_]) -> NDArray[np.bool_]:
    """Return which rows are the first of their key."""
    pairs = np.ascontiguousarray(keys).view("<u8").reshape(-1, 2)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    new = np.ones(len(order), bool)
    new[1:] = (pairs[order[1:]] != pairs[order[:-1]]).any(axis=1)
    found = np.zeros(len(order), bool)
    found[np.minimum.reduceat(order, np.flatnonzero(new)) if len(order) else order] = True
    return found


def generator(seed: int, *names: str) -> random.Random:
    """Return a generator of its own for one named thing (a row, a group)."""
    return random.Random(xxhash.xxh3_64_intdigest("\x1f".join(names).encode("utf-8", "surrogatepass"), seed))


def scrambled(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 bits that look drawn for each number, in its place: the output function of SplitMix64 (Steele, Lea and Flood 2014)."""
    values ^= values >> np.uint64(30)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values


def draws(keys: NDArray[np.uint64], counters: NDArray[np.int64] | int) -> NDArray[np.uint64]:
    """Return the draw of each counter from 0 in the stream of each key: any of them without those before it (SplitMix64)."""
    return scrambled(keys + (np.atleast_1d(counters).astype(np.uint64) + np.uint64(1)) * GOLDEN)


def below(numbers: NDArray[np.uint64], bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a whole number from 0 to bound - 1 (bounds up to 2^31) by the upper half of each draw, all equally likely."""
    return (((numbers >> np.uint64(32)) * bounds.astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


def sampled(tables: Iterable[pa.Table], path: Path, limit: int, seed: int) -> Iterator[pa.Table]:
    """Yield the rows of the `limit` least priorities of their ids, in their order, in bounded memory.

    Args:
        tables: rows with a column `id`.
        path: file for the rows that may be chosen; what is above the bound so far is not even written.
        limit: number of rows wanted.
        seed: of the draw.
    """
    least = Lowest(limit)
    with Staged(path) as staged:
        for table in tables:
            keys = priorities(table["id"].to_pylist(), seed)
            keep = keys <= least.bound
            least.add(keys[keep])
            staged.write(table.filter(pa.array(keep)))
    for table in staged.read():
        yield table.filter(pa.array(priorities(table["id"].to_pylist(), seed) <= least.final()))
