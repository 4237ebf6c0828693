"""Archives and packed files whose bytes depend on their content alone: no clock, no user, no library's version."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Mapping

import pyarrow as pa

from crosslign.errors import InputError

EPOCH = (1980, 1, 1, 0, 0, 0)


def lines(rows: list[str]) -> bytes:
    """Return rows as lines of UTF-8."""
    return "".join(row + "\n" for row in rows).encode("utf-8")


def _zip(members: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content)  # not deflated: its bytes would depend on the version of zlib
    return packed.getvalue()


def _tar(members: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def packed(name: str, content: bytes) -> bytes:
    """Return content as a file of this name holds it: gz, bz2, xz, zst, or as it is."""
    if name.endswith((".gz", ".tgz")):
        return gzip.compress(content, mtime=0)
    if name.endswith((".bz2", ".tbz2")):
        return bz2.compress(content)
    if name.endswith((".xz", ".txz")):
        return lzma.compress(content)
    if name.endswith(".zst"):
        return bytes(pa.Codec("zstd").compress(content, asbytes=True))
    return content


def archive(name: str, members: Mapping[str, bytes]) -> bytes:
    """Return an archive of the kind that its name says; members keep their order.

    Raises:
        InputError: the name is that of no archive.
    """
    if name.endswith((".zip", ".whl")):
        return _zip(members)
    if ".tar" in name or name.endswith((".tgz", ".tbz2", ".txz")):
        return packed(name, _tar(members))
    raise InputError(f"{name!r} is not an archive", why="allowed: .zip, .whl, .tar, .tar.gz, .tar.bz2, .tar.xz, .tar.zst")
