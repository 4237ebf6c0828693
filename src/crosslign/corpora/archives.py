"""Archives, opened without trust: what would land elsewhere, is not a plain file, or is larger than allowed is refused by name."""

from __future__ import annotations

import errno
import io
import lzma
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

from crosslign.config.catalog import is_head
from crosslign.corpora.unpacking import CHUNK, MAGIC, PACKED, damaged, unpacked
from crosslign.errors import InputError
from crosslign.files import atomic_folder, atomic_path

GIGABYTE = 1 << 30
LONGEST_HEADER = 1 << 20
"""Bytes of a tar's extended header, a long name or notes, which tarfile holds in memory."""
EXTENDED = frozenset({tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK})
TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst")
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, RuntimeError, NotImplementedError)


@dataclass(frozen=True)
class _Member:
    """One member of an archive: `plain` is false for links, devices and pipes; `size` is the declared one, -1 where none is."""

    name: str
    plain: bool
    size: int
    open: Callable[[], IO[bytes]]


def open_stream(path: Path) -> IO[bytes]:
    """Open a file for reading bytes; `.gz`, `.bz2`, `.xz` and `.zst` are unpacked on the way, and a packed `.tar`, as the command does.

    Of the beginning of a file, whose name says so, come whole lines.
    """
    file = path.open("rb")
    begins = file.peek() if path.suffix == ".tar" else b""
    packing = next((suffix for magic, suffix in MAGIC.items() if begins.startswith(magic)), "")
    return unpacked(file, path.name + packing, str(path), cut=is_head(path.name))


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Turn what the unpacking libraries raise over damaged or truncated bytes into an `InputError` that names the file."""
    try:
        yield
    except DAMAGED as error:
        raise damaged(str(path), str(error) or type(error).__name__) from error
    except FileNotFoundError as error:
        raise InputError("file is missing", where=str(path)) from error
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # EINVAL: a zip's directory that says it begins before the file does
            raise
        raise damaged(str(path), str(error)) from error


def _zip_stream(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    """Open a member; its own `readline` is slow when it is given a bound."""
    return io.BufferedReader(cast("io.RawIOBase", archive.open(info)), CHUNK)


def _zip_members(path: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                kind = stat.S_IFMT(info.external_attr >> 16)
                name = info.filename.removeprefix("./")
                yield _Member(name, kind in (0, stat.S_IFREG), info.file_size, partial(_zip_stream, archive, info))


class _Header(tarfile.TarInfo):
    """A header of a tar: tarfile takes one that is damaged or missing for the end, and holds in memory whatever follows one."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        """Read one.

        Raises:
            tarfile.ReadError: it is cut, damaged, or missing where no block of zeros ends the archive; or a long name, or the notes
                about a member, have more than `LONGEST_HEADER` bytes.
            tarfile.HeaderError: the end of the archive.
        """
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):
                raise
            raise tarfile.ReadError(f"{error}: expected a member or the end of the archive") from error
        if header.type in EXTENDED and header.size > LONGEST_HEADER:
            raise tarfile.ReadError(f"a header has {header.size:,} bytes, {LONGEST_HEADER:,} are allowed")
        return header


def _tar_members(path: Path) -> Iterator[_Member]:
    with open_stream(path) as stream, tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as archive:
        for info in archive:
            if not info.isdir():
                name = info.name.removeprefix("./")  # as in the archive of FLORES-200
                yield _Member(name, info.isreg(), info.size, lambda info=info: cast("IO[bytes]", archive.extractfile(info)))  # type: ignore[misc]


def _members(path: Path) -> Iterator[_Member]:
    """Yield members in archive order; a file packed alone has one member, its name without the suffix."""
    if path.suffix in (".zip", ".whl"):
        yield from _zip_members(path)
    elif path.name.endswith(TAR_SUFFIXES):
        yield from _tar_members(path)
    elif path.suffix in PACKED:
        with open_stream(path) as stream:
            yield _Member(path.stem, True, -1, lambda: stream)
    else:
        raise InputError(
            "unknown archive format",
            where=str(path),
            why="allowed: .zip, .whl, .tar, .tar.gz, .tar.bz2, .tar.xz, .tar.zst, .gz, .bz2, .xz, .zst",
        )


def _check(member: _Member, archive: Path, left: int) -> None:
    """Refuse a member by name.

    Raises:
        InputError: it would land outside the folder, is not a plain file, or declares more than is allowed.
    """
    parts = re.split(r"[/\\]", member.name)
    if member.name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", member.name) or ".." in parts or "\0" in member.name or not parts[-1]:
        raise InputError(f"member {member.name!r} would land outside the folder", where=str(archive))
    if not member.plain:
        raise InputError(f"member {member.name!r} is a link or a device, not a file", where=str(archive))
    if member.size > left:
        raise InputError(
            f"member {member.name!r} is larger than allowed", where=str(archive), why=f"{member.size:,} bytes declared, {left:,} allowed"
        )


def _copy(member: _Member, archive: Path, dest: Path, left: int) -> int:
    """Write a member to `dest` and return its size; stop where it grows beyond what is allowed."""
    written = 0
    with member.open() as source, open(dest, "wb") as out:
        while chunk := source.read(CHUNK):
            written += len(chunk)
            if written > left:
                raise InputError(
                    f"member {member.name!r} is larger than allowed", where=str(archive), why=f"it unpacks to more than {left:,} bytes"
                )
            out.write(chunk)
    return written


def member_names(archive: Path) -> list[str]:
    """Return the names of all files in an archive, in archive order."""
    archive = Path(archive)
    with damage_named(archive):
        return [member.name for member in _members(archive)]


def read_through(archive: Path) -> None:
    """Unpack every member of an archive, or a file packed alone, to its last byte, and keep nothing of it.

    Raises:
        InputError: what is damaged.
    """
    archive = Path(archive)
    with damage_named(archive):
        for member in _members(archive):
            if member.plain:
                with member.open() as stream:
                    while stream.read(CHUNK):
                        pass


@contextmanager
def open_member(archive: Path, member: str) -> Iterator[IO[bytes]]:
    """Open one member of an archive for reading bytes as they are unpacked; nothing is written.

    Args:
        archive: path whose suffix names the format.
        member: its exact name; the first of that name is meant.

    Raises:
        InputError: no such member, an unsafe one, or a damaged archive, while reading too.
    """
    archive = Path(archive)
    with damage_named(archive):
        for found in _members(archive):
            if found.name == member:
                _check(found, archive, max(found.size, 0))
                with found.open() as stream:
                    yield stream
                return
    raise InputError(f"member {member!r} is not in the archive", where=str(archive))


def extract_member(archive: Path, member: str, dest: Path, max_bytes: int) -> None:
    """Extract one member of a zip, wheel, tar (gz, bz2, xz, zst) or singly packed file to `dest`, whole or not at all.

    Args:
        archive: path whose suffix names the format.
        member: its exact name.
        dest: final path of the file.
        max_bytes: the largest size that is accepted, declared or real.

    Raises:
        InputError: no such member, two of that name, an unsafe one, too large a one, or a damaged archive.
    """
    archive, seen = Path(archive), 0
    with atomic_path(dest) as temporary, damage_named(archive):
        for found in _members(archive):
            if found.name == member:
                seen += 1
                if seen > 1:
                    raise InputError(f"member {member!r} occurs twice", where=str(archive))
                _check(found, archive, max_bytes)
                _copy(found, archive, temporary, max_bytes)
        if not seen:
            raise InputError(f"member {member!r} is not in the archive", where=str(archive))


def extract_folder(archive: Path, prefix: str, dest: Path, max_bytes: int) -> list[Path]:
    """Extract every member whose name begins with `prefix` (all, when it is empty) below the folder `dest`, all or none.

    Args:
        archive: path whose suffix names the format.
        prefix: start of the members' names, which keep it below `dest`.
        dest: final folder; an older one is replaced.
        max_bytes: the largest size, declared or real, of all members together.

    Returns:
        Paths of the files, in archive order.

    Raises:
        InputError: as `extract_member`.
    """
    archive, left = Path(archive), max_bytes
    names: list[str] = []
    with atomic_folder(dest) as temporary, damage_named(archive):
        for member in _members(archive):
            if not member.name.startswith(prefix):
                continue
            _check(member, archive, left)
            path = temporary / member.name
            if path.exists() or any((temporary / parent).is_file() for parent in Path(member.name).parents):
                raise InputError(f"member {member.name!r} occurs twice", where=str(archive))
            path.parent.mkdir(parents=True, exist_ok=True)
            left -= _copy(member, archive, path, left)
            names.append(member.name)
        if not names:
            raise InputError(f"no member begins with {prefix!r}", where=str(archive))
    return [Path(dest) / name for name in names]
