"""One printed table in four formats: Markdown, tidy CSV, LaTeX (booktabs), HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crosslign.entries.resolved import ResolvedTable
from crosslign.files import write_text
from crosslign.files.text import csv_of
from crosslign.reporting.layout import PrintedCell, PrintedRow, PrintedTable, by_letter, lay_out
from crosslign.reporting.markup import column_groups, latex_escape, markdown_escape, templates
from crosslign.tasks.records import NAMES

CSV_COLUMNS = (
    "table", "row", "column", "ours", "ours_std", "n_seeds", "published", "ci_low", "ci_high", "mark", "footnotes", "score_file", "record",
    "p_value", "delta", "published_std", "published_gain", "group", "system", "scale_by",
)  # fmt: skip
"""Of a table's CSV. `ours`, its deviation and its interval are unscaled; times `scale_by` they are what `published` and `delta` are in."""
PAGE_ROWS = 45
"""Rows of a table that a page of print holds."""


@dataclass(frozen=True)
class _Markup:
    """How a format writes what stands out: patterns with one place for a text."""

    escape: Callable[[str], str]
    bold: str
    published: str
    at_reduced_scale: str
    raised: str

    def letters(self, text: str) -> str:
        return self.raised % text if text else ""

    def labels(self, table: PrintedTable) -> list[str]:
        """Return the columns' labels with their footnotes."""
        return [self.escape(column["label"]) + self.letters(over) for column, over in zip(table.columns, table.column_letters, strict=True)]

    def line(self, table: PrintedTable, row: PrintedRow) -> list[str]:
        """Return the fields of a row."""
        pattern = self.at_reduced_scale if table.reduced else self.published
        line = [self.escape(row.label) + self.letters(row.letters)]
        for cell in row.cells:
            ours = self.escape(cell.ours)
            text = (self.bold % ours if cell.best else ours) + self.escape(cell.sign)
            text += f" / {pattern % self.escape(cell.published)}" if cell.published else ""
            line.append(text + (f" ({self.escape(cell.delta)})" if cell.delta else "") + self.letters(cell.letters))
        return line

    def notes(self, table: PrintedTable, end: str) -> list[str]:
        """Return the lines of the footnotes."""
        return [(f"{self.letters(letter)} " if letter else "") + self.escape(text) + end for letter, text in table.footnotes]


MARKDOWN = _Markup(markdown_escape, "**%s**", "%s", "<sub>%s</sub>", "<sup>%s</sup>")
LATEX = _Markup(latex_escape, r"\textbf{%s}", r"\textcolor{gray}{%s}", r"\textcolor{black!40}{%s}", r"\textsuperscript{%s}")


def as_markdown(table: PrintedTable) -> str:
    """Return the table in GitHub's Markdown; `ours / published` where something was published."""
    lines = [f"### {markdown_escape(table.title)}", ""]
    if table.caption:
        lines += [markdown_escape(table.caption), ""]
    groups = [f"{markdown_escape(column['group'])}<br>" if column["group"] else "" for column in table.columns]
    heads = [group + label for group, label in zip(groups, MARKDOWN.labels(table), strict=True)]
    lines += ["| | " + " | ".join(heads) + " |", "| :--- |" + " ---: |" * len(heads)]
    for row in table.rows:
        if row.group:
            lines.append(f"| *{markdown_escape(row.group)}* |" + " |" * len(heads))
        lines.append(f"| {' | '.join(MARKDOWN.line(table, row))} |")
    return "\n".join([*lines, "", *MARKDOWN.notes(table, "  "), ""])


def _csv_line(cell: PrintedCell, letters: Sequence[str]) -> list[Any]:
    """Return the fields of a cell, as `CSV_COLUMNS` has them between its column and its group."""
    value = cell.value
    records = dict.fromkeys("/".join(str(leaf.records[0].get(key, "")) for key in NAMES) for leaf in value.leaves if leaf.records)
    notes = sorted({letter for part in (*letters, cell.letters) if part for letter in part.split(",")}, key=by_letter)
    return [
        *(value.text or value.ours, value.std, value.seeds or "", value.printed, value.ci_low, value.ci_high),
        *(";".join(value.marks), ",".join(notes), ";".join(value.files), ";".join(records), value.p_value),
        *(cell.delta.replace("−", "-"), value.published_std, value.published_gain),
    ]


def as_csv(table: PrintedTable) -> str:
    """Return one line a cell, unrounded, with the score files and the records that it came from; (row, column) names one cell."""
    lines = []
    for row in table.rows:
        for column, letters, cell in zip(table.columns, table.column_letters, row.cells, strict=True):
            scale_by = "" if cell.value.text else f"{cell.scale_by:g}"
            line = _csv_line(cell, (letters, row.letters))
            lines.append([table.id, row.name, column["name"], *line, row.block, row.system, scale_by])
    return csv_of(CSV_COLUMNS, lines)


def _latex_heads(table: PrintedTable) -> list[str]:
    """Return the lines above the rows: the columns' headings over rules of their own where there are any, then their labels."""
    lines = [" & ".join(["", *LATEX.labels(table)]) + r" \\", r"\midrule"]
    if not any(column["group"] for column in table.columns):
        return [r"\toprule", *lines]
    groups, rules, first = [""], [], 2
    for name, width in column_groups(table.columns):
        groups.append(rf"\multicolumn{{{width}}}{{c}}{{{latex_escape(name)}}}")
        rules += [rf"\cmidrule(lr){{{first}-{first + width - 1}}}"] if name else []
        first += width
    return [r"\toprule", " & ".join(groups) + r" \\", " ".join(rules), *lines]


def _latex_rows(table: PrintedTable) -> list[str]:
    lines: list[str] = []
    for index, row in enumerate(table.rows):
        if row.group:
            lines += [r"\midrule"] if index else []
            lines.append(rf"\multicolumn{{{len(table.columns) + 1}}}{{l}}{{\textit{{{latex_escape(row.group)}}}}} \\")
        lines.append(" & ".join(LATEX.line(table, row)) + r" \\")
    return lines


def _chosen(table: PrintedTable) -> PrintedTable:
    """Return the table of those columns alone that LaTeX prints, with the footnotes that are left."""
    if not table.latex:
        return table
    rows = [replace(row, cells=[row.cells[place] for place in table.latex]) for row in table.rows]
    over = [table.column_letters[place] for place in table.latex]
    left = {*over, *(row.letters for row in rows), *(cell.letters for row in rows for cell in row.cells)}
    letters = {letter for text in left for letter in text.split(",")}
    notes = [(letter, text) for letter, text in table.footnotes if letter in letters or not letter.isalpha()]
    return replace(table, columns=[table.columns[place] for place in table.latex], rows=rows, column_letters=over, footnotes=notes)


def as_latex(table: PrintedTable) -> str:
    """Return a fragment: a `table*`, made narrower where it is wider than the page, or a `longtable` of more rows than a page holds.

    It has the columns that the table chooses for LaTeX. The preamble needs booktabs, xcolor, graphicx and longtable, and fontspec for
    other scripts.
    """
    table = _chosen(table)
    caption = rf"\caption{{{latex_escape(table.title)}. {latex_escape(table.caption)}}}"
    label = rf"\label{{tab:{table.id.replace('_', '-')}}}"
    columns, heads, rows = "l" + "r" * len(table.columns), _latex_heads(table), _latex_rows(table)
    notes = [r"\par\smallskip\raggedright\footnotesize", *LATEX.notes(table, r"\\")]
    needs = r"% needs: \usepackage{booktabs,xcolor,graphicx,longtable}"
    if len(table.rows) > PAGE_ROWS:
        body = [rf"{caption}{label}\\", *heads, r"\endfirsthead", *heads, r"\endhead", *rows, r"\bottomrule"]
        return "\n".join([needs, r"{\small", rf"\begin{{longtable}}{{{columns}}}", *body, r"\end{longtable}", *notes, r"\par}", ""])
    # A box is measured before it is scaled: \resizebox alone would blow a narrow table up to the width of the page.
    lines = [needs, r"\begin{table*}[t]", r"\centering\small", caption, label, rf"\setbox0\hbox{{\begin{{tabular}}{{{columns}}}"]
    lines += [*heads, *rows, r"\bottomrule", r"\end{tabular}}"]
    lines.append(r"\ifdim\wd0>\textwidth\resizebox{\textwidth}{!}{\box0}\else\box0\fi")
    return "\n".join([*lines, *notes, r"\end{table*}", ""])


def as_html(table: PrintedTable) -> str:
    """Return a self-contained page: sortable, light and dark, readable on a phone."""
    return templates().get_template("table_page.html").render(table=table)


def build_table(resolved: ResolvedTable, results: Path, published: Path, out: Mapping[str, Path]) -> dict[str, Any]:
    """Write one table in every format.

    Args:
        resolved: the table with resolved cells (`crosslign.config.cells.resolve_table`).
        results: the `{results}` folder that score files are relative to.
        published: folder of the published figures.
        out: final path by format: md, csv, tex, html.

    Returns:
        counts of cells filled and empty.
    """
    table = lay_out(resolved, results, published)
    forms = {"md": as_markdown, "csv": as_csv, "tex": as_latex, "html": as_html}
    for form, path in out.items():
        write_text(path, forms[form](table))
    return {"cells": len(table.cells), "filled": sum(cell.value.filled for cell in table.cells)}
