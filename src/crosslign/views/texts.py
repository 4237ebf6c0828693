"""Sentences on disk, read by number: the memory of a translator does not grow with its texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from crosslign.files import atomic_path, sha256_file

SUM_LENGTH = 20
"""Hexadecimal digits of a checksum in a name."""


def text_key(lang: str, text: str) -> int:
    """Return 64 bits of a sentence and its language; runs of white space count as one space."""
    return int(xxhash.xxh3_64_intdigest(f"{lang}\x1f{' '.join(text.split())}".encode("utf-8", "surrogatepass")))


def text_keys(lang: str, texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return `text_key` of each text, uint64 of shape [texts]."""
    return np.fromiter((text_key(lang, text) for text in texts), np.uint64, len(texts))


def _put(sink: pa.NativeFile, columns: dict[str, pa.Array]) -> None:
    table = pa.table(columns)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())


def write_texts(path: Path, columns: dict[str, pa.Array]) -> None:
    """Write columns of strings as one Arrow file that can be mapped into memory, whole or not at all."""
    with atomic_path(path) as temporary, pa.OSFile(str(temporary), "wb") as sink:
        _put(sink, columns)


def write_summed(folder: Path, stem: str, columns: dict[str, pa.Array]) -> Path:
    """Write columns of strings, few enough for memory, to `<folder>/<stem>-<checksum of the file>.arrow`; return the path."""
    sink = pa.BufferOutputStream()
    _put(sink, columns)
    content = sink.getvalue().to_pybytes()
    path = folder / f"{stem}-{hashlib.sha256(content).hexdigest()[:SUM_LENGTH]}.arrow"
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)
    return path


def is_whole(path: Path) -> bool:
    """Tell whether a file that `write_summed` wrote has the bytes that its name says."""
    return path.stem.rpartition("-")[2] == sha256_file(path)[:SUM_LENGTH]


class MappedTexts:
    """The strings of one column of Arrow files, mapped into memory, numbered through all files in the order of `add`.

    Args:
        column: name of the column.
    """

    def __init__(self, column: str) -> None:
        self._column = column
        self._parts: list[pa.ChunkedArray] = []
        self._ends: list[int] = []

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def add(self, path: Path) -> pa.Table:
        """Number the strings of one more file; return its table.

        Raises:
            pyarrow.ArrowInvalid: the file is no Arrow file.
        """
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
        self._parts.append(table[self._column])
        self._ends.append(len(self) + table.num_rows)
        return table

    def get(self, number: int) -> str:
        """Return one string."""
        part = int(np.searchsorted(self._ends, number, "right"))
        start = self._ends[part - 1] if part else 0
        return str(self._parts[part][number - start].as_py())
