"""Numbers, sizes and columns for the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


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
