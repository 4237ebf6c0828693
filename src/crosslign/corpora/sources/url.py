"""Files on a web server: resumed by range, checked for length, with the server's wishes about waiting obeyed."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from crosslign.corpora import SOURCES
from crosslign.corpora.sources._network import SlowError, TransientError, require_network, require_space
from crosslign.errors import InputError, NetworkError
from crosslign.files import read_json, write_json

logger = logging.getLogger(__name__)

TIMEOUT = httpx2.Timeout(60.0, connect=20.0)
PROGRESS_S = 5.0
SLOW_S, SLOW_BYTES = 60.0, 60_000
"""A server that sends fewer bytes than that in that time hangs, whether or not each read ends within `TIMEOUT`."""
BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
HEADERS = {"User-Agent": "crosslign", "Accept-Encoding": "identity"}  # ranges count the bytes of the file, not of a packed transfer
UNPACKED = frozenset({"gzip", "deflate"})
"""Packings of a transfer, asked for or not, that the web client undoes."""
SPAN = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


def url_of(source: Mapping[str, Any], file: Mapping[str, Any]) -> str:
    """Return the address of one file: the source's base and the file's path or name."""
    return str(source["url"]).rstrip("/") + "/" + quote(str(file.get("path", file["name"])), safe="/?=&%+~:@,;")


def state_path(dest: Path) -> Path:
    """Return the path of the note beside a broken download: its URL, the validator to resume it with, its bytes where said."""
    return dest.with_name(dest.name + ".state")


@dataclass
class _Progress:
    """Logs bytes, rate and time left, every few seconds, and gives a server up that trickles."""

    name: str
    url: str
    done: int
    total: int | None

    def __post_init__(self) -> None:
        self.began = self.last = self.watched = time.monotonic()
        self.first = self.then = self.done

    def add(self, count: int) -> None:
        self.done += count
        now = time.monotonic()
        if now - self.watched >= SLOW_S:
            if self.done - self.then < SLOW_BYTES:
                why = f"{self.done - self.then:,} bytes in {now - self.watched:.0f} s"
                raise SlowError(f"{self.name} comes too slowly", where=self.url, why=why)
            self.watched, self.then = now, self.done
        if now - self.last < PROGRESS_S:
            return
        self.last = now
        rate = (self.done - self.first) / (now - self.began)
        of, left = "", ""
        if self.total:
            of = f" of {self.total / 1e6:.1f}"
            left = f", {(self.total - self.done) / rate:.0f} s left" if rate else ""
        logger.info("%s: %.1f%s MB, %.2f MB/s%s", self.name, self.done / 1e6, of, rate / 1e6, left)


def _retry_after(response: httpx2.Response) -> float | None:
    """Return the seconds that `Retry-After` asks for, given as a number or as a date."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _noted(dest: Path) -> dict[str, Any]:
    """Return the note beside a broken download, empty where it cannot be read."""
    try:
        known: dict[str, Any] = read_json(state_path(dest))
    except InputError:
        return {}
    return known


def _resume_headers(url: str, dest: Path) -> dict[str, str]:
    """Return range headers for what is already there, when the server can tell whether it is still the same file."""
    size = dest.stat().st_size if dest.exists() else 0
    if not size or not state_path(dest).exists():
        return {}
    known = _noted(dest)
    if known.get("url") != url or not known.get("validator"):
        return {}
    return {"Range": f"bytes={size}-", "If-Range": known["validator"]}


def _validator(response: httpx2.Response) -> str:
    """Return what `If-Range` may hold: a strong ETag, else the date of the last change."""
    tag = response.headers.get("ETag", "")
    return str(tag) if tag and not tag.startswith("W/") else str(response.headers.get("Last-Modified", ""))


def _check_status(response: httpx2.Response, url: str, name: str) -> None:
    status = response.status_code
    if status in BUSY:
        raise TransientError(
            f"{name} could not be fetched", retry_after=_retry_after(response), where=url, why=f"the server answered {status}"
        )
    if status not in (200, 206, 416):
        raise NetworkError(f"{name} could not be fetched", where=url, why=f"the server answered {status} {response.reason_phrase}")


def _is_another(response: httpx2.Response, known: Mapping[str, Any], total: int | None) -> bool:
    """Tell whether a range is of another file than the one that was begun: a server may ignore `If-Range`."""
    said = response.headers.get("ETag" if str(known.get("validator", "")).startswith('"') else "Last-Modified")
    return bool(said and said != known.get("validator")) or (None not in (total, known.get("bytes")) and total != known.get("bytes"))


def _span_of(response: httpx2.Response, dest: Path, url: str, *, packed: bool) -> tuple[int, int | None]:
    """Return the offset at which the body begins, -1 when nothing is left to send, and the bytes of the whole file where they are said.

    An answer to another range than the one asked for, or of another file, cannot be joined: what is here goes, and the next
    try starts over.
    """
    length = response.headers.get("Content-Length")
    if response.status_code == 200:
        return 0, int(length) if length and not packed else None
    have = dest.stat().st_size if dest.exists() else 0
    said = response.headers.get("Content-Range", "").strip()
    if response.status_code == 416 and said == f"bytes */{have}":
        return -1, have
    found = SPAN.fullmatch(said)
    total = int(found[2]) if found and found[2] != "*" else have + int(length) if length else None
    fits = response.status_code == 206 and found and int(found[1]) == have and not packed
    if not fits or (have and _is_another(response, _noted(dest), total)):
        dest.unlink(missing_ok=True)
        raise TransientError(
            f"{dest.name} could not be resumed",
            where=url,
            why=f"{have:,} bytes are here, the server answered {response.status_code} {said!r}",
        )
    return have, total


def _packing(response: httpx2.Response, file: Mapping[str, Any], url: str) -> str:
    """Return how the transfer is packed, empty where its bytes are those of the file.

    Raises:
        NetworkError: it is packed in a way that the web client cannot undo.
    """
    packing = str(response.headers.get("Content-Encoding", "")).strip().lower()
    if packing in ("", "identity") or (packing in ("gzip", "x-gzip") and str(file["name"]).endswith((".gz", ".tgz"))):
        return ""  # some servers say so of the packed file itself
    if packing not in UNPACKED:
        raise NetworkError(f"the server sent {file['name']} packed as {packing!r}", where=url, why="it was asked for as it is")
    return packing


def _refuse_page(response: httpx2.Response, file: Mapping[str, Any], url: str) -> None:
    """Refuse a web page in place of a file that no hash would unmask."""
    page = response.headers.get("Content-Type", "").lower().startswith("text/html")
    if page and not file.get("sha256") and not str(file["name"]).endswith((".html", ".htm")):
        raise NetworkError(
            f"the server sent a web page in place of {file['name']}", where=url, do="Open the address in a browser to see what it wants"
        )


def _check_length(total: int | None, file: Mapping[str, Any], url: str) -> None:
    """Refuse a file of another length than the catalog's before its first byte comes, where no hash decides."""
    expected = None if file.get("sha256") else file.get("bytes")
    if expected is not None and total is not None and total != expected:
        why = f"expected {expected:,} bytes, found {total:,}"
        raise TransientError(f"{file['name']} is not what the catalog says", where=url, why=why)


def _receive(response: httpx2.Response, file: Mapping[str, Any], url: str, dest: Path) -> None:
    _check_status(response, url, file["name"])
    _refuse_page(response, file, url)
    packing = _packing(response, file, url)
    start, total = _span_of(response, dest, url, packed=bool(packing))
    if start < 0:
        return
    _check_length(total, file, url)
    require_space(dest, (total or 0) - start)
    if not start:
        validator = "" if packing else _validator(response)
        write_json(state_path(dest), {"url": url, "validator": validator, "bytes": total})
    progress = _Progress(file["name"], url, start, total or file.get("bytes"))
    with open(dest, "ab" if start else "wb") as out:
        for chunk in response.iter_bytes() if packing else response.iter_raw():
            out.write(chunk)
            progress.add(len(chunk))
    if total is not None and progress.done != total:
        raise TransientError(f"{file['name']} broke off", where=url, why=f"{progress.done:,} of {total:,} bytes came")
    if not progress.done and file.get("bytes") != 0:
        raise TransientError(f"the server sent nothing in place of {file['name']}", where=url)


@SOURCES.register(version=1)
def fetch(source: Mapping[str, Any], file: Mapping[str, Any], dest: Path) -> None:
    """Download one file, going on where an earlier try broke off.

    A server without ranges, or whose file has changed since, sends the whole file, which then replaces
    what was there. What came of a broken try stays at `dest` for the next one.

    Raises:
        TransientError: the connection broke, the server is busy (408, 425, 429, 5xx), sent too little or too slowly.
        NetworkError: any other refusal, such as 404, or a forbidden network.
        ResourceError: the disk cannot hold what the server announces.
    """
    url = url_of(source, file)
    require_network(file["name"], url)
    try:
        with (
            httpx2.Client(timeout=TIMEOUT, follow_redirects=True, headers=HEADERS) as client,
            client.stream("GET", url, headers=_resume_headers(url, dest)) as response,
        ):
            _receive(response, file, url, dest)
    except httpx2.InvalidURL as error:
        raise InputError(f"{url!r} is no address", why=str(error)) from error
    except httpx2.HTTPError as error:
        raise TransientError(f"{file['name']} could not be fetched", where=url, why=f"{type(error).__name__} {error}".strip()) from error
    state_path(dest).unlink(missing_ok=True)
