"""Rows and columns of a table by their names: places that references mean, names that tell them apart, footnotes at them, print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crosslign.console import one_line
from crosslign.entries.papers import Table
from crosslign.entries.resolved import ResolvedTable
from crosslign.errors import InputError

ONLY_PUBLISHED = "published figure only"
"""Reason of an empty cell that has only a published figure."""


def layout_of(resolved: Table) -> dict[str, Any]:
    """Return how a resolved table prints its numbers; its columns may say otherwise."""
    return {"decimals": 1, "scale_by": 100, **resolved.get("print", {})}


def named_rows(at: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the places of the rows that a footnote stands at: by `number`, else by `row`, a label or a system, and `group` where given."""
    if "number" in at:
        return [at["number"]]
    asked = [place for place, row in enumerate(rows) if "group" not in at or row.get("group", "") == at["group"]]
    labelled = [place for place in asked if rows[place]["label"] == at["row"]]
    return labelled or [place for place in asked if rows[place].get("system") == at["row"]]


def named_columns(columns: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[int]:
    """Return the places of the columns whose label or group is named.

    Raises:
        InputError: no column has a label or group that is named.
    """
    own = [(column.get("group", ""), column["label"]) for column in columns]
    known = list(dict.fromkeys(name for pair in own for name in pair if name))
    for name in names:
        if name not in known:
            raise InputError(f"no column or group of columns {name!r}", where="print: latex", why=f"known: {', '.join(known)}")
    return [place for place, pair in enumerate(own) if {*pair} & {*names}]


def _named(rows: Sequence[Mapping[str, Any]], at: int) -> int:
    """Return the place of the row that a row names: the nearest above it in its group, else the first there, else the first anywhere."""
    row = rows[at]
    places = [place for place, other in enumerate(rows) if other["label"] == row["against"] and place != at]
    if not places:
        labels = ", ".join(dict.fromkeys(other["label"] for other in rows))
        raise InputError(f"no row {row['against']!r} to compare with", where=f"the row {row['label']!r}", why=f"rows are {labels}")
    own = [place for place in places if rows[place].get("group") == row.get("group")]
    return max([place for place in own if place < at], default=(own or places)[0])


def baseline_rows(rows: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """Return for each row of a table the place of the row that it is compared with, or None.

    Where rows say `against`, they are compared with the row of that label, and no others are; where none does, every row is compared
    with the first one that is run.

    Raises:
        InputError: no other row has that label.
    """
    if any("against" in row for row in rows):
        return [_named(rows, at) if "against" in row else None for at, row in enumerate(rows)]
    first = next((place for place, row in enumerate(rows) if "system" in row), 0)
    return [None if place == first else first for place in range(len(rows))]


def _called(rows: Sequence[Mapping[str, Any]], place: int) -> str:
    """Return the label of a row, with its group where another one has the same."""
    row = rows[place]
    twice = sum(other["label"] == row["label"] for other in rows) > 1
    return str(row["label"]) + (f" ({row['group']})" if twice and "group" in row else "")


def baseline_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return in words what rows are compared with: the first row, the row of a label or two, or the nearest one of a label."""
    places = [place for place in baseline_rows(rows) if place is not None]
    if not any("against" in row for row in rows):
        return "the first row" if set(places) <= {0} else f"the row {_called(rows, places[0])}"
    labels = list(dict.fromkeys(rows[place]["label"] for place in places))
    if len(labels) > 2:
        return f"the row of comparison ({'; '.join(labels)})"
    each = " above it" if len(set(places)) > len(labels) else ""
    return "the row " + " or ".join(labels) + each


def full_name(entry: Mapping[str, Any]) -> str:
    """Return the label of a row or column behind its group, where it has one, as sorted HTML shows it."""
    return ": ".join(filter(None, (entry.get("group", ""), entry["label"])))


def unique_names(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the labels of rows or columns; equal ones carry their group, if they are still equal also system or published model.

    Args:
        entries: `label`, and where they have one `group`, `system` and `published`, as a table's entry has them.
    """
    labels = [entry["label"] for entry in entries]
    names = [full_name(entry) if labels.count(entry["label"]) > 1 else entry["label"] for entry in entries]
    keys = [entry.get("system", entry.get("published", "")) for entry in entries]
    named = [f"{n} ({key})" if names.count(n) > 1 and isinstance(key, str) and key else n for n, key in zip(names, keys, strict=True)]
    return [one_line(f"{n}, {named[:at].count(n) + 1}" if n in named[:at] else n) for at, n in enumerate(named)]


def notes_at(resolved: ResolvedTable, row: int | None, column: str | None) -> list[str]:
    """Return the texts of the footnotes at a row (by its number), a column (by its label), the cell where both meet, or the table."""
    found = []
    for note in resolved["footnotes"]:
        at = note.get("at", {})
        if at.get("column") == column and (row in named_rows(at, resolved["rows"]) if "row" in at or "number" in at else row is None):
            found.append(note["text"])
    return found
