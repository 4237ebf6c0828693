"""Reading a binary file field by field, never beyond its end."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosslign.errors import InputError

Bytes = NDArray[np.uint8]


class Cursor:
    """A place in a memory-mapped file; every read names what it wants and is refused when the file ends before.

    Args:
        path: the file, for messages.
        data: uint8 [size], its bytes.
    """

    def __init__(self, path: Path, data: Bytes) -> None:
        self.path = path
        self.data = data
        self.at = 0

    @classmethod
    def open(cls, path: Path) -> Cursor:
        """Map a file into memory; an empty or missing one is an `InputError`."""
        if not path.is_file():
            raise InputError("model file is missing", where=str(path))
        if not path.stat().st_size:
            raise InputError("model file is empty", where=str(path))
        return cls(path, np.memmap(path, dtype=np.uint8, mode="r"))

    def error(self, what: str, why: str) -> InputError:
        """Return the error for a file that is not what it should be."""
        return InputError(what, where=f"{self.path}:byte {self.at}", why=why, do="Download it again")

    def span(self, start: int, size: int, what: str) -> Bytes:
        """Return the bytes [start, start + size), wherever the cursor stands."""
        if start < 0 or size < 0 or start + size > len(self.data):
            raise self.error(f"{what} is outside the file", f"bytes {start:,} to {start + size:,} of {len(self.data):,}")
        return self.data[start : start + size]

    def take(self, size: int, what: str) -> Bytes:
        """Return the next `size` bytes and step over them."""
        taken = self.span(self.at, size, what)
        self.at += size
        return taken

    def fields(self, form: str, what: str) -> tuple[Any, ...]:
        """Read little-endian fields in the notation of `struct`."""
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form), what).tobytes())

    def array(self, dtype: str, count: int, what: str) -> NDArray[Any]:
        """Read `count` numbers of a dtype such as `<u4`."""
        return np.frombuffer(self.take(count * np.dtype(dtype).itemsize, what).tobytes(), dtype)
