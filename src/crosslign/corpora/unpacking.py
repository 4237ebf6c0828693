"""Packed streams (gz, bz2, xz, zst) unpacked on the way, one behind another as their formats allow; damage is named with its place."""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import PurePath
from typing import IO, Any, Protocol

import pyarrow as pa

from crosslign.errors import InputError

FED = 1 << 16
"""Packed bytes that are taken at a time."""
CHUNK = 1 << 20
HELD = 1 << 27
"""Bytes of a line that wait for its end."""
FORMATS = {".tgz": ".gz", ".tbz2": ".bz2", ".txz": ".xz"}
"""Of a packed tar, the suffix of its packing."""
MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
"""What a packed stream begins with, and the suffix of its packing."""


class Decompressor(Protocol):
    """One stream, as bz2 and lzma of the standard library have it."""

    @property
    def eof(self) -> bool:
        """Whether the stream is over."""
        ...

    @property
    def needs_input(self) -> bool:
        """Whether nothing comes before more packed bytes do."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What follows the stream."""
        ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Return at most `max_length` unpacked bytes; what of `data` was not needed for them waits inside."""
        ...


class _Gzip:
    """A stream of gzip in the form of the others; its length and checksum are verified at its end."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        """Whether the stream is over."""
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        """What follows the stream."""
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Return at most `max_length` unpacked bytes."""
        made = self._stream.decompress(self._stream.unconsumed_tail + data, max(max_length, 0))
        self.needs_input = not self._stream.unconsumed_tail and len(made) != max_length
        return made


DECOMPRESSORS: dict[str, Callable[[], Decompressor]] = {".gz": _Gzip, ".bz2": bz2.BZ2Decompressor, ".xz": lzma.LZMADecompressor}


PACKED = (*DECOMPRESSORS, ".zst")


AGAIN = "Delete it; the next run fetches it again. If it is copied from `local`, fix it there first"
"""What to do about a download, or a copy of a file of one's own, that cannot be read."""


def damaged(where: str, why: str) -> InputError:
    """Return the error for packed bytes that cannot be read."""
    return InputError("damaged or truncated archive", where=where, why=why, do=AGAIN)


class _Reader(io.RawIOBase):
    """The unpacked bytes of a stream, read forwards.

    Args:
        file: the packed bytes; closed with it.
        where: what messages call them.
    """

    def __init__(self, file: IO[bytes], where: str) -> None:
        self._file, self._where = file, where

    def readable(self) -> bool:
        """Return that it is."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class Unpacked(_Reader):
    """The unpacked bytes of a stream, read from its first to its last.

    A stream may follow another, and zeros may fill up the end. Anything else there is an error, as is a stream that is cut: the
    files of bz2 and lzma in the standard library end without a word where a stream behind the first one is damaged.

    Args:
        file: the packed bytes; closed with it.
        where: what messages call them.
        start: begins a stream.
        cut: the file is the beginning of another, whose last block is not whole: the bytes before that are all.
    """

    def __init__(self, file: IO[bytes], where: str, start: Callable[[], Decompressor], *, cut: bool = False) -> None:
        super().__init__(file, where)
        self._start, self._cut = start, cut
        self._begun, self._waiting = 0, b""
        self._stream: Decompressor | None = None

    def readinto(self, buffer: Any) -> int:
        """Fill the beginning of a buffer; return how many bytes, 0 at the end.

        Raises:
            InputError: what follows is not a stream of the format, or a damaged one; names the byte at which it begins.
        """
        stream = self._stream or self._next_stream()
        while stream is not None:
            made = self._unpack(stream, len(buffer))
            if made is None:
                return 0
            if stream.eof:
                self._waiting, self._stream = stream.unused_data, None
            if made:
                buffer[: len(made)] = made
                return len(made)
            stream = self._stream or self._next_stream()
        return 0

    def _next_stream(self) -> Decompressor | None:
        """Begin the next stream; None at the end of the file."""
        padding = b"\0" if self._file.tell() else b""  # zeros may stand behind a stream
        while not (packed := self._waiting.lstrip(padding)):
            self._waiting = self._file.read(FED)
            if not self._waiting:
                return None
        self._waiting, self._begun = packed, self._file.tell() - len(packed)
        self._stream = self._start()
        return self._stream

    def _unpack(self, stream: Decompressor, size: int) -> bytes | None:
        """Return at most `size` bytes; none where the stream wants more packed ones, or is over; None where the file is cut."""
        packed, self._waiting = self._waiting, b""
        if not packed and stream.needs_input:
            packed = self._file.read(FED)
            if not packed and self._cut:
                return None
        try:
            if not packed and stream.needs_input:
                raise EOFError("the file is truncated")
            return stream.decompress(packed, size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise damaged(self._where, f"{error}: the stream that begins at byte {self._begun:,} is damaged, or not compressed") from error


class WholeLines(_Reader):
    """The bytes of a stream that is cut, up to the end of its last whole line."""

    def __init__(self, file: IO[bytes], where: str) -> None:
        super().__init__(file, where)
        self._ready, self._held = b"", b""

    def readinto(self, buffer: Any) -> int:
        """Fill the beginning of a buffer; return how many bytes, 0 at the end."""
        while not self._ready and (read := self._file.read(CHUNK)):
            end = read.rfind(b"\n") + 1
            self._ready, self._held = (self._held + read[:end], read[end:]) if end else (b"", self._held + read)
            if len(self._held) > HELD:  # no text in lines: whoever reads it says so
                self._ready, self._held = self._held, b""
        made, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(made)] = made
        return len(made)


class Zstandard(_Reader):
    """The unpacked bytes of a stream of zstd; Arrow unpacks them, a bounded number at a time."""

    def __init__(self, file: IO[bytes], where: str) -> None:
        super().__init__(file, where)
        self._stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")

    def readinto(self, buffer: Any) -> int:
        """Fill the beginning of a buffer; return how many bytes, 0 at the end.

        Raises:
            InputError: damage, an end before the stream is whole, or no stream of zstd; names the byte before which it lies.
        """
        try:
            made: bytes = self._stream.read(len(buffer))
        except OSError as error:
            why = f"{str(error).removesuffix('.')}: damaged before byte {self._file.tell():,}, or not compressed"
            raise damaged(self._where, why) from error
        buffer[: len(made)] = made
        return len(made)


def unpacked(file: IO[bytes], name: str, where: str, *, cut: bool = False) -> IO[bytes]:
    """Return the bytes of a stream, unpacked where its name says that they are packed.

    Args:
        file: the stream; closed with what is returned.
        name: a file's name; `.gz`, `.bz2`, `.xz`, `.zst` and `.tgz`, `.tbz2`, `.txz` are packed.
        where: what messages call it.
        cut: it is the beginning of a file in lines; what comes of it are whole lines.
    """
    suffix = PurePath(name).suffix
    suffix = FORMATS.get(suffix, suffix)
    if suffix in PACKED:
        raw = Zstandard(file, where) if suffix == ".zst" else Unpacked(file, where, DECOMPRESSORS[suffix], cut=cut)
        file = io.BufferedReader(raw, CHUNK)
    return io.BufferedReader(WholeLines(file, where), CHUNK) if cut else file
