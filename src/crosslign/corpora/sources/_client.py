"""The web client of all downloads: the user's proxy and certificates, a site's own copy of the web, refusals in words."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2

from crosslign.corpora.sources._network import BusyError, TransientError, UnsafeError
from crosslign.errors import InputError, NetworkError

TIMEOUT = httpx2.Timeout(60.0, connect=20.0)
BUSY = frozenset({202, 420, 429, 503, 509, 529})
"""Answers of a server that wants to be left alone for a while, has no more to give today, or makes the file ready first."""
BROKEN = frozenset({408, 425, 500, 502, 504, *range(520, 528)})
"""Answers that another try may cure; from 520 on those of a host in front that cannot reach the publisher's."""
SIGN_IN = frozenset({407, 511})
"""Answers of a network on the way that wants a password first."""
HEADERS = {"User-Agent": "crosslign", "Accept-Encoding": "identity"}  # ranges count the bytes of the file, not of a packed transfer
SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")
SPENT = re.compile(r"r=0\s*;\s*t=([0-9]{1,9})")
"""Of the hub's header `RateLimit`: nothing remains, for so many seconds."""
CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables that name a file of certificates: of OpenSSL, of the hub's client and pip, of curl."""
LOGIN = re.compile(r"(?:407|511)\b|Requested .+ but got|Invalid username")
"""What the web client says of a proxy, of HTTP or SOCKS, that lets nobody through without a password."""
DENIED = re.compile(r"4(?!08|20|25|29)\d\d\b|.*not allowed by ruleset")
"""What it says of one that lets nobody through to a host: unlike its faults, this stays so."""
SIGN_IN_DO = "Sign in to your network, or put user and password into the proxy's address, then run the same command again"
PROXIES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")
WEB_MIRROR = "CROSSLIGN_WEB_MIRROR"
"""Variable with the address of a site's own copy of the web, in which `https://host/path` is called `<address>/host/path`."""


def placed(url: str) -> str:
    """Return where an address is asked for: at the publisher's, or in the site's own copy of the web."""
    mirror = os.environ.get(WEB_MIRROR, "").rstrip("/")
    return f"{mirror}/{re.sub(r'^https?://', '', url)}" if mirror and not url.startswith(f"{mirror}/") else url


def _certificates() -> ssl.SSLContext | bool:
    """Return what servers are verified by: the file that the environment names, else the client's own."""
    name = next((name for name in CERTIFICATES if os.environ.get(name)), None)
    if name is None:
        return True
    path = os.environ[name]
    try:
        return ssl.create_default_context(capath=path) if os.path.isdir(path) else ssl.create_default_context(cafile=path)  # noqa: PTH112
    except OSError as error:
        why = f"{path}: {error.strerror or error}"
        raise InputError("the certificates cannot be read", where=name, why=why, do="Name a certificate file in PEM format") from error


@contextmanager
def client(where: str, *, vouched: bool = False) -> Iterator[httpx2.Client]:
    """Open the client; what its library raises becomes an error for people.

    Args:
        where: the address, for messages.
        vouched: whether a hash vouches for what comes: then it may come over http, too, where https was asked for.

    Raises:
        InputError: the address, the proxy or the certificates of the environment cannot be used.
        UnsafeError: it leads from https to http, and no hash vouches for what comes.
        NetworkError: nobody vouches for the server, or a proxy wants a password.
        TransientError: anything else that went wrong on the way.
    """
    safe = False

    def look(request: httpx2.Request) -> None:
        nonlocal safe
        if safe and not vouched and request.url.scheme == "http":
            why = "no sha256 of the catalog vouches for them"
            raise unsafe(request.url, where, why, "Give the file its sha256, or another address in `urls`, or put it into a mirror")
        safe = request.url.scheme == "https"

    try:
        hooks = {"request": [look]}
        opened = httpx2.Client(timeout=TIMEOUT, follow_redirects=True, headers=HEADERS, verify=_certificates(), event_hooks=hooks)
    except (ValueError, ImportError) as error:
        do = "Fix ALL_PROXY, HTTPS_PROXY and HTTP_PROXY: http://host:port or socks5://host:port"
        raise InputError("the proxy cannot be used", where=where, why=str(error), do=do) from error
    try:
        with opened:
            yield opened
    except httpx2.InvalidURL as error:
        raise InputError(f"{where!r} is not an address", why=str(error)) from error
    except httpx2.HTTPError as error:
        raise explained(error, where) from error


def unsafe(to: httpx2.URL | str, where: str, why: str, do: str) -> UnsafeError:
    """Return the error for a server that leads from https to http; `why` nothing makes up for that."""
    told = f"anyone between here and {to} can change the bytes, and {why}"
    return UnsafeError("the server redirects from https to http", where=where, why=told, do=do)


def explained(error: Exception, where: str) -> NetworkError:
    """Return what went wrong on the way to a server, in words.

    Args:
        error: what the web client raised, also that of the hub.
        where: the address, for messages.
    """
    try:
        asked = str(error.request.url)  # type: ignore[attr-defined]  # after redirects another host's
    except (AttributeError, RuntimeError):  # it has none
        asked = where
    host, why = urlsplit(asked).hostname or where, f"{type(error).__name__} {error}".strip()
    if "CERTIFICATE_VERIFY_FAILED" in why:
        do = "If your site's proxy signs for other hosts, set SSL_CERT_FILE or REQUESTS_CA_BUNDLE to a PEM file of its certificates"
        return NetworkError(f"the certificate of {host} cannot be verified", where=where, why=why, do=do)
    if type(error).__name__ == "ProxyError" and LOGIN.match(str(error)):
        return NetworkError("the proxy requires you to sign in", where=where, why=why, do=SIGN_IN_DO)
    if isinstance(error, httpx2.TooManyRedirects):
        return NetworkError(f"{host} redirects in a loop", where=where, why=why)
    named = [name for name in PROXIES if os.environ.get(name) or os.environ.get(name.lower())]
    do = f"{' and '.join(named)} sets a proxy for all hosts; list hosts that need none in NO_PROXY" if named else ""
    if type(error).__name__ == "ProxyError" and DENIED.match(str(error)):
        return NetworkError(f"the proxy does not let you through to {host}", where=where, why=why, do=do)
    return TransientError(f"{host} could not be reached", where=where, why=why, do=do)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks for, None where it asks for none.

    `Retry-After` says them as a number or as a date; GitHub says when its count of requests begins again, the hub in how many seconds.
    """
    value = headers.get("Retry-After", "").strip()
    if SECONDS.fullmatch(value):
        return float(value)
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        pass
    reset = headers.get("X-RateLimit-Reset", "").strip()
    if headers.get("X-RateLimit-Remaining") == "0" and SECONDS.fullmatch(reset):
        return max(0.0, float(reset) - datetime.now(UTC).timestamp())
    found = SPENT.search(headers.get("RateLimit", ""))
    return float(found[1]) if found else None


def check_status(response: httpx2.Response, where: str, what: str, *, limits: bool = False) -> None:
    """Refuse an answer that is none.

    Args:
        response: the answer.
        where: the address, for messages.
        what: what was asked for.
        limits: whether the host is known to turn those away who ask too often, by 403 too.

    Raises:
        BusyError: the server is busy, or asks too much of it was.
        TransientError: it has a fault.
        NetworkError: any other refusal.
    """
    status, said = response.status_code, retry_after(response.headers)
    limited = status == 403 and (limits or said is not None or response.headers.get("X-RateLimit-Remaining") == "0")
    known: dict[str, Any] = {"where": where, "why": f"the server answered {status}"}
    if status in BUSY or limited:
        raise BusyError(f"{what} could not be fetched", retry_after=said, **known)
    if status in BROKEN:
        raise TransientError(f"{what} could not be fetched", retry_after=said, **known)
    if status in SIGN_IN:
        raise NetworkError(f"{what} could not be fetched: the network requires you to sign in", do=SIGN_IN_DO, **known)
    if status in (401, 403):
        do = "The publisher may ask you to register or to accept terms: open the address in a browser, and put the file into a mirror"
        raise NetworkError(f"{what} could not be fetched", where=where, why=f"the server answered {status} {response.reason_phrase}", do=do)
    if status not in (200, 206, 416):
        raise NetworkError(f"{what} could not be fetched", where=where, why=f"the server answered {status} {response.reason_phrase}")
