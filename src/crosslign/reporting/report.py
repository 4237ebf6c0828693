"""The report: every table and figure of a scale on one self-contained page, how the data were made, what the runs cost."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.config.cells import table_files
from crosslign.console import number_of, printable
from crosslign.files import write_text
from crosslign.files.lineage import licences_and_heads
from crosslign.files.text import read_csv
from crosslign.reporting.card import PAPERS
from crosslign.reporting.figure_readings import seen_in
from crosslign.reporting.headline import headline
from crosslign.reporting.layout import PrintedTable, lay_out
from crosslign.reporting.licences import in_words
from crosslign.reporting.markup import templates
from crosslign.reporting.readings import from_paper, score_files, seen
from crosslign.reporting.run_records import Lineages, of_kind, run_facts, stage_times, system_costs
from crosslign.reporting.stage_graph import stage_graph


def corpus_rows(lineages: Lineages) -> list[dict[str, Any]]:
    """Return for each corpus `published` and `kept` rows, how many were left out by what (`left`), filters that dropped none (`idle`)."""
    rows = []
    for lineage in of_kind(lineages, "corpus"):
        counts = lineage["counts"]
        broken, steps = counts.get("left_out", {}), counts["filters"]
        left = [(count, reason) for reason, count in broken.items()]
        left += [(step["before"] - step["after"], f"by {step['filter']}") for step in steps if step["before"] > step["after"]]
        published = counts["read"] + sum(broken.values())
        apart = published - counts["rows"] - sum(count for count, _ in left)
        rows.append(
            {
                "name": lineage["recipe"]["corpus"],
                "published": published,
                "kept": counts["rows"],
                "left": [*left, (apart, "not in the sample")] if apart else left,
                "idle": [step["filter"] for step in steps if step["before"] == step["after"]],
            }
        )
    return rows


def learned_thresholds(lineages: Lineages) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return corpora and training sets with thresholds that a clean sample set."""
    found = [
        (lineage["recipe"]["corpus"], step["learned"])
        for lineage in of_kind(lineages, "corpus")
        for step in lineage["counts"]["filters"]
        if step.get("learned")
    ]
    found += [
        (one["recipe"]["examples"], one["counts"]["learned"]) for one in of_kind(lineages, "examples") if one["counts"].get("learned")
    ]
    return found


def switched_words(lineages: Lineages) -> list[dict[str, Any]]:
    """Return, for each code-switched view and language, words, and the shares covered, replaced, and replaced by themselves."""
    rows = []
    for lineage in of_kind(lineages, "view"):
        counts = lineage["counts"]
        rows += [{"view": lineage["recipe"]["view"], "lang": lang, **found} for lang, found in counts.get("by_language", {}).items()]
        rows += [{"view": lineage["recipe"]["view"], "lang": lang} for lang in counts.get("without_dictionary", [])]
    return rows


def decontamination_counts(lineages: Lineages) -> list[dict[str, Any]]:
    """Return, for each training set and evaluation corpus, how many examples were dropped, where any were or would have been."""
    rows = []
    for lineage in of_kind(lineages, "examples"):
        evaluations = lineage["counts"]["decontamination"]["evaluations"]
        found = [(corpus, counts) for corpus, counts in sorted(evaluations.items()) if counts["dropped"] or counts["pair_level"]]
        rows += [{"examples": lineage["recipe"]["examples"], "corpus": corpus, **counts} for corpus, counts in found]
    return rows


def _figure(entry: Mapping[str, Any], files: Mapping[str, Path]) -> dict[str, str]:
    image = base64.b64encode(files["png"].read_bytes()).decode("ascii")
    texts = {"title": entry["title"], "caption": entry["caption"], "seen": seen_in(files["csv"])}
    return {"id": entry["id"], "image": image, **{key: printable(text) for key, text in texts.items()}}


def overlap_rows(path: Path) -> list[dict[str, str]]:
    """Return the corpora and evaluation corpora that share text, from the overlap's CSV, most rows first."""
    found = [row for row in read_csv(path)[1] if int(row["found"])]
    return sorted(found, key=lambda row: (-int(row["found"]), row["corpus"], row["evaluation"]))


def row_names(tables: Sequence[PrintedTable]) -> dict[str, str]:
    """Return what tables call each system: the name of the first row that shows it."""
    names: dict[str, str] = {}
    for row in (row for table in tables for row in table.rows if row.system):
        names.setdefault(row.system, row.label)
    return names


def by_paper(recipe: Mapping[str, Any], results: Path, published: Path, figures: Sequence[Path]) -> list[dict[str, Any]]:
    """Return, paper by paper, its tables with what they show and how far they are from the paper, and its figures with what they show."""
    drawn: dict[str, dict[str, Path]] = {}
    for path in figures:
        drawn.setdefault(path.stem, {})[path.suffix[1:]] = path
    papers = []
    for paper in dict.fromkeys(entry["paper"] for entry in [*recipe["tables"], *recipe["figures"]]):
        tables = [lay_out(table, results, published) for table in recipe["tables"] if table["paper"] == paper]
        papers.append(
            {
                "id": paper,
                "work": PAPERS.get(paper, ""),
                "tables": [
                    {"table": table, "seen": seen(table), "from_paper": from_paper(table), "scores": score_files(table)} for table in tables
                ],
                "figures": [_figure(entry, drawn[entry["id"]]) for entry in recipe["figures"] if entry["paper"] == paper],
            }
        )
    return papers


def build_report(
    recipe: Mapping[str, Any], results: Path, published: Path, figures: Sequence[Path], lineages: Lineages, out: Path, overlap: Path
) -> dict[str, Any]:
    """Write the report.

    Args:
        recipe: what `crosslign.config.cells.overview` gives: `tables` (resolved), `figures`, `scale` and `stand_in`.
        results: the `{results}` folder that score files are relative to.
        published: folder of the published figures.
        figures: PNG and CSV of each figure, named by its id.
        lineages: of all that the tables and figures are made of.
        out: the page.
        overlap: CSV of the overlap of corpora and evaluation corpora.
    """
    papers = by_paper(recipe, results, published, figures)
    scores = {results / score for table in recipe["tables"] for score in table_files(table)}
    tables = [entry["table"] for paper in papers for entry in paper["tables"]]
    page = (
        templates()
        .get_template("report.html")
        .render(
            papers=papers,
            counted=number_of,
            headline=headline(tables[0]) if tables else None,
            facts=run_facts(lineages),
            compared=any(cell.published for table in tables for cell in table.cells),
            names=row_names(tables),
            scale=recipe["scale"],
            stand_in=recipe["stand_in"],
            graph=stage_graph(lineages),
            corpora=corpus_rows(lineages),
            learned=learned_thresholds(lineages),
            switched=switched_words(lineages),
            decontamination=decontamination_counts(lineages),
            overlap=overlap_rows(overlap),
            costs=system_costs(lineages),
            rules=stage_times(lineages),
            licences={printable(licence): in_words(licence) for licence in licences_and_heads(scores)[0]},
        )
    )
    write_text(out, printable(page))
    return {"tables": len(recipe["tables"]), "figures": len(recipe["figures"])}
