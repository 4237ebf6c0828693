"""A table ready to print: texts of cells, footnote letters, title; each format only dresses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from crosslign.config.baselines import ONLY_PUBLISHED, baseline_words, layout_of, named_columns, notes_at, unique_names
from crosslign.console import number_of, one_line, printable
from crosslign.entries.resolved import ResolvedTable
from crosslign.files.lineage import licences_and_heads
from crosslign.reporting.counts import budget_note, tuning_note
from crosslign.reporting.published import published_of
from crosslign.reporting.significance import mark_cells
from crosslign.reporting.ties import tie_notes
from crosslign.reporting.values import Cell, fill_grid

DASH, MINUS = "–", "−"
REDUCED = (
    "Scale {} is reduced: less data (footnotes give the full sizes), smaller encoders, fewer steps. "
    "Rows that differ only in a size that it caps may be equal."
)
IN_GREY = " Published figures, in grey, only show their place: differences from them mean nothing."
REPLACED = "At this scale the encoder {} replaces {}."
STAND_IN = "Built on synthetic data, which the project writes in the official formats: the scores mean nothing."
DELTA = "In brackets: ours minus the published figure."
HEADS = "Sentences were drawn from the beginning of each large archive, not from the whole: {}."
GAIN = "In brackets with an arrow: the improvement that the paper prints beside its figure."
NEITHER = "no published figure and none of ours"
ERRATA = "ERRATA with a number: a section of resources/published/ERRATA.md."


@dataclass
class PrintedCell:
    """Texts of one cell.

    Attributes:
        ours, published: as printed, the paper's letter by letter with its standard deviation and arrow; `published` may be empty.
        letters: of its footnotes.
        sign: ↑ or ↓ where it differs beyond chance from the row that it is compared with.
        best: whether it is the best of its column.
        details: run, items, interval and score file in words.
        value: what it was printed from.
        scale_by: factor from its fraction to the printed scale.
        delta: ours less published, signed; empty where one is missing, and at a reduced scale.
    """

    ours: str
    published: str
    letters: str
    sign: str
    best: bool
    details: str
    value: Cell
    scale_by: float = 100
    delta: str = ""


@dataclass
class PrintedRow:
    """One row of a table.

    Attributes:
        group: its group's heading where a new group begins, else empty.
        block: the heading that it stands under.
        label: as printed; rows of several systems may share one.
        letters: of its footnotes.
        cells: one a column.
        name: its label, with what tells it from rows of the same label.
        system: id of its system; empty where none is run.
    """

    group: str
    block: str
    label: str
    letters: str
    cells: list[PrintedCell]
    name: str
    system: str = ""


@dataclass
class PrintedTable:
    """Everything that a format needs; all texts are free of control codes.

    Columns have `group`, `label`, `name`, which is their own, and `better` (`lower` where less is); `latex` has the places of those that
    LaTeX prints; empty: all.
    """

    id: str
    title: str
    caption: str
    columns: list[dict[str, str]]
    rows: list[PrintedRow]
    footnotes: list[tuple[str, str]]
    reduced: bool
    baseline: str = "the first row"
    column_letters: list[str] = field(default_factory=list)
    latex: list[int] = field(default_factory=list)

    @property
    def cells(self) -> list[PrintedCell]:
        """All cells, row by row."""
        return [cell for row in self.rows for cell in row.cells]


def by_letter(letters: str) -> tuple[int, str]:
    """Return what footnotes are sorted by: a to z, then aa, ab and so on."""
    return len(letters), letters


class _Footnotes:
    """Gives footnotes their letters in reading order; equal texts share one."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def of(self, text: str) -> str:
        before, number = divmod(len(self.letters), len(ascii_lowercase))
        return self.letters.setdefault(one_line(text), ("", *ascii_lowercase)[before] + ascii_lowercase[number])

    def join(self, texts: list[str]) -> str:
        return ",".join(sorted({self.of(text) for text in texts}, key=by_letter))


def _number(value: float | None, scale_by: float, decimals: int) -> str:
    """Return a number as printed: a true minus, which LaTeX does not print as a hyphen, and none before zero."""
    if value is None:
        return DASH
    text = f"{value * scale_by:.{decimals}f}"
    return text.replace("-", MINUS) if float(text) else text.lstrip("-")


def _of_record(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a record says of how its value was found."""
    if record.get("checkpoint"):
        yield f"checkpoint {record['checkpoint']}"
    if record.get("n_items") is not None:
        yield number_of(record["n_items"], "item")
    if record.get("threshold") is not None:
        origin = record.get("threshold_from")
        yield f"threshold {record['threshold']:.4f}" + (f" from {origin}" if origin else "")


def _details(cell: Cell, scale_by: float, decimals: int) -> str:
    leaves = cell.leaves
    if not any(leaf.records for leaf in leaves):
        return cell.reason
    runs = ", ".join(dict.fromkeys(filter(None, (record.get("run_id") for leaf in leaves for record in leaf.records))))
    facts = [f"mean of {number_of(len(leaves), 'evaluation')}" if cell.parts else "", f"runs {runs}" if runs else ""]
    facts += [] if cell.parts else _of_record(cell.records[0])
    if cell.interval:
        low, high = (_number(end, scale_by, decimals) for end in cell.interval)
        facts.append(f"95 % interval {low} to {high}")
    if cell.p_value is not None:
        facts.append(f"p = {cell.p_value:.3f} against {cell.against}")
    facts.append(", ".join(cell.score_files))
    return "; ".join(fact for fact in facts if fact)


def _delta(cell: Cell, scale_by: float, decimals: int) -> str:
    """Return ours less the published figure, both as printed."""
    if cell.ours is None or cell.published is None:
        return ""
    less = round(cell.ours * scale_by, decimals) - round(cell.published, decimals) + 0.0  # no minus before zero
    return f"{less:+.{decimals}f}".replace("-", MINUS)


def _published(cell: Cell) -> str:
    """Return what was printed: the figure, its standard deviation, and the arrow of an improvement."""
    text = one_line(cell.printed) + (f" ± {one_line(cell.published_std)}" if cell.published_std else "")
    arrow = "↓" if cell.published_gain.startswith("-") else "↑"
    return text + (f" ({arrow}{one_line(cell.published_gain[1:])})" if cell.published_gain else "")


def _printed_cell(cell: Cell, notes: _Footnotes, table_notes: list[str], *, scale_by: float, decimals: int, reduced: bool) -> PrintedCell:
    ours = one_line(cell.text) or ("≈ " if cell.estimated else "") + _number(cell.ours, scale_by, decimals)
    if cell.std is not None:
        ours += f" ± {_number(cell.std, scale_by, decimals)}"
    reason = NEITHER if cell.reason == ONLY_PUBLISHED and not cell.printed else cell.reason
    texts = [*table_notes, *cell.notes, *([reason] if cell.ours is None and reason else [])]
    sign = "↑" if "above" in cell.marks else "↓" if "below" in cell.marks else ""
    published = _published(cell)
    delta = "" if reduced else _delta(cell, scale_by, decimals)
    details = printable(_details(cell, scale_by, decimals))
    return PrintedCell(ours, published, notes.join(texts), sign, "best" in cell.marks, details, cell, scale_by, delta)


def scaled_title(title: str, scale: str, stand_in: bool) -> str:
    """Return the title of a table or figure with what must be said of its scale."""
    if scale != "paper":
        title += f" (scale {scale}, reduced)"
    return title + (" – synthetic data, scores mean nothing" if stand_in else "")


def _told_once(grid: Sequence[Sequence[Cell]]) -> list[str]:
    """Take the notes that every value has off the cells, and return them: they are told of the table."""
    values = [cell for cells in grid for cell in cells if cell.ours is not None]
    shared = [note for note in values[0].notes if all(note in cell.notes for cell in values)] if len(values) > 1 else []
    for cell in values:
        cell.notes = [note for note in cell.notes if note not in shared]
    return shared


def _scale_notes(resolved: ResolvedTable, rows: list[PrintedRow]) -> list[str]:
    """Return what must be said of the whole table: its scale, synthetic data, what brackets hold."""
    notes = [STAND_IN] if resolved["stand_in"] else []
    cells = [cell for row in rows for cell in row.cells]
    if resolved["scale"] != "paper":
        notes.append(REDUCED.format(resolved["scale"]) + (IN_GREY if any(cell.published for cell in cells) else ""))
    by = resolved.get("encoders", {})
    notes += [REPLACED.format(other, ", ".join(name for name in by if by[name] == other)) for other in dict.fromkeys(by.values())]
    notes += [GAIN] if any(cell.value.published_gain for cell in cells) else []
    return notes + ([DELTA] if any(cell.delta for cell in cells) else [])


def lay_out(resolved: ResolvedTable, results: Path, published: Path) -> PrintedTable:
    """Fill a resolved table and turn every cell into text.

    Args:
        resolved: the table with resolved cells, title and footnotes.
        results: the `{results}` folder.
        published: folder of the published figures.
    """
    layout, grid = layout_of(resolved), fill_grid(resolved, results, published_of(resolved, published))
    verdicts = mark_cells(resolved, grid, results)
    notes, shared, reduced = _Footnotes(), _told_once(grid), resolved["scale"] != "paper"
    columns = resolved["columns"]
    heads = licences_and_heads({results / file for row in grid for cell in row for file in cell.files})[1]
    numbers = [(column.get("scale_by", layout["scale_by"]), column.get("decimals", layout["decimals"])) for column in columns]
    column_letters = [notes.join(notes_at(resolved, None, column["label"])) for column in columns]
    names, rows, before = unique_names(resolved["rows"]), [], None
    for number, (entry, cells) in enumerate(zip(resolved["rows"], grid, strict=True)):
        letters = notes.join(notes_at(resolved, number, None))
        printed = [
            _printed_cell(cell, notes, notes_at(resolved, number, column["label"]), scale_by=scale_by, decimals=decimals, reduced=reduced)
            for cell, column, (scale_by, decimals) in zip(cells, columns, numbers, strict=True)
        ]
        block, label = one_line(entry.get("group", "")), one_line(entry["label"])
        heading, before = block if entry.get("group") != before else "", entry.get("group")
        rows.append(PrintedRow(heading, block, label, letters, printed, names[number], one_line(entry.get("system", ""))))
    told = [*notes_at(resolved, None, None), *shared, *_scale_notes(resolved, rows)]
    told += [HEADS.format("; ".join(map(one_line, heads)))] if heads else []
    told += [ERRATA] if any("ERRATA" in text for text in (*notes.letters, *told)) else []
    told += [budget_note(resolved, results, names)] if "budget" in resolved else []
    told += [tuning_note(resolved, results)] if "tuned" in resolved else []
    told += tie_notes(resolved, grid, results, names) if layout.get("ties") else []
    footnotes = [(letter, text) for text, letter in notes.letters.items()] + [("", one_line(text)) for text in told if text] + verdicts
    return PrintedTable(
        id=resolved["id"],
        title=one_line(scaled_title(str(resolved["title"]), resolved["scale"], resolved["stand_in"])),
        caption=one_line(resolved.get("caption", "")),
        columns=[
            {"group": one_line(c.get("group", "")), "label": one_line(c["label"]), "name": name, "better": c.get("better", "")}
            for c, name in zip(columns, unique_names(columns), strict=True)
        ],
        rows=rows,
        footnotes=footnotes,
        reduced=reduced,
        baseline=one_line(baseline_words(resolved["rows"])),
        column_letters=column_letters,
        latex=named_columns(columns, layout.get("latex", [])),
    )
