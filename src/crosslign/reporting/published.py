"""Published figures: what the papers printed, as tidy CSV, never mixed with ours."""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crosslign.errors import InputError
from crosslign.tasks.records import bounds_of

Place = tuple[str, str, str]
"""Task, subset and metric of a figure."""


class Published:
    """Figures of one printed table.

    A model may stand in several blocks of a table (trained in two ways, say) and twice in one (quoted, and run again), so a figure is
    looked up by the printed heading, label and model, then by heading and model, then by the model alone.

    Args:
        figures: text as printed by (heading, label, model), then by place.
    """

    def __init__(self, figures: Mapping[tuple[str, str, str], Mapping[Place, str]]) -> None:
        self._figures: dict[tuple[str, ...], dict[Place, str]] = {}
        for (heading, label, model), values in figures.items():
            for key in ((heading, label, model), (heading, model), (model,)):
                self._figures[key] = {**values, **self._figures.get(key, {})}

    def figure(self, row: Mapping[str, Any], column: Mapping[str, Any]) -> float | None:
        """Return the number that was printed for a row and a column of a table's entry; None where there is none.

        Args:
            row: `group`, `label` and `published`: the model's id in the published figures; in a table of counts an object with the
                `task` or the `subset` of the row (and its `model`, where one is named).
            column: `published` with what of task, subset and metric the row leaves open.
        """
        try:
            return float(self.printed(row, column))
        except ValueError:
            return None

    def text(self, row: Mapping[str, Any], column: Mapping[str, Any]) -> str:
        """Return what was printed where it is no plain number, such as `46k` or `738-750`; else an empty string."""
        printed = self.printed(row, column)
        return "" if self.figure(row, column) is not None else printed

    def printed(self, row: Mapping[str, Any], column: Mapping[str, Any]) -> str:
        """Return what was printed for a row and a column, letter by letter; an empty string where nothing was."""
        model, printed = row.get("published"), column.get("published")
        if not model or not printed:
            return ""
        known = {"model": model} if isinstance(model, str) else {"model": "", **model}
        place = (*(known.get(key, printed.get(key, "")) for key in ("task", "subset", "metric")),)
        heading, model = row.get("group", ""), known["model"]
        keys = ((heading, row.get("label", ""), model), (heading, model), (model,))
        found = [self._figures[key] for key in keys if key in self._figures]
        if (heading, model) in self._figures:
            found = found[:-1]  # under another heading the model was trained in another way
        return next((figures[place] for figures in found if place in figures), "")


def _check_ranges(path: Path, figures: Iterable[tuple[int, str, float]]) -> None:
    """Refuse figures that their metric cannot have on the scale of its column, such as 0.931 among percentages.

    A metric is printed in percent where most of its figures in the table exceed 1, else as fractions.

    Args:
        path: the table.
        figures: line, metric and value of each score.
    """
    by_metric: dict[str, list[tuple[int, float]]] = {}
    for line, metric, value in figures:
        by_metric.setdefault(metric, []).append((line, value))
    for metric, found in by_metric.items():
        low, high = bounds_of(metric)
        scale = 1 if statistics.median(abs(value) for _, value in found) <= 1 else 100
        for line, value in found:
            stray = math.isfinite(high) and scale == 100 and 0 < value < 1
            if not math.isfinite(value) or not low * scale <= value <= high * scale or stray:
                raise InputError(
                    f"{metric} {value:g} is out of range",
                    where=f"{path}:{line}",
                    why=f"its table prints {metric} as {'percentages' if scale == 100 else 'numbers'}"
                    + (f" from {low * scale:g} to {high * scale:g}" if math.isfinite(high) else ""),
                )


def read_published(folder: Path, table: str) -> Published:
    """Return the figures of one printed table; none where nothing was printed.

    Settings and sizes (rows without a direction, such as `409k`) are facts of the paper, no scores: they may be no numbers.

    Raises:
        InputError: a score that is no number, or one that its metric cannot have; names file and line.
    """
    path = folder / f"{table}.csv"
    figures: dict[tuple[str, str, str], dict[Place, str]] = {}
    scores: list[tuple[int, str, float]] = []
    if not path.exists():
        return Published(figures)
    with open(path, encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            if row["direction"]:
                scores.append((number, row["metric"], _number(row["value"], f"{path}:{number}")))
            place = (row["task"], row["subset"], row["metric"])
            figures.setdefault((row["group"], row.get("model_label", ""), row["model"]), {}).setdefault(place, row["value"])
    _check_ranges(path, scores)
    return Published(figures)


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"value {text!r} is no number", where=where) from error
