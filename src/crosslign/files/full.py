"""A full disk, said so: libraries report it in many ways, some without its number."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosslign.errors import CrosslignError, ResourceError

NUMBERS = (errno.ENOSPC, errno.EDQUOT)
WORDS = ("No space left on device", "Disk quota exceeded", "os error 28", "os error 122")


def is_full(error: BaseException | None) -> bool:
    """Tell whether an error, or one that led to it, is that of a full disk or an exhausted quota."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if getattr(error, "errno", None) in NUMBERS or any(word in str(error) for word in WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Turn the errors of a full disk into one that says what to do.

    Args:
        folder: where the block writes.

    Raises:
        ResourceError: the disk is full, or the quota used up.
    """
    try:
        yield
    except CrosslignError:
        raise
    except Exception as error:
        if not is_full(error):
            raise
        place = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
        raise ResourceError(
            "the disk is full, or the quota used up",
            where=str(folder),
            why=f"{shutil.disk_usage(place).free / 1e6:.0f} MB free; {error}",
            do="Make room, or set `results:` to another disk, and run the same command again: it goes on from what is there",
        ) from error
