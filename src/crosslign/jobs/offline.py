"""Jobs compute without network: what was not declared as a download fails at once, with its name, on every machine alike."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from crosslign.errors import NetworkError

SWITCHES = ("CROSSLIGN_OFFLINE", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY")
"""Set to 1 for the job and what it starts, so that libraries look into their caches alone."""


def _is_own(host: Any) -> bool:
    """Tell whether a host is this machine itself, where processes of one job may talk to each other."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost", socket.gethostname()):
        return True
    try:
        return ipaddress.ip_address(str(name).partition("%")[0]).is_loopback
    except ValueError:
        return False


@contextmanager
def no_network(rule: str) -> Iterator[None]:
    """Let this process reach no other machine while the block runs.

    Args:
        rule: the job's rule, for the message.

    Raises:
        NetworkError: inside the block, where something asks for a name or an address; it says which.
    """

    def refuse(host: Any, port: Any) -> NetworkError:
        return NetworkError(
            f"the job tried to connect to {host}:{port}",
            where=f"rule {rule}",
            why="computing jobs run without network, because nodes of most clusters have none",
            do="Declare the file as a source (docs/add-a-corpus.md) or the model as an encoder: other rules fetch these",
        )

    lookup, connect = socket.getaddrinfo, socket.socket.connect

    def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_own(host):
            raise refuse(host, port)
        return lookup(host, port, *args, **kwargs)

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_own(address[0]):
            raise refuse(address[0], address[1])
        connect(self, address)

    before = {name: os.environ.get(name) for name in SWITCHES}
    os.environ.update(dict.fromkeys(SWITCHES, "1"))
    socket.getaddrinfo, socket.socket.connect = getaddrinfo, guarded  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        socket.getaddrinfo, socket.socket.connect = lookup, connect  # type: ignore[method-assign]
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
