"""A loopback web server that answers each request as the test says, with the failures that networks have."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from crosslign.corpora import fetch


@dataclass
class Site:
    """What the server has and does.

    `plan` holds one behaviour a request, the last one for all that follow: `ok`, `drop:<n>` (n bytes of the body, then
    the line goes dead), `<status>`, `norange`, `short:<n>` (n bytes, no length said), `html`, `wrong` (other bytes of the same length).
    `answers` are given as they stand in its place, one a request: status, headers, bytes.
    """

    body: bytes = b""
    plan: list[str] = field(default_factory=lambda: ["ok"])
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    etag: str = '"v1"'
    modified: str = ""
    retry_after: str = ""
    requests: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    pause: float = 0.0
    """Seconds that an answer takes."""
    open: int = 0
    most: int = 0
    """Requests under way, and the most that there were at a time."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Handler(BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.0"

    def log_message(self, *args: object) -> None:
        pass

    def _head(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if value:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def do_GET(self) -> None:
        with self.site.lock:
            self.site.open += 1
            self.site.most = max(self.site.most, self.site.open)
        threading.Event().wait(self.site.pause)
        try:
            self._answer()
        finally:
            with self.site.lock:
                self.site.open -= 1

    def _answer(self) -> None:
        site = self.site
        act = site.plan[min(len(site.requests), len(site.plan) - 1)]
        site.requests.append({name.lower(): value for name, value in self.headers.items()} | {"path": self.path})
        if site.answers:
            status, headers, body = site.answers[min(len(site.requests), len(site.answers)) - 1]
            self._head(status, **headers)
            self.wfile.write(body)
            return
        name, _, number = act.partition(":")
        if name.isdigit():
            self._head(int(name), Retry_After=site.retry_after)
            return
        body = {"html": b"<html>sign in</html>", "wrong": bytes(len(site.body))}.get(name, site.body)
        start, end = self._span(name)
        if start > 0 and start >= len(body):
            self._head(416, Content_Range=f"bytes */{len(body)}")
            return
        rest = body[start:end]
        common = {"ETag": site.etag, "Last_Modified": site.modified, "Content_Type": "text/html" if name == "html" else "application/zip"}
        if name == "short":
            self._head(200, **common)
            self.wfile.write(body[: int(number)])
            return
        span = f"bytes {start}-{start + len(rest) - 1}/{len(body)}" if start or end else ""
        self._head(206 if span else 200, Content_Length=str(len(rest)), Content_Range=span, **common)
        self.wfile.write(rest[: int(number)] if name == "drop" else rest)

    def _span(self, name: str) -> tuple[int, int | None]:
        """Where the answer begins and ends: that of the whole file where the server knows no ranges or the file has changed."""
        wanted = self.headers.get("Range", "")
        if not wanted or name == "norange" or self.headers.get("If-Range", self.site.etag) not in (self.site.etag, self.site.modified):
            return 0, None
        start, end = wanted.removeprefix("bytes=").split("-")
        return int(start), int(end) + 1 if end else None


@pytest.fixture
def online(monkeypatch):
    """Downloads are switched on, and go through no proxy."""
    monkeypatch.delenv("CROSSLIGN_OFFLINE", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def site(online):
    """A running server."""
    site = Site()
    handler = type("Handler", (_Handler,), {"site": site})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}/data/"
    yield site
    server.shutdown()
    server.server_close()


@pytest.fixture
def waits(monkeypatch):
    """Seconds that a fetch would have waited between its tries; it does not."""
    seconds: list[float] = []
    monkeypatch.setattr(fetch.time, "sleep", seconds.append)
    return seconds
