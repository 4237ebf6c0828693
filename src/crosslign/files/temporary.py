"""A folder for temporary files (TMPDIR), which says so when it is its disk that is full: on a cluster, a node's own."""

from __future__ import annotations

import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from crosslign.errors import ResourceError
from crosslign.files.atomic import is_full

LITTLE = 16_000_000
"""Bytes: a disk that has no more left is the full one; writers give up with less than one of their parts written."""


class NoTemporaryRoomError(ResourceError):
    """The disk of temporary files is full: no further try on this node helps."""


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """Yield the path of a new folder below TMPDIR, which goes with all in it when the block ends.

    Args:
        prefix: how its name begins.

    Raises:
        NoTemporaryRoomError: the block met a full disk, and TMPDIR's is full; with the place and the machine.
    """
    with tempfile.TemporaryDirectory(prefix=prefix) as folder:
        try:
            yield folder
        except Exception as error:
            free = shutil.disk_usage(folder).free
            if isinstance(error, ResourceError) or not is_full(error) or free > LITTLE:
                raise
            place = tempfile.gettempdir()
            raise NoTemporaryRoomError(
                "no space left for temporary files",
                where=f"{place} on {platform.node()}",
                why=f"only {free:,} bytes are free",
                do="Set TMPDIR to a folder with enough space on every node (`export TMPDIR=…`, or `tmpdir` in default-resources)",
            ) from error
