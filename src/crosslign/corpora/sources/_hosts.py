"""How many connections to a host are open at once, over all jobs that share the downloads: as many as it bears."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from filelock import Timeout

from crosslign.config.catalog import describe
from crosslign.corpora.sources._client import placed
from crosslign.entries.catalog import Source
from crosslign.entries.resolved import AskedFile
from crosslign.files.locks import locked

FOLDER = ".hosts"
"""Folder beside those of the sources that holds a lock for each connection."""
PAUSE_S = 0.2


@contextmanager
def connection(source: Source, file: AskedFile, folder: Path) -> Iterator[None]:
    """Wait until a source's host has a connection left, and take it; a source without `connections` is not waited for.

    Args:
        source: a source with `connections`, how many at a time its host bears.
        file: the file that is wanted.
        folder: that of all downloads.
    """
    if "connections" not in source:
        yield
        return
    where = describe(source, file)
    host = urlsplit(placed(where)).netloc.replace(":", "+") or where.partition(":")[0]
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        while True:
            for number in range(int(source["connections"])):
                try:
                    held.enter_context(locked(folder / FOLDER / f"{host}.{number}.lock", 0.0))
                except Timeout:
                    continue
                yield
                return
            time.sleep(PAUSE_S)
