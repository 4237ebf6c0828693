"""Files below a folder in which others work: jobs of this run and of others, other users, a person with `rm`."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
"""What is said of a file that goes away this moment: by NFS also that the handle of it is stale, after another machine removed it."""
NOWHERE = (*GONE, errno.ENAMETOOLONG, errno.ELOOP)
"""What is said of a path where nothing can lie either: one of a name longer than any, or a link to itself."""


def is_unfinished(name: str) -> bool:
    """Tell whether a file or folder is nobody's result: half-written (`.part`), hidden, or left by NFS (`.nfs…`)."""
    return name.startswith(".") or name.endswith(".part")


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder in the order of their paths; what is unfinished, no file, or goes away meanwhile is passed over."""
    found: list[Path] = []
    for place, folders, files in os.walk(folder):  # a folder that went away, or may not be read, has no files
        folders[:] = [name for name in folders if not is_unfinished(name)]
        found += [Path(place, name) for name in files if not is_unfinished(name)]
    yield from filter(is_plain, sorted(found))


def closed_below(folder: Path) -> list[tuple[Path, OSError]]:
    """Return the folders and files below a folder, itself included, that this user or the disk does not let be looked at, and why.

    `files_below` passes over them: who takes what it yields for all that is there must ask here.
    """
    found: list[OSError] = []
    for place, folders, files in os.walk(folder, onerror=found.append):
        folders[:] = [name for name in folders if not is_unfinished(name)]
        for name in files:
            try:
                _ = is_unfinished(name) or Path(place, name).stat()
            except OSError as error:
                found.append(error)
    return [(Path(error.filename), error) for error in found if error.errno not in NOWHERE]


def folders_in(folder: Path) -> list[Path]:
    """Return the finished folders in a folder, sorted; none where it is not there."""
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries if not is_unfinished(entry.name) and entry.is_dir())
    except OSError:
        return []


@contextmanager
def passing_gone() -> Iterator[None]:
    """Pass over a file that goes away while the block looks at it."""
    try:
        yield
    except OSError as error:
        if error.errno not in GONE:
            raise


def is_there(path: Path) -> bool:
    """Tell whether something lies at a path; not where its name is longer than any, as one made of a person's can be."""
    try:
        return path.exists()
    except OSError as error:
        if error.errno in NOWHERE:
            return False
        raise


def size_of(path: Path) -> int:
    """Return the bytes of a file; 0 where it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def disk_below(folder: Path) -> int:
    """Return the bytes of the files below a folder; those of one that has several names there count once."""
    sizes = {}
    for path in files_below(folder):
        with suppress(OSError):  # gone since
            found = path.stat()
            sizes[found.st_dev, found.st_ino] = found.st_size
    return sum(sizes.values())


def is_plain(path: Path) -> bool:
    """Tell whether a path is a file that can be read to its end, or a folder: no pipe, socket or device."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
