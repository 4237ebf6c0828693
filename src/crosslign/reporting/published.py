"""Published figures: what the papers printed, as tidy CSV, never mixed with ours."""

from __future__ import annotations

import csv
from pathlib import Path

from crosslign.errors import InputError


def read_published(folder: Path, table: str) -> dict[tuple[str, str, str, str], float]:
    """Return the figures of one printed table by (model, task, subset, metric); empty where nothing was printed.

    Raises:
        InputError: a value that is no number; names file and line.
    """
    path = folder / f"{table}.csv"
    if not path.exists():
        return {}
    figures: dict[tuple[str, str, str, str], float] = {}
    with open(path, encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            try:
                value = float(row["value"])
            except ValueError as error:
                raise InputError(f"value {row['value']!r} is no number", where=f"{path}:{number}") from error
            figures.setdefault((row["model"], row["task"], row["subset"], row["metric"]), value)
    return figures
