"""Published figures: what the papers printed, as tidy CSV, never mixed with ours."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from crosslign.entries.papers import Column, Row
from crosslign.entries.resolved import ResolvedTable
from crosslign.errors import InputError
from crosslign.files.text import read_csv
from crosslign.paths import printed_path
from crosslign.tasks.records import bounds_of

Place = tuple[str, str, str]
"""Task, subset and metric of a figure."""
GAIN = re.compile(r"(?:^|;)\s*printed delta ([+-][\d.]+)")
"""How the note of a figure names the improvement that an arrow beside it prints."""
COLUMNS = {"group", "model", "task", "subset", "metric", "value", "direction"}
"""What a file of published figures has, among others."""
FACTORS = {"": 1, "k": 1e3, "M": 1e6}
"""Of the numbers of a size that are printed short: 46k, 16M."""
ERRATA = "errata.csv"
"""Which figures do not add up, and why: table, group, model, model_label, task, subset, metric and the text of the footnote."""


@dataclass(frozen=True)
class Figure:
    """One figure as it was printed.

    Attributes:
        value: letter by letter; a setting or size may be no plain number (`46k`, `738-750`).
        std: its standard deviation, letter by letter; empty where none was printed.
        notes: what does not add up about it.
        gain: the improvement that was printed beside it, signed, letter by letter; empty where none was.
    """

    value: str
    std: str = ""
    notes: tuple[str, ...] = ()
    gain: str = ""

    @property
    def number(self) -> float | None:
        """The value on the printed scale; None where it is not a plain number."""
        try:
            return float(self.value)
        except ValueError:
            return None


def printed_number(text: str) -> float | None:
    """Return the number that was printed, as `46k`, `16M` or `392,702` too; None where it is none."""
    found = re.fullmatch(r"(-?\d+(?:,\d{3})*(?:\.\d+)?)([kM]?)", text)
    return float(found[1].replace(",", "")) * FACTORS[found[2]] if found else None


NOTHING = Figure("")


class Published:
    """Figures of one printed table.

    A model may stand in several blocks of a table (trained in two ways, say) and twice in one (quoted, and run again), so a figure is
    looked up by the printed heading, label and model, then by heading and model, then by the model alone.

    Args:
        figures: by (heading, label, model), then by place.

    Attributes:
        all: every figure, as printed from top to bottom.
    """

    def __init__(self, figures: Mapping[tuple[str, str, str], Mapping[Place, Figure]]) -> None:
        self._figures: dict[tuple[str, ...], dict[Place, Figure]] = {}
        self.all = [figure for values in figures.values() for figure in values.values()]
        for (heading, label, model), values in figures.items():
            for key in ((heading, label, model), (heading, model), (model,)):
                self._figures[key] = {**values, **self._figures.get(key, {})}

    def at(self, row: Row, column: Column) -> Figure:
        """Return what was printed for a row and a column of a table's entry; `NOTHING` where nothing was.

        Args:
            row: `group`, `label` and `published`: the model's id in the published figures; in a table of counts an object with the
                `task` or the `subset` of the row (and its `model`, where one is named).
            column: `published` with what of task, subset and metric the row leaves open.
        """
        model, printed = row.get("published"), column.get("published")
        if not model or not printed:
            return NOTHING
        known = {"model": model} if isinstance(model, str) else {"model": "", **model}
        place = (*(known.get(key, printed.get(key, "")) for key in ("task", "subset", "metric")),)
        heading, model = row.get("group", ""), known["model"]
        keys = ((heading, row.get("label", ""), model), (heading, model), (model,))
        found = [self._figures[key] for key in keys if key in self._figures]
        if (heading, model) in self._figures:
            found = found[:-1]  # under another heading the model was trained in another way
        return next((figures[place] for figures in found if place in figures), NOTHING)


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
                    why=f"its table has {metric} as {'percentages' if scale == 100 else 'numbers'}"
                    + (f" from {low * scale:g} to {high * scale:g}" if math.isfinite(high) else ""),
                )


def _matches(erratum: Mapping[str, str], row: Mapping[str, str]) -> bool:
    """Tell whether an erratum concerns a figure: each of its keys that is not empty names the figure's, one of several apart by `;`."""
    return all(
        not erratum[key] or row[key] in erratum[key].split(";") for key in ("group", "model", "model_label", "task", "subset", "metric")
    )


def _read_errata(path: Path, table: str) -> list[tuple[str, dict[str, str]]]:
    """Return the errata of one table, each with its place in the file."""
    if not path.exists():
        return []
    return [(f"{path}:{number}", row) for number, row in enumerate(read_csv(path)[1], start=2) if row["table"] == table]


def read_published(folder: Path, table: str) -> Published:
    """Return the figures of one printed table, each with its errata (`errata.csv` beside them); none where nothing was printed.

    Args:
        folder: the project's own figures; the catalog's are read where it has none of this table.
        table: id of the table.

    Settings and sizes (rows without a direction, such as `409k`) are facts of the paper, no scores: they may be no numbers.

    Raises:
        InputError: a score that is not a number, or one that its metric cannot have; a figure that occurs twice; a line or column too few;
            an erratum that names no figure; names file and line.
    """
    path = printed_path(folder, table)
    figures: dict[tuple[str, str, str], dict[Place, Figure]] = {}
    scores: list[tuple[int, str, float]] = []
    if not path.exists():
        return Published(figures)
    errata = _read_errata(path.parent / ERRATA, table)
    used: set[str] = set()
    columns, rows = read_csv(path)
    missing = COLUMNS - set(columns)
    if missing:
        raise InputError(
            f"column {min(missing)!r} is missing", where=str(path), why=f"published figures need the columns {sorted(COLUMNS)}"
        )
    for number, row in enumerate(rows, start=2):
        if row["direction"]:
            scores.append((number, row["metric"], _number(row["value"], f"{path}:{number}")))
        place = (row["task"], row["subset"], row["metric"])
        notes = {where: erratum["text"] for where, erratum in errata if _matches(erratum, row)}
        used.update(notes)
        gain = GAIN.search(row.get("note", ""))
        figure = Figure(row["value"], row.get("std", ""), tuple(notes.values()), gain[1] if gain else "")
        of_row = figures.setdefault((row["group"], row.get("model_label", ""), row["model"]), {})
        if place in of_row:
            why = f"{row['model']} has {'/'.join(place)} = {of_row[place].value} above"
            raise InputError("a figure occurs twice", where=f"{path}:{number}", why=why)
        of_row[place] = figure
    _check_ranges(path, scores)
    unused = [where for where, _ in errata if where not in used]
    if unused:
        raise InputError("an erratum matches no printed figure", where=unused[0], why=f"no line of {path} fits it")
    return Published(figures)


def published_of(resolved: ResolvedTable, folder: Path) -> Published:
    """Return the figures that a table shows: those printed under its own id, or under the one that it names (`published_from`).

    Raises:
        InputError: as `read_published`; or a row says what was printed for it, and nothing was.
    """
    source = resolved.get("published_from", resolved["id"])
    figures = read_published(folder, source)
    for row in resolved["rows"]:
        if "published" in row and not any(figures.at(row, column).value for column in resolved["columns"]):
            raise InputError(
                f"nothing is published for the row {row['label']!r}",
                where=f"table {resolved['id']}",
                why=f"no line of {folder / source}.csv fits its {row['published']!r} under any column",
                do="Correct `published` of row or columns, or name the table that has the figures (`published_from`)",
            )
    return figures


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"value {text!r} is not a number", where=where) from error
