"""Verdicts on what the papers claim: two rows compared by a bootstrap over items and seeds, beside the published difference."""

from __future__ import annotations

import functools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslign.config.claims import KINDS
from crosslign.errors import InputError
from crosslign.files import write_text
from crosslign.files.text import csv_of
from crosslign.reporting.markup import markdown_escape, templates
from crosslign.reporting.published import Published, read_published
from crosslign.reporting.significance import TOO_FEW, Reader, resamples_of, resamples_reader, too_few
from crosslign.reporting.ties import Row, degrees_of
from crosslign.reporting.values import ROUNDING, Cell, fill_cell, mean_cell, run_values

SUPPORTED, REFUTED, UNDECIDED, NOT_RUN = "supported", "refuted", "undecided", "not run"
FIELDS = ("paper", "claim", "place", "says", "kind", "table", "columns", "better", "worse", "published", "ours_better", "ours_worse",
          "difference", "ci_low", "ci_high", "smallest", "verdict", "note", "score_files")  # fmt: skip
MEANING = (
    "A difference is the better side minus the worse side of a claim, in points, with a 95 % interval of a bootstrap over items and seeds. "
    "Supported: the interval lies above zero. Refuted: it lies below zero. Undecided: it contains zero; the smallest difference that could "
    "have shown is given. `crosslign claims` makes this page from the scores that exist; the target `claims` builds the scores first."
)
TITLES = {"own": "the paper's recipe", "equal": "equal budget", "equal_other": "equal budget, another encoder"}


@dataclass(frozen=True)
class Verdict:
    """What our scores say of one comparison.

    Attributes:
        verdict: `supported` where the 95 % interval of better less worse lies above zero, `refuted` below, else `undecided`; `not run`.
        better, worse, difference, low, high: on the printed scale; None where it was not run.
        smallest: difference that would have been seen; that of an undecided claim.
        note: why it was not run, or what limits it.
        files: score files behind it, relative to `{results}`.
    """

    verdict: str
    better: float | None = None
    worse: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    smallest: float | None = None
    note: str = ""
    files: tuple[str, ...] = ()


def _side(compared: Mapping[str, Any], side: str, results: Path) -> Cell:
    return mean_cell([fill_cell(cell, results) for cell in compared[side]["cells"]], "one of its columns")


def judge(compared: Mapping[str, Any], results: Path, seed: int = 42, read: Reader | None = None) -> Verdict:
    """Return the verdict on one comparison, as `crosslign.config.claims.resolve_claims` gives it.

    Args:
        compared: the comparison.
        results: the `{results}` folder.
        seed: of the draws of seeds.
        read: reads resamples; one for several comparisons opens each file once.
    """
    from scipy.stats import t

    if "reason" in compared:
        return Verdict(NOT_RUN, note=compared["reason"])
    try:
        cells = [_side(compared, side, results) for side in ("better", "worse")]
    except InputError as error:
        return Verdict(NOT_RUN, note=f"{error.what}: {Path(error.where).name}")
    if empty := next((cell for cell in cells if cell.ours is None), None):
        return Verdict(NOT_RUN, note=empty.reason or "no value")
    scale, sign = compared["scale_by"], compared["sign"]
    files = tuple(dict.fromkeys(file for cell in cells for file in cell.files))
    better, worse = (scale * (cell.ours or 0.0) for cell in cells)
    read = read or resamples_reader()
    drawn = [resamples_of(cell, results, read) for cell in cells]
    if drawn[0] is None or drawn[1] is None or drawn[0].shape[1] != drawn[1].shape[1]:
        return Verdict(UNDECIDED, better, worse, sign * (better - worse), note="a score has no resamples", files=files)
    rows = [Row(np.asarray(run_values(cell)), own) for cell, own in zip(cells, drawn, strict=True) if own is not None]
    rng = np.random.default_rng(seed)
    differences = rows[0].drawn(rng) - rows[1].drawn(rng)
    if too_few(~np.isnan(differences)):
        return Verdict(UNDECIDED, better, worse, sign * (better - worse), note=TOO_FEW, files=files)
    variance = float(np.nanvar(differences, ddof=1))
    smallest = scale * float(t.ppf(0.975, degrees_of(rows[0], rows[1], variance))) * math.sqrt(variance)
    difference = sign * (better - worse)
    beyond = max(smallest, scale * ROUNDING)
    found = SUPPORTED if difference > beyond else REFUTED if difference < -beyond else UNDECIDED
    alone = any(cell.trained and len(row.runs) < 2 for cell, row in zip(cells, rows, strict=True))
    note = "one seed: the deviation over seeds is unknown" if alone else ""
    return Verdict(found, better, worse, difference, difference - smallest, difference + smallest, smallest, note, files)


def _figure(figures: Published, table: Mapping[str, Any], row: int, column: int) -> float | None:
    """Return the printed figure of a cell; of an average of other columns that is not printed, the mean of theirs."""
    labels, entry = [one["label"] for one in table["columns"]], table["columns"][column]
    number = figures.at(table["rows"][row], entry).number
    parts = [part for part in entry.get("mean_of", ()) if isinstance(part, str)]
    if number is not None or not parts:
        return number
    found = [_figure(figures, table, row, labels.index(part)) for part in parts]
    return None if None in found else statistics.fmean(one for one in found if one is not None)


def published_difference(claim: Mapping[str, Any], tables: Mapping[str, Any], figures_of: Callable[[str], Published]) -> float | None:
    """Return what a paper prints for a claim, better less worse, as it declares it or from the printed figures of its table's cells.

    Args:
        claim: as `resolve_claims` gives it.
        tables: entries of the project's tables.
        figures_of: gives the published figures of a table.
    """
    if "published" in claim or "places" not in claim.get("own", {}):
        return claim.get("published")
    own = claim["own"]
    table = tables[own["table"]]
    figures = figures_of(table.get("published_from", own["table"]))
    sides = []
    for side in ("better", "worse"):
        numbers = [_figure(figures, table, own[side]["place"], at) for at in own["places"]]
        if None in numbers:
            return None
        sides.append(statistics.fmean(number for number in numbers if number is not None))
    return float(own["sign"] * (sides[0] - sides[1]))


def ledger(claims: Sequence[Mapping[str, Any]], tables: Mapping[str, Any], results: Path, printed: Path) -> list[dict[str, Any]]:
    """Return a line for each comparison of each claim; arguments as those of the functions above."""
    lines, read = [], resamples_reader()
    figures_of = functools.cache(functools.partial(read_published, printed))
    for claim in claims:
        published = published_difference(claim, tables, figures_of)
        for kind in filter(claim.__contains__, KINDS):
            own, verdict = claim[kind], judge(claim[kind], results, read=read)
            lines.append({"claim": claim, "kind": kind, "compared": own, "published": published, "verdict": verdict})
    return lines


def _points(value: float | None, sign: bool = False) -> str:
    return "" if value is None else f"{value:{'+' if sign else ''}.1f}".replace("-", "−")


def _ours(verdict: Verdict) -> str:
    """Return both figures, the difference and its interval in words."""
    if verdict.difference is None:
        return ""
    text = f"{_points(verdict.better)} and {_points(verdict.worse)}: {_points(verdict.difference, True)}"
    return text + (f" [{_points(verdict.low, True)}, {_points(verdict.high, True)}]" if verdict.low is not None else "")


def _said(verdict: Verdict) -> str:
    undecided = verdict.verdict == UNDECIDED and verdict.smallest is not None
    extra = f"the smallest difference that could show is {_points(verdict.smallest)}" if undecided else ""
    return verdict.verdict + "".join(f"; {text}" for text in (extra, verdict.note) if text)


def counted(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return how many verdicts there are of each kind."""
    found = Counter((line["kind"], line["verdict"].verdict) for line in lines)
    order = (SUPPORTED, REFUTED, UNDECIDED, NOT_RUN)
    words = [
        f"at {TITLES[kind]}: " + ", ".join(f"{found[kind, name]} {name}" for name in order)
        for kind in KINDS
        if any(line["kind"] == kind for line in lines)
    ]
    return "; ".join(words)


def as_markdown(lines: Sequence[Mapping[str, Any]], title: str) -> str:
    """Return the ledger as a page in Markdown, a table a paper."""
    escape = markdown_escape
    text = [f"# {title}", "", f"{len({line['claim']['id'] for line in lines})} claims; {counted(lines)}.", "", MEANING, ""]
    for paper in dict.fromkeys(line["claim"]["paper"] for line in lines):
        text += [
            f"## {escape(paper)}",
            "",
            "| claim | place | published | at | ours | verdict |",
            "| :--- | :--- | ---: | :--- | :--- | :--- |",
        ]
        for line in (line for line in lines if line["claim"]["paper"] == paper):
            claim, first = line["claim"], line["kind"] == next(kind for kind in KINDS if kind in line["claim"])
            said = [escape(claim["says"]), escape(claim["place"]), _points(line["published"], True)] if first else ["", "", ""]
            at = f"{TITLES[line['kind']]}, `{line['compared']['table']}`"
            text.append("| " + " | ".join([*said, at, _ours(line["verdict"]), escape(_said(line["verdict"]))]) + " |")
        notes = {line["claim"]["id"]: line["claim"] for line in lines if line["claim"]["paper"] == paper}
        could = [f"- {escape(claim['says'])} {escape(claim['could_explain'])}" for claim in notes.values() if "could_explain" in claim]
        text += ["", "Could scale or base encoder explain a refutation?", "", *could, ""] if could else [""]
    return "\n".join(text)


def as_csv(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return a line a comparison, with the score files behind it."""
    rows = []
    for line in lines:
        claim, own, verdict = line["claim"], line["compared"], line["verdict"]
        names = [own.get(side, {}).get("row", "") for side in ("better", "worse")]
        rows.append(
            [claim["paper"], claim["id"], claim["place"], claim["says"], line["kind"], own["table"], "; ".join(own.get("columns", ())),
             *names, line["published"], verdict.better, verdict.worse, verdict.difference, verdict.low, verdict.high, verdict.smallest,
             verdict.verdict, verdict.note, ";".join(verdict.files)]
        )  # fmt: skip
    return csv_of(FIELDS, rows)


def as_html(lines: Sequence[Mapping[str, Any]], title: str) -> str:
    """Return a self-contained page, each line with links to its table and to the lineage of its scores."""
    shown = [{**line, "ours": _ours(line["verdict"]), "said": _said(line["verdict"]), "at": TITLES[line["kind"]]} for line in lines]
    for line in shown:
        line["published"] = _points(line["published"], True)
    page = templates().get_template("claims.html")
    return page.render(lines=shown, title=title, counted=counted(lines), meaning=MEANING.replace("`", ""))


def build_claims(recipe: Mapping[str, Any], results: Path, printed: Path, out: Mapping[str, Path]) -> dict[str, int]:
    """Write the ledger as Markdown, CSV and HTML.

    Args:
        recipe: `claims` as `resolve_claims` gives them, `tables` that they name, `title`.
        results: the `{results}` folder.
        printed: folder of the published figures.
        out: final path by format: md, csv, html.

    Returns:
        counts of verdicts.
    """
    lines = ledger(recipe["claims"], recipe["tables"], results, printed)
    title = recipe["title"]
    for form, text in (("md", as_markdown(lines, title)), ("csv", as_csv(lines)), ("html", as_html(lines, title))):
        write_text(out[form], text)
    return dict(Counter(line["verdict"].verdict for line in lines))
