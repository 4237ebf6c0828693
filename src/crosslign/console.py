"""A table for the terminal, and where the files of a run lie."""

from __future__ import annotations

import csv
import shutil
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from crosslign.errors import printable

DASH = "–"


def number_of(number: int, what: str) -> str:
    """Return a number of things."""
    return f"{number} {what}" + ("" if number == 1 else "s")


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


def _value(ours: str, scale_by: float, decimals: int) -> str:
    """Return a cell's value as printed; settings of a recipe may be words, and unscaled numbers have no trailing zeros."""
    try:
        value = f"{float(ours) * scale_by:.{decimals}f}" if ours else DASH
    except ValueError:
        return ours
    return value.rstrip("0").rstrip(".") if scale_by == 1 and "." in value else value


def table_as_text(path: Path, scale_by: float = 100, decimals: int = 1) -> str:
    """Return the table of a tidy CSV as aligned columns; the best value of a column carries a star.

    Args:
        path: the table's CSV.
        scale_by: factor from fractions to printed values.
        decimals: digits behind the point.
    """
    with open(path, encoding="utf-8", newline="") as file:
        cells = [{key: printable(value) for key, value in cell.items()} for cell in csv.DictReader(file)]
    columns = list(dict.fromkeys(cell["column"] for cell in cells))
    rows = list(dict.fromkeys(cell["row"] for cell in cells))
    printed = {
        (cell["row"], cell["column"]): _value(cell["ours"], scale_by, decimals) + ("*" if "best" in cell["mark"].split(";") else " ")
        for cell in cells
    }
    first = max(map(_width, ["", *rows]))
    widths = [max(_width(column), *(_width(printed[row, column]) for row in rows)) for column in columns]
    lines = ["  ".join([_pad("", first, False), *(_pad(column, width, True) for column, width in zip(columns, widths, strict=True))])]
    lines += [
        "  ".join([_pad(row, first, False), *(_pad(printed[row, c], w, True) for c, w in zip(columns, widths, strict=True))])
        for row in rows
    ]
    return "\n".join(lines)


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


def summary(title: str, table: Path, files: Sequence[tuple[str, Path]], scale_by: float = 100, decimals: int = 1) -> str:
    """Return a table with its title, and where those of the files are that exist, framed for the terminal."""
    rule = "─" * min(100, shutil.get_terminal_size((100, 24)).columns)
    places = "\n".join(f"  {name:<10} {path}" for name, path in files if path.exists())
    factor = f"× {scale_by:g}; " if scale_by != 1 else ""
    return f"{rule}\n{title} ({factor}* marks the best of a column)\n\n{table_as_text(table, scale_by, decimals)}\n\n{places}\n{rule}"
