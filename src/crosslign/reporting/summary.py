"""What a run prints at its end: a table for the terminal, and where its files lie."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from crosslign.console import as_columns, printable
from crosslign.files.text import read_csv

DASH = "–"


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
    cells = [{key: printable(value) for key, value in cell.items()} for cell in read_csv(path)[1]]
    columns = list(dict.fromkeys(cell["column"] for cell in cells))
    rows = list(dict.fromkeys(cell["row"] for cell in cells))
    printed = {
        (cell["row"], cell["column"]): _value(cell["ours"], scale_by, decimals) + ("*" if "best" in cell["mark"].split(";") else " ")
        for cell in cells
    }
    lines = [["", *columns], *([row, *(printed[row, column] for column in columns)] for row in rows)]
    return "\n".join(as_columns(lines, right=range(1, len(columns) + 1)))


def summary(title: str, table: Path, files: Sequence[tuple[str, Path]], scale_by: float = 100, decimals: int = 1) -> str:
    """Return a table with its title, and where those of the files are that exist, framed for the terminal."""
    rule = "─" * min(100, shutil.get_terminal_size((100, 24)).columns)
    places = "\n".join(f"  {name:<10} {path}" for name, path in files if path.exists())
    factor = f"× {scale_by:g}; " if scale_by != 1 else ""
    return f"{rule}\n{title} ({factor}* marks the best of a column)\n\n{table_as_text(table, scale_by, decimals)}\n\n{places}\n{rule}"
