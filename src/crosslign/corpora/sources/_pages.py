"""Web pages and messages that come in place of a file."""

from __future__ import annotations

import re

from crosslign.console import one_line
from crosslign.corpora.unpacking import MAGIC
from crosslign.entries.resolved import AskedFile
from crosslign.errors import NetworkError

PAGE = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:(?><!--.*?-->)\s*+)*+<(?:!doctype html|html|head|body|title|meta|script)\b", re.IGNORECASE | re.DOTALL
)
"""How a web page begins."""
NOTICE = re.compile(r"application/(?:[\w.-]+\+)?(?:json|xml)\b|text/xml\b")
"""What a server calls an answer for programs, such as one that says why there is no file."""
PLAIN = (".txt", ".tsv", ".csv")
PAGES = (".html", ".htm", ".xml")
"""What the name of a file ends in that may be a web page."""
PAGE_BEGINS = 1 << 16
"""Bytes among which a web page begins: a long comment may be before it."""


def is_page(begins: bytes) -> bool:
    """Tell whether the first bytes are those of a web page, in UTF-8 or UTF-16."""
    return bool(PAGE.match(begins.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")))


def called_page(said: str, begins: bytes) -> bool:
    """Tell whether what a server calls a web page may be one: some call every file so, and a packed one shows by its first bytes."""
    return said.lower().startswith(("text/html", "application/xhtml")) and not begins.startswith((*MAGIC, b"PK", b"PAR1"))


def refuse_page(begins: bytes, said: str, file: AskedFile, url: str) -> None:
    """Refuse a web page in place of a file: a captive portal, a form to sign in, a page that says that the file has moved.

    So is an answer for programs in place of plain text.

    Args:
        begins: the first bytes of the body.
        said: what the server calls it.
        file: what was asked for.
        url: the address, for messages.
    """
    if (called_page(said, begins) or is_page(begins)) and not str(file["name"]).endswith(PAGES):
        do = "Open the address in a browser: your network or the publisher may ask you to sign in or to accept terms"
        raise NetworkError(f"the server sent a web page in place of {file['name']}", where=url, do=do)
    if NOTICE.match(said.lower()) and begins.lstrip()[:1] in (b"{", b"<") and str(file["name"]).endswith(PLAIN):
        raise NetworkError(
            f"the server sent a message in place of {file['name']}", where=url, why=one_line(begins[:200].decode("utf-8", "replace"))
        )
