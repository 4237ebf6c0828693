"""Streams that are unpacked ahead, by threads: zlib, bz2, lzma and zstd let other threads run while they work."""

from __future__ import annotations

import io
import queue
import threading
from typing import IO, Any

CHUNK = 1 << 20
DEPTH = 4
"""Chunks that wait to be read."""


class Ahead(io.RawIOBase):
    """The bytes of a stream, which a thread of its own reads while those before are worked on; errors come where the bytes would have.

    Args:
        stream: what is read, from its first byte to its last; no one else may touch it, and who made it closes it.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._waiting: queue.Queue[bytes | BaseException] = queue.Queue(DEPTH)
        self._left, self._ended, self._unwanted = b"", False, False
        self._thread = threading.Thread(target=self._read, name="unpacking", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            chunk = b"first"
            while chunk and not self._unwanted:
                chunk = self._stream.read(CHUNK)
                self._waiting.put(chunk)
        except BaseException as error:
            self._waiting.put(error)

    def readable(self) -> bool:
        """Return that it is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the beginning of a buffer; return how many bytes, 0 at the end."""
        if not self._left and not self._ended:
            found = self._waiting.get()
            if isinstance(found, BaseException):
                self._ended = True
                raise found
            self._left, self._ended = found, not found
        made, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(made)] = made
        return len(made)

    def close(self) -> None:
        """Have the thread end, whatever it has not read yet."""
        self._unwanted = True
        while self._thread.is_alive():
            try:
                self._waiting.get(timeout=0.01)
            except queue.Empty:
                continue
        super().close()


def ahead(stream: IO[bytes]) -> IO[bytes]:
    """Return the bytes of a packed stream, unpacked by a thread; it ends when what is returned is closed, which leaves the stream open."""
    return io.BufferedReader(Ahead(stream), CHUNK)
