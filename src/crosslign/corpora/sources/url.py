"""Files on a web server: resumed by range, checked for length, summed as they come, with the server's wishes about waiting obeyed."""

from __future__ import annotations

import codecs
import hashlib
import logging
import re
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from crosslign.config.catalog import off
from crosslign.console import number_of
from crosslign.corpora import SOURCES
from crosslign.corpora.sources._client import check_status, client, placed, retry_after
from crosslign.corpora.sources._network import SlowError, TransientError, require_network, require_space
from crosslign.corpora.sources._pages import PAGE_BEGINS, refuse_page
from crosslign.corpora.unpacking import MAGIC
from crosslign.entries.catalog import Source
from crosslign.entries.resolved import AskedFile
from crosslign.errors import InputError, NetworkError
from crosslign.files import read_json, write_json
from crosslign.progress import Pace

log = logging.getLogger(__name__)

SLOW_S, SLOW_BYTES = 60.0, 60_000
"""A server that sends fewer bytes than that in that time hangs, whether or not each read ends within `TIMEOUT`."""
UNPACKED = frozenset({"gzip", "x-gzip", "deflate"})
"""Packings of a transfer, asked for or not, that are undone here: the web client takes one that is cut for a whole one."""
FORMS = (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS)
"""Of a packed transfer: with the header of gzip or zlib, or, as some servers send `deflate`, with none."""
SPAN = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
TOTAL = re.compile(r"bytes (?:\d+-\d+|\*)/(\d+)")
PROBE = {"Range": "bytes=0-5"}
"""Asks for the length of a file, and by what it begins, by its first bytes."""
CHUNK = 1 << 20


def url_of(source: Source, file: AskedFile) -> str:
    """Return the address of one file: the source's base and the file's path or name; or a whole address of `urls`, which ends in no `/`."""
    given: Mapping[str, Any] = source  # of `urls`, what `addresses` says of it, too
    if given.get("whole"):
        return str(source["url"])
    return str(source["url"]).rstrip("/") + "/" + quote(str(file.get("path", file["name"])), safe="/?=&%+~:@,;")


def state_path(dest: Path) -> Path:
    """Return the path of the note beside a broken download: its URL, what its server said of its version, its bytes where said."""
    return dest.with_name(dest.name + ".state")


@dataclass
class _Progress:
    """Logs bytes, rate and time left, now and then, and gives a server up that trickles."""

    name: str
    url: str
    done: int
    total: int | None

    def __post_init__(self) -> None:
        self._pace, self.watched = Pace(), time.monotonic()
        self.first = self.then = self.done

    def add(self, count: int) -> None:
        self.done += count
        now = time.monotonic()
        if now - self.watched >= SLOW_S:
            if self.done - self.then < SLOW_BYTES:
                why = f"{number_of(self.done - self.then, 'byte')} in {now - self.watched:.0f} s"
                raise SlowError(f"{self.name} arrives too slowly", where=self.url, why=why)
            self.watched, self.then = now, self.done
        if not self._pace.due(now):
            return
        rate = (self.done - self.first) / (now - self._pace.start)
        of, left = "", ""
        if self.total:
            of = f" of {self.total / 1e6:.1f}"
            left = f", {(self.total - self.done) / rate:.0f} s left" if rate else ""
        log.info("%s: %.1f%s MB, %.2f MB/s%s", self.name, self.done / 1e6, of, rate / 1e6, left)


def _noted(dest: Path) -> dict[str, Any]:
    """Return the note beside a broken download, empty where it cannot be read."""
    try:
        known: dict[str, Any] = read_json(state_path(dest))
    except InputError:
        return {}
    return known


def _verified(file: AskedFile) -> bool:
    """Tell whether the whole file is verified at the end: then a server need not know whether it is still the same."""
    return bool(file.get("sha256")) or str(file["name"]).endswith((*MAGIC.values(), ".tgz", ".zip", ".parquet", ".whl"))


def _range_headers(url: str, dest: Path, file: AskedFile) -> dict[str, str]:
    """Return range headers: to the end of a beginning, and from what is already there, where that is known to be of the same file.

    Args:
        url: the address; what another one sent is not a beginning of it.
        dest: what is there.
        file: what is asked for.
    """
    size, end = (dest.stat().st_size if dest.exists() else 0), int(file["head"]) - 1 if "head" in file else ""
    known = _noted(dest) if size and state_path(dest).exists() else {}
    if known.get("url") == url and (known.get("validator") or _verified(file)):
        same = {"If-Range": known["validator"]} if known.get("validator") else {}
        return {"Range": f"bytes={size}-{end}", **same}
    return {"Range": f"bytes=0-{end}"} if end else {}


def _validator(response: httpx2.Response) -> str:
    """Return what `If-Range` may hold: a strong ETag, else the date of the last change."""
    tag = response.headers.get("ETag", "")
    return str(tag) if tag and not tag.startswith("W/") else str(response.headers.get("Last-Modified", ""))


def _is_another(response: httpx2.Response, known: Mapping[str, Any], total: int | None) -> bool:
    """Tell whether a range is of another file than the one begun: a server may ignore `If-Range`, and is not asked with a weak tag."""
    pairs = [(response.headers.get(name), known.get(key)) for name, key in (("ETag", "tag"), ("Last-Modified", "modified"))]
    return any(said and before and said != before for said, before in pairs) or (
        None not in (total, known.get("bytes")) and total != known.get("bytes")
    )


def whole_size(response: httpx2.Response, file: AskedFile) -> int | None:
    """Return the bytes of the whole file as an answer says them; None where it does not."""
    if response.status_code in (206, 416):
        found = TOTAL.fullmatch(response.headers.get("Content-Range", "").strip())
        return int(found[1]) if found else None
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() and not _packing(response, file) else None


def _refuses_ranges(response: httpx2.Response, asked: str, *, limits: bool) -> bool:
    """Tell whether an answer means that the server gives no range of a file that it may give as a whole."""
    status = response.status_code
    if status == 403:
        return not limits and retry_after(response.headers) is None
    found = TOTAL.fullmatch(response.headers.get("Content-Range", "").strip())
    if status == 416:  # of a range that begins behind the end it is right
        return not found or int(asked.removeprefix("bytes=").partition("-")[0]) < int(found[1])
    return status in (400, 501) or (status == 206 and "Content-Range" not in response.headers)


@contextmanager
def answered(web: httpx2.Client, url: str, headers: Mapping[str, str], *, limits: bool = False) -> Iterator[httpx2.Response]:
    """Open the answer to a request for a range; a server that answers none, or refuses it, is asked for the whole file instead.

    Args:
        web: the client.
        url: the address.
        headers: what asks for the range, or nothing.
        limits: whether the host is known to turn those away by 403 who ask too often: that says nothing of ranges.
    """
    with ExitStack() as opened:
        response = opened.enter_context(web.stream("GET", url, headers=headers))
        if headers and _refuses_ranges(response, headers["Range"], limits=limits):
            response.close()
            response = opened.enter_context(web.stream("GET", url))
        yield response


def _span_of(response: httpx2.Response, file: AskedFile, url: str, dest: Path, *, packed: bool) -> tuple[int, int | None]:
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
    known = _noted(dest) if have else {}
    unsaid = known.get("tag") and "ETag" not in response.headers and not _verified(file)  # RFC 9110 bids a server say it again
    if not fits or unsaid or _is_another(response, known, total):
        dest.unlink(missing_ok=True)
        raise TransientError(
            f"{dest.name} could not be resumed",
            where=url,
            why=f"{have:,} bytes were here, and the server answered {response.status_code} {said!r}",
        )
    return have, total


def _packing(response: httpx2.Response, file: AskedFile, begins: bytes = b"") -> str:
    """Return how the transfer is packed, empty where its bytes are taken for those of the file: any other word of a server's says little.

    Args:
        response: the answer.
        file: what was asked for.
        begins: the first bytes of the body. Of a file that is packed itself some servers say that the transfer is; it may be, too.
    """
    said = (name.strip() for name in response.headers.get("Content-Encoding", "").lower().split(","))
    packing = next((name for name in said if name in UNPACKED), "")
    if packing.endswith("gzip") and str(file["name"]).endswith((".gz", ".tgz")):
        with suppress(zlib.error):
            return packing if MAGIC.get(zlib.decompressobj(FORMS[0]).decompress(begins, 2)) == ".gz" else ""
        return ""
    return packing


def _refuse_packed(begins: bytes, said: str, file: AskedFile, url: str) -> None:
    """Refuse what its server calls packed, and what does not look like text, where nothing decides at the end what it is."""
    try:
        text = b"\0" not in begins and codecs.getincrementaldecoder("utf-8")().decode(begins) is not None
    except UnicodeDecodeError:
        text = False
    if not (text or said.lower() in ("", "identity") or _verified(file)):
        raise NetworkError(f"the server sent {file['name']} compressed as {said!r}", where=url, why="the request excluded compression")


def _unpacked(packed: Iterator[bytes], file: AskedFile, url: str) -> Iterator[bytes]:
    """Yield what a packed transfer holds.

    Raises:
        TransientError: it is damaged, or ends before it is whole.
    """
    chunk = next(packed, b"")
    for form in FORMS:
        with suppress(zlib.error):
            zlib.decompressobj(form).decompress(chunk, 1)
            break
    stream = zlib.decompressobj(form)
    try:
        while chunk:
            if made := stream.decompress(chunk):
                yield made
            if chunk := stream.unused_data.lstrip(b"\0"):  # another stream behind the first
                stream = zlib.decompressobj(form)
            else:
                chunk = next(packed, b"")
        why = "" if stream.eof else "its compressed data are truncated"
    except zlib.error as error:
        why = str(error)
    if why:
        raise TransientError(f"the download of {file['name']} is damaged", where=url, why=why)


def _check_length(total: int | None, file: AskedFile, url: str) -> None:
    """Refuse a file of another length than the catalog's before its first byte comes, where no hash decides."""
    if file.get("sha256") or not total:  # an empty answer is none
        return
    what, expected = f"{file['name']} differs from the catalog's entry", None if "head" in file else file.get("bytes")
    if expected is not None and total != expected:
        raise TransientError(what, where=url, why=f"expected {number_of(expected, 'byte')}, found {total:,}")
    if expected is None and (why := off(total, file)):
        raise NetworkError(what, where=url, why=why)


def _receive(response: httpx2.Response, file: AskedFile, url: str, dest: Path, *, limits: bool) -> str:
    """Write the body behind what is there, and return the SHA-256 of the whole."""
    check_status(response, url, file["name"], limits=limits)
    raw = response.iter_raw()
    first = next(raw, b"")
    packing = _packing(response, file, first)
    start, total = _span_of(response, file, url, dest, packed=bool(packing))
    digest = _sum_of(dest, start)
    if start < 0:
        return digest.hexdigest()
    chunks = _unpacked(chain([first], raw), file, url) if packing else chain([first], raw)
    first = next(chunks, b"")
    if not start:
        refuse_page(first[:PAGE_BEGINS], response.headers.get("Content-Type", ""), file, url)
        _refuse_packed(first[:PAGE_BEGINS], "" if packing else response.headers.get("Content-Encoding", ""), file, url)
    _check_length(total, file, url)
    require_space(dest, int(file.get("head") or total or 0) - start)
    if not start:
        said = {"tag": response.headers.get("ETag", ""), "modified": response.headers.get("Last-Modified", "")}
        known = {"url": "" if packing else url, "validator": _validator(response)}  # ranges are of a packed transfer
        write_json(state_path(dest), {**known, "bytes": total, **said})
    end = min(int(file["head"]), total or int(file["head"])) if "head" in file else total
    progress = _Progress(file["name"], url, start, end or file.get("bytes"))
    with open(dest, "ab" if start else "wb") as out:
        chunk: bytes | None = first
        while chunk is not None:
            chunk = chunk[: end - progress.done] if end is not None and "head" in file else chunk  # a server without ranges sends on
            out.write(chunk)
            digest.update(chunk)
            progress.add(len(chunk))
            chunk = None if "head" in file and progress.done == end else next(chunks, None)
    if end is not None and progress.done != end:
        raise TransientError(
            f"the download of {file['name']} broke off", where=url, why=f"{progress.done:,} of {number_of(end, 'byte')} arrived"
        )
    if not progress.done and file.get("bytes") != 0:
        raise TransientError(f"the server sent nothing in place of {file['name']}", where=url)
    return digest.hexdigest()


def _vouched_for(response: httpx2.Response, file: AskedFile) -> bool:
    """Tell whether more than a server's word, if that, says that a file came whole: a packing or chunks that end, or the catalog."""
    known = "bytes" in file or _verified(file) or bool(_packing(response, file))
    return known or response.status_code != 200 or "chunked" in response.headers.get("Transfer-Encoding", "").lower()


def _confirm(web: httpx2.Client, url: str, file: AskedFile, size: int, *, limits: bool) -> None:
    """Ask once more how long a file is; from a server that has neither ranges nor lengths it comes twice.

    Raises:
        TransientError: it is of another length than what came.
    """
    with answered(web, url, PROBE, limits=limits) as response:
        total = whole_size(response, file)
        if total is None and response.status_code == 200 and not _packing(response, file):
            total = sum(map(len, response.iter_raw()))
            log.warning("%s: its server does not say how long it is; it came twice, the second time with %s", url, number_of(total, "byte"))
    if total not in (None, size):
        why = f"{size:,} of {number_of(total or 0, 'byte')} arrived"
        raise TransientError(f"the download of {file['name']} broke off", where=url, why=why)


def _sum_of(dest: Path, start: int) -> hashlib._Hash:
    """Return the sum of what is there already, to which what comes is added."""
    digest = hashlib.sha256()
    if start:
        with open(dest, "rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
    return digest


@SOURCES.register(version=1)
def fetch(source: Source, file: AskedFile, dest: Path) -> str:
    """Download one file, going on where an earlier try broke off.

    A server without ranges, or whose file has changed since, sends the whole file, which then replaces
    what was there. What came of a broken try stays at `dest` for the next one. A file whose bytes are verified at the end, by its sum or
    because it is packed, is gone on with also where the server says nothing of its version. The length of any other is asked for twice.

    Of a file with `head`, so many bytes from its beginning are asked for and kept; the note stays beside them then (`said_size`).

    Raises:
        TransientError: the connection broke, the server is busy or has a fault, sent too little or too slowly.
        NetworkError: any other refusal, such as 404, a web page in its place, or a forbidden network.
        ResourceError: the disk cannot hold what the server announces.
    """
    url = placed(url_of(source, file))
    require_network(file["name"], url)
    if "head" in file and dest.exists() and dest.stat().st_size >= file["head"]:
        dest.unlink()  # of a try that was not verified
    headers = _range_headers(url, dest, file)
    limits = "connections" in source
    with client(url, vouched=bool(file.get("sha256"))) as web:
        with answered(web, url, headers, limits=limits) as response:
            found, sure = _receive(response, file, url, dest, limits=limits), _vouched_for(response, file)
        if not sure:
            _confirm(web, url, file, dest.stat().st_size, limits=limits)
    if "head" not in file:  # what the server said of the whole file is asked for
        state_path(dest).unlink(missing_ok=True)
    return found


def said_size(dest: Path) -> int | None:
    """Return the size of the whole file of which `dest` is the beginning, as its server said it; None where it did not."""
    found = _noted(dest).get("bytes") if state_path(dest).exists() else None
    return None if found is None else int(found)
