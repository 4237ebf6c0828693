"""A web server on this machine that stands in for all publishers: their paths, and failures as they have them, drawn from a seed."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULTS = ("429", "403", "503", "500", "redirect", "cut", "dropped")
OUTAGE_S = 0.4
"""Seconds in which everything is refused, once."""
EARLY = 10
"""Requests within the first of which the outage begins."""
MOST = 2
"""Faults in a row that one path has."""
ELSEWHERE = "/elsewhere"


class Publishers(ThreadingHTTPServer):
    """The server.

    Args:
        bodies: what lies at each path.
        share: of the requests that go wrong.
        seed: of what goes wrong.
        limits: paths whose publishers turn those away by 403 who ask too often.

    Attributes:
        faults: how often each kind of failure happened.
        requests: how many were answered.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, bodies: Mapping[str, bytes], share: float, seed: int, limits: frozenset[str] = frozenset()) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.bodies, self.limits = bodies, limits
        self.faults: Counter[str] = Counter()
        self.requests = 0
        self._share, self._chance = share, random.Random(seed)
        self._lock = threading.Lock()
        self._had: Counter[str] = Counter()
        self._outage_at, self._outage_ends = (self._chance.randrange(1, EARLY) if share else -1), 0.0

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"

    def fault(self, path: str) -> str:
        """Return what goes wrong with a request, the kind that was drawn least so far; empty where nothing does."""
        with self._lock:
            self.requests += 1
            if self.requests == self._outage_at:
                self._outage_ends = time.monotonic() + OUTAGE_S
            if time.monotonic() < self._outage_ends:
                self.faults["outage"] += 1
                return "outage"
            if not self._share or path.startswith(ELSEWHERE) or self._had[path] >= MOST:
                return ""
            first = path in self.limits and not self.faults["403"]  # few paths can be turned away: the first one is
            if not first and self._chance.random() >= self._share:
                return ""
            kinds = [name for name in FAULTS if name != "403" or path in self.limits]
            fewest = min(self.faults[name] for name in kinds)
            found = "403" if first else self._chance.choice([name for name in kinds if self.faults[name] == fewest])
            self._had[path] += 1
            self.faults[found] += 1
            return found


class _Answer(BaseHTTPRequestHandler):
    """One request."""

    server: Publishers
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self._answer()

    def do_GET(self) -> None:
        """Answer."""
        self._answer()

    def _refuse(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self) -> None:
        path = self.path.removeprefix(ELSEWHERE)
        body = self.server.bodies.get(path, self.server.bodies.get(path.partition("?")[0]))
        if body is None:
            self._refuse(404)
            return
        fault = self.server.fault(self.path)
        if fault in ("outage", "dropped"):
            self.close_connection = True  # the line goes dead
        elif fault.isdigit():
            self._refuse(int(fault), **({"Retry_After": "1"} if fault == "429" else {}))
        elif fault == "redirect":
            self._refuse(302, Location=f"{ELSEWHERE}{path}")
        else:
            self._give(body, cut=fault == "cut")

    def _give(self, body: bytes, *, cut: bool) -> None:
        asked = self.headers.get("Range", "").removeprefix("bytes=")
        start, end = (int(text) if text else 0 for text in asked.partition("-")[::2])
        if start >= len(body) > 0:
            self._refuse(416, Content_Range=f"bytes */{len(body)}")
            return
        rest = body[start : end + 1] if end else body[start:]
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{start + len(rest) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(rest)))
        self.send_header("Content-Type", "text/html" if "/simple/" in self.path else "application/octet-stream")
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("Accept-Ranges", "bytes")
        if "/resolve/" in self.path:
            self.send_header("X-Repo-Commit", self.path.partition("/resolve/")[2].partition("/")[0].ljust(40, "0"))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(rest[: len(rest) // 2] if cut else rest)
        self.close_connection = self.close_connection or cut


@contextmanager
def serving(server: Publishers) -> Iterator[Publishers]:
    """Serve until the block ends."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
