"""Numbers, sizes, times, lines and columns as people read them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Codes that a terminal obeys and nobody sees, and those that turn the direction of what follows; tabs and line ends are text."""


def printable(text: str) -> str:
    """Return a text without control and direction codes, as it may be shown on a terminal or written to a log."""
    return CONTROL.sub("", text)


def one_line(text: str) -> str:
    """Return a text of the configuration as a table shows it: on one line, without control codes."""
    return " ".join(printable(text).split())


def number_of(number: float, what: str, plural: str = "") -> str:
    """Return a number of things: `1 job`, `1,200 jobs`, `0.5 hours`, `3 entries`.

    Args:
        number: how many; one that is not whole is printed with at most six digits.
        what: one of them.
        plural: several of them, where English does not make it by its rules (`matrices`).
    """
    count = f"{int(number):,}" if number == int(number) else f"{number:g}"
    return f"{count} {what if number == 1 else plural or _plural(what)}"


def _plural(what: str) -> str:
    if what.endswith("y") and what[-2] not in "aeiou":
        return f"{what[:-1]}ies"
    return what + ("es" if what.endswith(("s", "x", "ch", "sh")) else "s")


def bytes_text(count: float) -> str:
    """Return a number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def duration(seconds: float) -> str:
    """Return a time in words: `1 h 02 min`, `3 min 20 s`, `12 s`."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s"


def _width(text: str) -> int:
    """Return how many terminal cells a text takes."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * max(0, width - _width(text))
    return space + text if right else text + space


def as_columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Return rows of texts as lines of aligned columns, two spaces between them.

    Args:
        rows: all of one length; the first may be the heads.
        right: numbers of the columns that stand on the right.
    """
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(_pad(text, width, place in right) for place, (text, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]
