"""The only way a file gets its final name: written beside it, flushed, then renamed."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosslign.errors import ResourceError


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _explain(error: OSError, path: Path) -> ResourceError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(path.parent).free
        return ResourceError(
            "no space left on the disk", where=str(path), why=f"{free:,} bytes are free", do="Free space, then run the same command again"
        )
    return ResourceError(
        "cannot be written", where=str(path), why=str(error.strerror), do="Check that the folder exists and may be written to"
    )


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; rename it into place when the block ends well.

    A block that raises leaves nothing behind. The file is flushed to disk before the rename.

    Raises:
        ResourceError: the disk is full or the folder cannot be written to.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise _explain(error, path) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; move it into place, whole, when the block ends well.

    An older folder of that name is replaced. Every file inside is flushed before the move.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _sync(file)
        if path.exists():
            shutil.rmtree(path)
        temporary.replace(path)
        _sync(path.parent)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise _explain(error, path) from error
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, line ends as they are, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
