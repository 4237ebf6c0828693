"""What the sources share: the offline switch, failures that are worth another try, and the disk that a file needs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from crosslign.errors import NetworkError, ResourceError

OFFLINE_VARIABLE = "CROSSLIGN_OFFLINE"


class TransientError(NetworkError):
    """A failure that another try may cure: a dropped connection, a busy server, a damaged copy.

    Args:
        retry_after: seconds that the server asked us to wait, None where it did not.
        keywords: `where`, `why` and `do` of every error.
    """

    def __init__(self, what: str, *, retry_after: float | None = None, **keywords: Any) -> None:
        self.retry_after = retry_after
        super().__init__(what, **keywords)


class BusyError(TransientError):
    """A server that refuses because too much is asked of it: only minutes help."""


class UnsafeError(NetworkError):
    """A server that leads from https to http: bytes that nobody vouches for."""


class WrongError(TransientError):
    """Bytes that came whole, and are not the catalog's."""


class SlowError(TransientError):
    """A server that sends next to nothing: a try that brings a little more in this way counts as one that failed."""


def is_offline() -> bool:
    """Tell whether CROSSLIGN_OFFLINE forbids the network."""
    return os.environ.get(OFFLINE_VARIABLE, "").lower() in ("1", "true", "yes", "on")


def require_network(name: str, where: str) -> None:
    """Raise `NetworkError` at once when the network is forbidden."""
    if is_offline():
        raise NetworkError(
            f"{name} is missing, and the network is switched off", where=where, why=f"{OFFLINE_VARIABLE}={os.environ[OFFLINE_VARIABLE]}"
        )


def require_space(dest: Path, needed: int) -> None:
    """Refuse what the disk cannot hold before its first byte comes.

    Raises:
        ResourceError: says how many bytes are needed and how many are free.
    """
    free = shutil.disk_usage(dest.parent).free
    if needed > free:
        raise ResourceError(
            "no space left on the disk",
            where=str(dest),
            why=f"{needed:,} bytes are needed and {free:,} bytes are free",
            do="Free space (crosslign plan says what a run needs), then run the same command again",
        )
