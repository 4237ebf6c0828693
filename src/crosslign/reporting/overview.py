"""One page that shows every table and figure of a run in small: a headline of each paper, how much of it has been filled, thumbnails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.console import printable
from crosslign.entries.resolved import ResolvedTable
from crosslign.files import write_text
from crosslign.reporting.headline import headline
from crosslign.reporting.layout import lay_out
from crosslign.reporting.markup import markdown_escape, templates
from crosslign.reporting.published import published_of
from crosslign.reporting.values import fill_cells


def coverage(table: ResolvedTable, results: Path, published: Path) -> dict[str, Any]:
    """Return a resolved table's `id`, `title` and `paper`, its `cells`, and those `filled` by us, `published`, and `both`.

    `headline` is what one column shows; empty where no two rows have a value in any.
    """
    figures = published_of(table, published)
    ours = [cell.filled for row in fill_cells(table, results) for cell in row]
    printed = [bool(figures.at(row, column).value) for row in table["rows"] for column in table["columns"]]
    both = sum(a and b for a, b in zip(ours, printed, strict=True))
    told = headline(lay_out(table, results, published)) if sum(ours) > 1 else None
    named = {"id": table["id"], "title": printable(table["title"]), "paper": table["paper"], "headline": told.words if told else ""}
    return {**named, "cells": len(ours), "filled": sum(ours), "published": sum(printed), "both": both}


def build_overview(recipe: Mapping[str, Any], results: Path, published: Path, out: Mapping[str, Path]) -> dict[str, int]:
    """Write the page, in HTML and in Markdown.

    Args:
        recipe: `tables` (resolved), `figures` (id, title, paper), `scale` and `stand_in`.
        results: the `{results}` folder that score files are relative to.
        published: folder of the published figures.
        out: final path by format: html, md.

    Returns:
        counts of tables, figures, cells and filled cells.
    """
    rows = [coverage(table, results, published) for table in recipe["tables"]]
    papers = [
        {
            "name": paper,
            "tables": [row for row in rows if row["paper"] == paper],
            "figures": [{**figure, "title": printable(figure["title"])} for figure in recipe["figures"] if figure["paper"] == paper],
            **{key: sum(row[key] for row in rows if row["paper"] == paper) for key in ("cells", "filled", "published", "both")},
            "headline": next((row["headline"] for row in rows if row["paper"] == paper and row["headline"]), ""),
        }
        for paper in dict.fromkeys(item["paper"] for item in [*recipe["tables"], *recipe["figures"]])
    ]
    context = {"papers": papers, "scale": recipe["scale"], "stand_in": recipe["stand_in"], "escaped": markdown_escape}
    for form in ("html", "md"):
        write_text(out[form], templates().get_template(f"overview.{form}").render(**context))
    filled = {key: sum(row[key] for row in rows) for key in ("cells", "filled")}
    return {"tables": len(rows), "figures": len(recipe["figures"]), **filled}
