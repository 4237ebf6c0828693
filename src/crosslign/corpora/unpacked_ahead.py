"""Streams that are unpacked ahead, by a thread: zlib, bz2, lzma and zstd let other threads run while they work."""

from __future__ import annotations

import io
from functools import partial
from typing import IO, Any

from crosslign.ahead import one_ahead

CHUNK = 1 << 20


class Ahead(io.RawIOBase):
    """The bytes of a stream, which a thread reads while those before are worked on; errors come where the bytes would have.

    Args:
        stream: what is read, from its first byte to its last; no one else may touch it, and who made it closes it.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._chunks = one_ahead(iter(partial(stream.read, CHUNK), b""), "unpacking")
        self._left = b""

    def readable(self) -> bool:
        """Return that it is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the beginning of a buffer; return how many bytes, 0 at the end."""
        self._left = self._left or next(self._chunks, b"")
        made, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(made)] = made
        return len(made)

    def close(self) -> None:
        """Have the thread end, whatever it has not read yet."""
        self._chunks.close()
        super().close()


def ahead(stream: IO[bytes]) -> IO[bytes]:
    """Return the bytes of a packed stream, unpacked by a thread; it ends when what is returned is closed, which leaves the stream open."""
    return io.BufferedReader(Ahead(stream), CHUNK)
