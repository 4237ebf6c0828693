"""Locks of files that the kernel frees with their process, where the file system has them."""

from __future__ import annotations

import errno
import logging
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from filelock import FileLock, Timeout

from crosslign.errors import ResourceError
from crosslign.files.atomic import disk_problem

NONE_HERE = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
"""What file systems without locks answer: NFS without its lock service, Lustre without `-o flock`, FUSE, 9p."""
FOR_GROUP = 0o664
"""Mode of a lock's file, whatever the umask is: whoever shares the folder must open it, to find that it is taken."""
OTHERS = 0o002

log = logging.getLogger(__name__)


def locked(path: Path, seconds: float = -1.0) -> AbstractContextManager[object]:
    """Lock a file until the context ends; go on without a lock, and say so, where its file system has none.

    A file that marks the lock instead would outlive a killed process on another machine, and hold up the job that comes back.

    Args:
        path: the lock file; made, and left there. The group can open it, and everybody where everybody may write to its folder.
        seconds: how long to wait; for ever where negative.

    Raises:
        Timeout: another process holds it.
        ResourceError: it cannot be opened, or made: nobody knows then whether it is held.
    """
    path = Path(path)
    try:
        mode = FOR_GROUP | (path.parent.stat().st_mode & OTHERS)
        return FileLock(path, fallback_to_soft=False, mode=mode).acquire(timeout=seconds)
    except Timeout:
        raise
    except OSError as error:
        if error.errno in NONE_HERE:
            log.warning("%s cannot be locked (%s): continuing without a lock", path, error.strerror or error)
            return nullcontext()
        if error.errno in (errno.EACCES, errno.EPERM) and path.exists():
            do = f"Have its owner run `chmod g+rw {path}`, or remove it when none of their jobs is running"
            raise ResourceError(
                "the lock cannot be opened", where=str(path), why=f"{error.strerror}; it is {_owner(path)}'s", do=do
            ) from error
        do = "Check that the folder exists and is writable"
        problem = ResourceError("the lock cannot be created", where=str(path), why=str(error.strerror or error), do=do)
        raise disk_problem(error, path) or problem from error


def _owner(path: Path) -> str:
    """Return the name, or the number, of the user whose file it is."""
    try:
        return path.owner()
    except (KeyError, OSError):
        return f"user {path.stat().st_uid}" if path.exists() else "another user"
