"""The only way a file gets its final name: written beside it, flushed, then renamed."""

from __future__ import annotations

import errno
import logging
import os
import resource
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crosslign.errors import CrosslignError, InputError, ResourceError

log = logging.getLogger(__name__)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _says_full(error: BaseException) -> bool:
    """Tell whether a disk is full: numpy says it by a short count, safetensors and Arrow in words, both without a number."""
    said = str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "No space left" in said or "quota exceeded" in said or (isinstance(error, OSError) and "requested and" in said)


def _is_too_large(error: BaseException) -> bool:
    """Tell whether a file met the largest size that a limit or its file system allows; Arrow and safetensors say so in words."""
    return (isinstance(error, OSError) and error.errno == errno.EFBIG) or "File too large" in str(error)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that led to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def is_full(error: BaseException) -> bool:
    """Tell whether an error, or one that led to it, is that a disk is full or a quota used up."""
    return any(map(_says_full, _chain(error)))


def disk_problem(error: BaseException, path: Path, written: int = 0) -> ResourceError | None:
    """Return the error for people where a disk is full, a file too large or gone, or a right is lacking; None for every other error.

    Args:
        error: what a writer raised.
        path: what was being written.
        written: bytes of it that had been written.
    """
    if isinstance(error, ResourceError):
        return None  # it is told already
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    met = limit != resource.RLIM_INFINITY and written >= limit > 0 and is_full(error)
    if met or any(map(_is_too_large, _chain(error))):
        return ResourceError(
            "the file exceeds the size limit",
            where=str(path),
            why=f"{written:,} bytes were written" + (f", the limit is {limit:,}" if limit != resource.RLIM_INFINITY else ""),
            do="Raise the limit (ulimit -f), or put results on a file system that takes larger files, then run the same command again",
        )
    if is_full(error):
        free = shutil.disk_usage(next(folder for folder in path.absolute().parents if folder.exists())).free
        return ResourceError(
            "no space left on the disk, or quota exceeded",
            where=str(path),
            why=f"it needs more than the {free + written:,} bytes that were free" + (f"; {written:,} were written" if written else ""),
            do="Free space (crosslign plan says what a run needs), then run the same command again",
        )
    return _refused(error, path) if isinstance(error, OSError) else None


def _refused(error: OSError, path: Path) -> ResourceError | None:
    """Return the error for people where a file went away meanwhile, its name is too long, or a right is lacking."""
    if error.errno == errno.ESTALE:
        why, do = "another machine removed or replaced it on a network disk (stale file handle)", "Run the same command again"
        return ResourceError("the file disappeared", where=str(error.filename or path), why=why, do=do)
    if error.errno == errno.ENAMETOOLONG:
        return _unwritable(error, path)
    if error.errno == errno.ELOOP:
        do = "Remove the link, or let it lead to a file"
        return ResourceError("the link leads to itself", where=str(error.filename or path), do=do)
    if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
        return None
    if closed := _closed(error.filename):
        return ResourceError("cannot be read", where=closed, why=str(error.strerror), do="Change its permissions, or ask its owner to")
    return _unwritable(error, path)


def _closed(name: object) -> str:
    """Return the file that may not be read, or the first folder above it that may not be entered; empty where there is neither."""
    if not isinstance(name, str):
        return ""
    above = (folder for folder in reversed(Path(name).parents) if folder.is_dir() and not os.access(folder, os.X_OK))
    if closed := next(above, None):  # one asks for nothing below it: that would be the same error
        return str(closed)
    return name if Path(name).exists() and not os.access(name, os.R_OK) else ""


def in_words(error: BaseException) -> CrosslignError | None:
    """Return what people are told of an error: itself where it is meant for them, else of a disk or a right; None for every other."""
    if isinstance(error, CrosslignError):
        return error
    if isinstance(error, BaseExceptionGroup):  # of what Snakemake looks at side by side
        return next(filter(None, map(in_words, error.exceptions)), None)
    name = getattr(error, "filename", None)
    return disk_problem(error, Path(name)) if isinstance(name, str) else None


def _unwritable(error: OSError, path: Path) -> ResourceError:
    shorter = ", or choose a shorter name" if error.errno == errno.ENAMETOOLONG else ""
    do = f"Check that the folder exists and is writable{shorter}"
    return ResourceError("cannot be written", where=str(path), why=str(error.strerror), do=do)


def reserve(path: Path) -> None:
    """Have the disk give a file all of its bytes now.

    A file that is written through a memory map begins as a hole, and a full disk then ends the process by SIGBUS, without a word.

    Raises:
        ResourceError: the disk is full, or the quota used up; the file is then removed, with what it had been given.
    """
    if not hasattr(os, "posix_fallocate"):  # macOS has no such call
        return
    with open(path, "r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
        except OSError as error:
            if problem := disk_problem(error, path):
                path.unlink()
                raise problem from error
            log.debug("%s: its bytes cannot be reserved here (%s)", path, error.strerror)


def require_writable(folder: Path, name: str = "writable") -> None:
    """Make a folder and a file in it, called as an unfinished one of that name, and take the file away again.

    Raises:
        ResourceError: that cannot be done; better said in the first second than behind a download.
    """
    probe = Path(folder) / f".{name}.{uuid.uuid4().hex[:8]}.part"
    try:
        probe.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        problem = disk_problem(error, Path(folder))
        raise problem or ResourceError("cannot be written", where=str(folder), why=str(error.strerror)) from error


def is_device(path: Path) -> bool:
    """Tell whether a device, a pipe or a socket lies at a path: to read one may wait for ever, a rename over it leaves none."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def require_replaceable(path: Path) -> None:
    """Check that nothing but a file or a folder lies where one is to be written: a rename over a device leaves the machine without it.

    Raises:
        InputError: a device, a pipe or a socket lies there.
    """
    if is_device(path):
        raise InputError("a device, pipe or socket cannot be replaced", where=str(path), do="Name a file as the output")


def _make_room(path: Path) -> None:
    """Make the folder that a file or folder is to lie in, in the place of nothing else than such.

    Raises:
        InputError: as `require_replaceable`.
        ResourceError: there can be none: something above it is a file, or a folder that takes nothing.
    """
    require_replaceable(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_problem(error, path) or _unwritable(error, path) from error


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


@contextmanager
def atomic_path(path: Path, part: Path | None = None) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; rename it into place when the block ends well.

    A block that raises leaves nothing behind. The file is flushed to disk before the rename.

    Args:
        path: final path.
        part: the temporary path of a file that is gone on with, under its caller's lock: it stays where the block raises.

    Raises:
        ResourceError: the disk is full or the folder cannot be written to.
    """
    path = Path(path)
    temporary = part or path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    _make_room(path)
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    except Exception as error:
        if problem := disk_problem(error, path, _size(temporary)):
            raise problem from error
        raise
    finally:
        if part is None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def replace_folder(folder: Path, final: Path) -> None:
    """Rename a folder into the place of whatever lies there, which goes as a whole, or stays whole where it may not be moved."""
    old = folder.with_name(f"{folder.name}.old.part")
    with suppress(FileNotFoundError):
        final.rename(old)
    folder.replace(final)
    if old.is_dir() and not old.is_symlink():
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; move it into place, whole, when the block ends well.

    An older folder of that name is replaced. Every file inside is flushed before the move.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    _make_room(path)
    try:
        temporary.mkdir()
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _sync(file)
        replace_folder(temporary, path)
        _sync(path.parent)
    except Exception as error:
        if problem := disk_problem(error, path, _size(temporary)):
            raise problem from error
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, line ends as they are, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
