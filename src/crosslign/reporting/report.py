"""The report: every table and figure of a scale on one self-contained page, how the data were made, what the runs cost."""

from __future__ import annotations

import base64
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.errors import printable
from crosslign.files import read_json, write_text
from crosslign.files.lineage import licences_of
from crosslign.reporting.formats import templates
from crosslign.reporting.layout import PrintedTable, lay_out


def _sidecars(folder: Path) -> list[dict[str, Any]]:
    """Return the lineage of every artefact below a folder, in path order."""
    found = [*folder.rglob("*.lineage.json"), *folder.rglob("lineage.json")]
    return [read_json(path) for path in sorted(found) if ".part/" not in path.as_posix()]


def filter_steps(results: Path) -> list[dict[str, Any]]:
    """Return, for each corpus, rows read, rows after each filter, and rows kept."""
    corpora = []
    for lineage in _sidecars(results / "corpora"):
        counts = lineage["counts"]
        if lineage["artefact"]["kind"] == "corpus":
            corpora.append({"name": lineage["recipe"]["corpus"], **counts})
    return corpora


def switched_words(results: Path) -> list[dict[str, Any]]:
    """Return, for each code-switched view and language, words, and the shares covered, replaced, and replaced by themselves."""
    rows = []
    for lineage in _sidecars(results / "views"):
        counts = lineage["counts"]
        rows += [{"view": lineage["recipe"]["view"], "lang": lang, **found} for lang, found in counts.get("by_language", {}).items()]
        rows += [{"view": lineage["recipe"]["view"], "lang": lang} for lang in counts.get("without_dictionary", [])]
    return rows


def decontamination_counts(results: Path) -> list[dict[str, Any]]:
    """Return, for each training set and evaluation set, how many examples were dropped."""
    rows = []
    for lineage in _sidecars(results / "examples"):
        evaluations = lineage["counts"]["decontamination"]["evaluations"]
        rows += [{"examples": lineage["recipe"]["examples"], "corpus": corpus, **counts} for corpus, counts in sorted(evaluations.items())]
    return rows


def run_costs(results: Path) -> list[dict[str, Any]]:
    """Return wall time (s), peak memory (MB) and device of each training, in path order."""
    return [
        {"run": lineage["recipe"]["run_id"], "steps": lineage["counts"].get("steps", ""), "threads": lineage["threads"], **lineage["run"]}
        for lineage in _sidecars(results / "systems")
    ]


def headline(table: PrintedTable) -> dict[str, Any] | None:
    """Return the bars of the first retrieval column that has values: each system against the first row."""
    for index, column in enumerate(table.columns):
        values = [(row.label, row.cells[index].value.ours) for row in table.rows]
        known = [(label, value) for label, value in values if value is not None]
        if "retrieval" in column["group"].lower() and len(known) > 1:
            top = max(value for _, value in known) or 1.0
            best = max(known, key=lambda pair: pair[1])
            bars = [{"label": label, "value": 100 * value, "width": 100 * value / top} for label, value in known]
            return {"column": f"{column['group']}, {column['label']}", "first": known[0], "best": best, "bars": bars}
    return None


def _figure(name: str, entry: Mapping[str, Any], png: Path) -> dict[str, str]:
    image = base64.b64encode(png.read_bytes()).decode("ascii")
    return {"id": name, "title": printable(entry["title"]), "caption": printable(entry.get("caption", "")), "image": image}


def overlap_rows(path: Path) -> list[dict[str, str]]:
    """Return the corpora and evaluation sets that share text, from the overlap's CSV, most rows first."""
    with path.open(encoding="utf-8", newline="") as file:
        found = [row for row in csv.DictReader(file) if int(row["found"])]
    return sorted(found, key=lambda row: (-int(row["found"]), row["corpus"], row["evaluation"]))


def build_report(
    recipe: Mapping[str, Any], results: Path, published: Path, figures: Sequence[Path], out: Path, overlap: Path
) -> dict[str, Any]:
    """Write the report.

    Args:
        recipe: `tables` (resolved), `figures` (entries by id) and `scale`.
        results: the `{results}` folder; lineage of its corpora, examples and systems is shown.
        published: folder of the published figures.
        figures: PNG of each figure, in the order of `recipe["figures"]`.
        out: the page.
        overlap: CSV of the overlap of corpora and evaluation sets.
    """
    tables = [lay_out(table, results, published) for table in recipe["tables"]]
    drawn = [_figure(name, entry, png) for (name, entry), png in zip(recipe["figures"].items(), figures, strict=True)]
    scores = sorted({results / s for table in recipe["tables"] for row in table["cells"] for cell in row for s in cell.get("scores", [])})
    page = (
        templates()
        .get_template("report.html")
        .render(
            tables=tables,
            headline=headline(tables[0]) if tables else None,
            figures=drawn,
            scale=recipe["scale"],
            corpora=filter_steps(results),
            switched=switched_words(results),
            decontamination=decontamination_counts(results),
            overlap=overlap_rows(overlap),
            costs=run_costs(results),
            licences=[printable(licence) for licence in licences_of(scores)],
        )
    )
    write_text(out, page)
    return {"tables": len(tables), "figures": len(drawn)}
