"""Equal sentences: the key that ignores case, width, spaces and punctuation, and sets of such keys."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from crosslign.corpora.characters import BARE, WORDLESS
from crosslign.corpora.segments import SortedKeys

KEY_TYPE = np.dtype("S16")
"""128 bits a key."""

_HASH = xxhash.xxh3_128_digest


def bare(text: str) -> str:
    """Return a text as docs/filters-and-views.md compares it: NFKC, casefold, no character of the categories P, S, Z and C.

    A text that has nothing else (`!!!`, an emoji) is compared by its NFKC casefold itself, behind a NUL,
    so that not all such texts count as one.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return folded.translate(BARE) or f"\0{folded}"


def bares(texts: Sequence[str]) -> list[str]:
    """Return `bare` of each text, characters looked up for all texts at once."""
    folded = [unicodedata.normalize("NFKC", text).casefold() for text in texts]
    codes = np.frombuffer("".join(folded).encode("utf-32-le", "surrogatepass"), "<u4")
    left = WORDLESS.of(codes) == 0
    ends = np.concatenate([[0], np.cumsum(left)])[np.cumsum([0, *map(len, folded)])].tolist()
    whole = codes[left].tobytes().decode("utf-32-le", "surrogatepass")
    return [whole[start:end] or f"\0{text}" for text, start, end in zip(folded, ends, ends[1:], strict=False)]


def digest(text: str) -> bytes:
    """Return 128 bits (xxh3) of a text as it stands."""
    return _HASH(text.encode("utf-8", "surrogatepass"))


def digests(texts: pa.Array | pa.ChunkedArray) -> NDArray[np.bytes_]:
    """Return the digest of each text of a column without nulls, shape [texts], type S16."""
    return np.frombuffer(b"".join(map(_HASH, texts.cast(pa.binary()).to_pylist())), KEY_TYPE)


def keys_of(texts: pa.Array | pa.ChunkedArray) -> NDArray[np.bytes_]:
    """Return a 128-bit key of the bare form (`bare`) of each text of a column without nulls: shape [texts], type S16."""
    return digests(pa.array(bares(texts.to_pylist()), pa.string()))


def _halves(keys: NDArray[np.bytes_]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return both halves of each key as numbers: they sort many times faster than bytes."""
    pairs = np.ascontiguousarray(keys).view("<u8").reshape(-1, 2)
    return pairs[:, 0].copy(), pairs[:, 1].copy().view(np.int64)


def _runs(first: NDArray[np.uint64], second: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return an order in which equal keys stand together, and where in it each key begins."""
    order = np.argsort(first)
    a, b = first[order], second[order]
    new = np.ones(len(order), bool)
    new[1:] = a[1:] != a[:-1]
    if (~new[1:] & (b[1:] != b[:-1])).any():  # half a key in common: one pair in 2^64
        order = np.lexsort((second, first))
        a, b = first[order], second[order]
        new[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return order, np.flatnonzero(new)


class KeySet:
    """A set of 128-bit keys in 16 bytes each: sorted first halves, each with its second one."""

    def __init__(self) -> None:
        self._keys = SortedKeys(np.uint64)

    def __len__(self) -> int:
        return len(self._keys)

    def parts(self) -> Iterator[NDArray[np.bytes_]]:
        """Yield all keys, in a few arrays."""
        for first, second in self._keys.parts():
            yield np.stack([first, second.view(np.uint64)], axis=1).view(KEY_TYPE).ravel()

    def contains(self, keys: NDArray[np.bytes_]) -> NDArray[np.bool_]:
        """Return whether each key is in the set."""
        return self._has(*_halves(keys))

    def _has(self, first: NDArray[np.uint64], second: NDArray[np.int64]) -> NDArray[np.bool_]:
        mask = np.zeros(len(first), bool)
        positions, found = self._keys.find(first)
        mask[positions[found == second[positions]]] = True
        return mask

    def insert(self, keys: NDArray[np.bytes_]) -> NDArray[np.bool_]:
        """Add keys; return which of them are new: neither in the set nor earlier in `keys`."""
        first, second = _halves(keys)
        new = np.zeros(len(keys), bool)
        order, starts = _runs(first, second)
        if len(starts):
            rows = np.minimum.reduceat(order, starts)  # in the order of their keys, which are found faster so
            rows = rows[~self._has(first[rows], second[rows])]
            self._keys.add(first[rows], second[rows])
            new[rows] = True
        return new


IN_MEMORY = 250_000
"""Keys of one kind that are held in memory (16 bytes each, three times that while they are merged); more of them wait on disk."""


class RowSet:
    """A set of row numbers from 0 to `rows` - 1, in one bit each."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._count = 0
        self._bits = np.zeros((rows + 7) // 8, np.uint8)

    def add(self, rows: NDArray[np.int64]) -> None:
        """Add rows that are not in the set, each once."""
        ordered = np.sort(rows)
        places, starts = np.unique(ordered >> 3, return_index=True)
        if len(places):
            self._bits[places] |= np.bitwise_or.reduceat(np.uint8(1) << (ordered & 7).astype(np.uint8), starts)
        self._count += len(rows)

    def all(self) -> bool:
        """Return whether every row is in the set."""
        return self._count == self._rows

    def mask(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return which of the rows from `start` to `stop` - 1 are in the set."""
        bits = np.unpackbits(self._bits[start // 8 : (stop + 7) // 8], bitorder="little")
        return bits[start % 8 : start % 8 + stop - start].astype(bool)


class KeysOnDisk:
    """Which of any number of keys are new, found in bounded memory: they lie in one file, in stretches ordered by their first byte.

    Memory is one bit a row, the keys that wait to be written, and those of one first byte at a time (48 bytes each while sorted).

    Args:
        folder: an empty folder for the file, 24 bytes a key.
    """

    RECORD = np.dtype([("key", KEY_TYPE), ("row", "<i8")])
    WAITING = 65_536
    """Keys that are written together, as one stretch."""
    AT_ONCE = 1 << 22
    """Keys that are sorted at a time, some 400 MB with what sorting takes: of a larger part some keys, then the next ones."""

    def __init__(self, folder: Path) -> None:
        self._path = Path(folder, "keys")
        self._rows = 0
        self._waiting: list[NDArray[Any]] = []
        self._bounds = [np.zeros(257, np.int64)]

    def add(self, keys: NDArray[np.bytes_], *, known: bool = False) -> None:
        """Add the keys of the next rows; with `known`, keys that no row may have."""
        records = np.empty(len(keys), self.RECORD)
        records["key"] = keys
        records["row"] = -1 if known else np.arange(self._rows, self._rows + len(keys))
        self._rows += 0 if known else len(keys)
        self._waiting.append(records)
        if sum(map(len, self._waiting)) >= self.WAITING:
            self._write()

    def _write(self) -> None:
        if not self._waiting:
            return
        records, self._waiting = np.concatenate(self._waiting), []
        parts = records.view(np.uint8).reshape(-1, self.RECORD.itemsize)[:, 0]
        order = np.argsort(parts, kind="stable")
        with self._path.open("ab") as file:
            records.take(order).tofile(file)  # several times as fast as by an index
        self._bounds.append(self._bounds[-1][-1] + np.searchsorted(parts[order], np.arange(257)))

    def new(self) -> RowSet:
        """Return the rows whose key is neither a known one nor that of an earlier row."""
        self._write()
        found = RowSet(self._rows)
        if len(self._bounds) > 1:
            with self._path.open("rb") as file:
                for part in range(256):
                    ways = 1 + sum(int(bounds[part + 1] - bounds[part]) for bounds in self._bounds[1:]) // self.AT_ONCE
                    for way in range(min(ways, 256)):
                        found.add(self._new_of(part, file, way, min(ways, 256)))
        return found

    def _new_of(self, part: int, file: IO[bytes], way: int, ways: int) -> NDArray[np.int64]:
        """Return the new rows among the keys of a part whose second byte falls to `way` of `ways`."""
        stretches = []
        for bounds in self._bounds[1:]:
            file.seek(int(bounds[part]) * self.RECORD.itemsize)
            stretch = np.fromfile(file, self.RECORD, int(bounds[part + 1] - bounds[part]))
            second = stretch.view(np.uint8).reshape(-1, self.RECORD.itemsize)[:, 1]
            stretches.append(stretch if ways == 1 else stretch[second.astype(np.int64) * ways // 256 == way])
        records = np.concatenate(stretches)
        order, starts = _runs(*_halves(records["key"]))
        rows: NDArray[np.int64] = np.minimum.reduceat(records["row"][order], starts) if len(starts) else records["row"]
        return rows[rows >= 0]
