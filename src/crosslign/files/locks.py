"""Locks of files that the kernel frees with their process, where the file system has them."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from filelock import FileLock, Timeout

log = logging.getLogger(__name__)


def locked(path: Path, seconds: float = -1.0) -> AbstractContextManager[object]:
    """Lock a file until the context ends; go on without a lock, and say so, where its file system has none.

    NFS without its lock service answers ENOLCK, Lustre without `-o flock` ENOSYS. A file that marks the lock instead would outlive a
    killed process on another machine, and hold up the job that comes back.

    Args:
        path: the lock file; made, and left there.
        seconds: how long to wait; for ever where negative.

    Raises:
        Timeout: another process holds it.
    """
    try:
        return FileLock(path, fallback_to_soft=False).acquire(timeout=seconds)
    except Timeout:
        raise
    except OSError as error:
        log.warning("no lock on %s (%s): going on without", path, error.strerror or error)
        return nullcontext()
