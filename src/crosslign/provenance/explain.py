"""One cell of a table, walked back to the bytes that it depends on, by lineage alone."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from crosslign.config.baselines import full_name, layout_of, notes_at, unique_names
from crosslign.config.cells import cell_parts, resolve_table
from crosslign.config.project import Project
from crosslign.console import number_of, printable
from crosslign.entries.papers import Column, Row
from crosslign.entries.resolved import ResolvedCell, ResolvedTable
from crosslign.errors import InputError
from crosslign.files.lineage import code_of, lineage_path
from crosslign.files.walk import is_there
from crosslign.paths import PUBLISHED
from crosslign.provenance.artefact_states import require_whole
from crosslign.provenance.chain import Link, chain
from crosslign.registry import nearest
from crosslign.reporting.published import Figure, published_of
from crosslign.reporting.values import Cell, cell_or_gap, cell_value

WIDTH = 118
SHOWN = 4
"""Records, and artefacts of one kind, that a first look shows."""
OF_RECORD = (
    "eval",
    "subset",
    "metric",
    "direction",
    "protocol",
    "checkpoint",
    "pooling",
    "layer",
    "threshold",
    "threshold_from",
    "status",
    "reason",
)
"""Keys of a record that say which number it is; the others are hashes and settings, which stand in the chain."""


@dataclass(frozen=True)
class Place:
    """A cell found: its table, its row and column as declared, and its resolved parts.

    Attributes:
        resolved: the table.
        row, column: entries of the table.
        cell: resolved: `scores`, `parts`, `mean_of`, `text` or `reason`.
        numbers: of the row and of the column.
        parts: the cells that hold its scores, by the name of their column; more than one for an average.
    """

    resolved: ResolvedTable
    row: Row
    column: Column
    cell: ResolvedCell
    numbers: tuple[int, int]
    parts: list[tuple[str, ResolvedCell]]


def _names(entry: Mapping[str, Any]) -> set[str]:
    """Return what a row or column may be called, beside its name in the CSV: `crosslign diff` writes group and system, too."""
    system, full = entry.get("system", entry["label"]), full_name(entry)
    return {entry["label"], system, full, f"{full} ({system})"}


def _plain(name: str) -> str:
    """Return a name as a keyboard without arrows types it."""
    return name.replace("→", "->")


def _one(table: str, kind: str, wanted: str, entries: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of the one row or column of that name: the one that the CSV calls so, else by label, system or heading.

    `->` is taken for `→`.

    Raises:
        InputError: none has it, or more than one; names what there is.
    """
    names = unique_names(entries)
    plain = [_plain(name) for name in names]
    if _plain(wanted) in plain:
        return plain.index(_plain(wanted))
    found = [index for index, entry in enumerate(entries) if _plain(wanted) in map(_plain, _names(entry))]
    if not found:
        raise InputError(f"unknown {kind} {wanted!r}", where=f"table {table}", why=nearest(wanted, names))
    if len(found) > 1:
        ways = "; ".join(repr(names[index]) for index in found)
        raise InputError(f"{len(found)} {kind}s have the name {wanted!r}", where=f"table {table}", do=f"Name one of {ways}")
    return found[0]


def _table(project: Project, table: str) -> str:
    """Return the name of a table.

    Raises:
        InputError: there is none of that name, or it is a figure.
    """
    if table in project.figures:
        path = project.paths.figure(table, "csv")
        raise InputError(f"{table} is a figure, which has no cells", where="crosslign explain", why=f"its numbers are in {path}")
    if table not in project.tables:
        raise InputError(f"unknown table {table!r}", where="crosslign explain", why=nearest(table, list(project.tables)))
    return table


def find_cell(project: Project, table: str, row: str, column: str) -> Place:
    """Return a cell by its row (as the CSV calls it, label, system, or `group: label`) and its column (the same).

    Raises:
        InputError: no such table, row or column, or more than one; names what there is.
    """
    resolved = resolve_table(project, _table(project, table))
    at, to = _one(table, "row", row, resolved["rows"]), _one(table, "column", column, resolved["columns"])
    return Place(resolved, resolved["rows"][at], resolved["columns"][to], resolved["cells"][at][to], (at, to), cell_parts(resolved, at, to))


def _yaml(content: Any) -> list[str]:
    """Return content as YAML: mappings line by line, their innermost ones and lists in one line."""
    writer, text = YAML(typ="safe", pure=True), StringIO()
    writer.default_flow_style, writer.width, writer.allow_unicode = None, WIDTH, True
    writer.dump(content, text)
    return text.getvalue().splitlines()


def _block(name: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield lines beside their heading."""
    for number, line in enumerate(lines):
        yield f"    {name if not number else '':<9} {line}"


def _versions(lineage: Mapping[str, Any]) -> str:
    return ", ".join(f"{package} {version}" for package, version in lineage["versions"].items())


def _heading(place: Place, value: Cell, published: Figure) -> Iterator[str]:
    numbers = {**layout_of(place.resolved), **place.column}
    scale_by, decimals = numbers["scale_by"], numbers["decimals"]
    shown = value.text or ("–" if value.ours is None else f"{value.ours * scale_by:.{decimals}f}")
    if value.std is not None:
        shown += f" ± {value.std * scale_by:.{decimals}f} over {number_of(value.seeds, 'run')}"
    if value.interval:
        low, high = (f"{end * scale_by:.{decimals}f}" for end in value.interval)
        shown += f" (95 % interval {low} to {high})"
    yield f"table      {place.resolved['id']}: {place.resolved['title']}"
    yield f"row        {full_name(place.row)}" + (f" ({place.row['system']})" if "system" in place.row else "")
    yield f"column     {full_name(place.column)}"
    yield f"ours       {shown}" + (f": {value.reason}" if value.ours is None and value.reason else "")
    source = place.resolved.get("published_from", place.resolved["id"])
    printed = published.value + (f" ± {published.std}" if published.std else "")
    yield f"published  {printed or '–'}" + (f" (resources/published/{source}.csv)" if printed else "")
    if "mean_of" in place.cell:
        yield f"mean of    the columns {', '.join(place.cell['mean_of'])}"
    elif len(place.parts) > 1:
        yield f"{'sum' if 'total' in place.cell else 'mean'} of    {number_of(len(place.parts), 'record')}"
    at, to = place.numbers[0], place.column["label"]
    notes = [note for where in ((at, None), (None, to), (at, to), (None, None)) for note in notes_at(place.resolved, *where)]
    yield from (f"note       {note}" for note in dict.fromkeys([*value.notes, *published.notes, *notes]))
    if place.resolved["stand_in"]:
        yield "synthetic  the text is the project's own: the score means nothing"


def _each_record(place: Place, results: Path) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Yield the records of a cell, each with its value in words and its score file."""
    for label, part in place.parts:
        value = cell_or_gap(part, place.resolved, results)
        for record, score in zip(value.records, value.score_files, strict=True):
            shown = "undefined" if record["value"] is None else repr(record["value"])
            items = f" on {number_of(record['n_items'], 'item')}" if record.get("n_items") is not None else ""
            interval = ""
            if record.get("ci_low") is not None and record.get("ci_high") is not None:
                interval = f", 95 % interval {record['ci_low']:.4f} to {record['ci_high']:.4f}"
            yield f"{label}: {shown}{items}{interval}", record, score


def _records(place: Place, results: Path) -> Iterator[str]:
    for said, record, score in _each_record(place, results):
        yield from ("", said)
        yield from _block("run", [str(record.get("run_id", "–"))])
        known = ", ".join(f"{key} {record[key]}" for key in OF_RECORD if record.get(key) not in (None, ""))
        yield from _block("record", textwrap.wrap(known, WIDTH))
        yield from _block("in", [score])


def _at_a_glance(place: Place, results: Path) -> list[str]:
    """Return one line a record, of the first few."""
    lines = [f"  {said}, run {record.get('run_id', '–')}" for said, record, _ in _each_record(place, results)]
    return [*lines[:SHOWN], *([f"  and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else [])]


def _files(link: Link) -> list[str]:
    lines = []
    for path, sha256 in link.sha256.items():
        lineage = link.files[path]
        name = f"{path.rpartition('/')[2]}  " if len(link.files) > 1 else ""
        lines.append(f"{sha256}  {name}" + (number_of(lineage["artefact"]["bytes"], "byte") if lineage else ""))
    return lines


def _origin(lineage: Mapping[str, Any]) -> Iterator[str]:
    run = lineage["run"]
    seed = "" if lineage["seed"] is None else f", seed {lineage['seed']}"
    threads = number_of(lineage["threads"], "thread")
    made_by = f"{lineage.get('version') or lineage['rule']}, code {code_of(lineage) or 'unknown'}, commit {run['commit'] or 'unknown'}"
    taken = [f"accepted on {one['at']}, made by {one['version'] or 'an unknown version'}" for one in run.get("accepted", [])]
    yield from _block("made by", [made_by, *taken])
    yield from _block("when", [f"{run['started']}, {run['wall_s']:.1f} s on {run['device']}, {threads}{seed}, {run['peak_mb']:.0f} MB"])


def _link(link: Link, numbers: Mapping[str, int], versions: str, command: str, shown: Path) -> Iterator[str]:
    yield ""
    yield f"[{numbers[link.path]}] {link.path}" + ("" if len(link.files) == 1 else f" ({len(link.files)} files)")
    yield from _block("sha256", _files(link))
    lineage = link.lineage
    if lineage is None:
        yield from _block("origin", ["outside this project: no lineage describes it"])
        return
    yield from _origin(lineage)
    yield from _block("from", textwrap.wrap("; ".join(f"[{numbers[name]}] {name}" for name in link.made_of), WIDTH))
    if len(link.files) == 1 or link.kind == "evaluation":
        yield from _block("recipe", _yaml(lineage["recipe"]) if lineage["recipe"] else [])
        yield from _block("counts", _yaml(lineage["counts"]) if lineage["counts"] else [])
    else:
        entry = lineage["recipe"].get("entry", {}) if isinstance(lineage["recipe"], Mapping) else {}
        yield from _block("source", _yaml(entry) if entry else [])
    if _versions(lineage) != versions:
        yield from _block("versions", textwrap.wrap(_versions(lineage), WIDTH))
    target = shlex.quote(os.path.normpath(shown / next(iter(link.files))))
    # By its path: lineage may name a kind of rules, of which Snakemake knows each by another name.
    yield from _block("again", [f"{command} --forcerun {target} -- {target}"])


def _behind(link: Link, numbers: Mapping[str, int]) -> str:
    """Return the numbers of what a link was made of, neighbours as one: `[4]`, `[4] [7-12]`; empty where it was made of nothing."""
    found = sorted(numbers[name] for name in link.made_of)
    ends = [at for at, number in enumerate(found) if at + 1 == len(found) or found[at + 1] > number + 1]
    starts = [0, *(end + 1 for end in ends)]
    runs = [(found[start], found[end]) for start, end in zip(starts, ends, strict=False)]
    return " ".join(f"[{first}]" if first == last else f"[{first}-{last}]" for first, last in runs)


def _contents(links: Sequence[Link], numbers: Mapping[str, int], most: int | None = None) -> Iterator[str]:
    """Yield one line a link: its number, kind, path, the start of its hash, and the numbers of what it was made of.

    Args:
        links: of the chain.
        numbers: of each by its path.
        most: of one kind are shown, with how many more there are; None for all.
    """
    groups = [(kind, list(of_kind)) for kind, of_kind in groupby(links, key=lambda link: link.kind)]
    width = max(len(link.path) for _, of_kind in groups for link in of_kind[:most])
    for kind, of_kind in groups:
        for link in of_kind[:most]:
            sha256 = next(iter(link.sha256.values()))[:12] if len(link.files) == 1 else number_of(len(link.files), "file")
            behind = _behind(link, numbers)
            line = f"{f'[{numbers[link.path]}]':>5} {kind:<10} {link.path:<{width}}  {sha256:<12}  {behind and f'from {behind}'}"
            yield line.rstrip()
        if more := len(of_kind) - len(of_kind[:most]):
            yield f"      {'':<10} and {more} more"


def explain(project: Project, table: str, row: str, column: str, options: Sequence[str] = (), *, full: bool = False) -> str:
    """Return in words where a cell comes from: its records, then every artefact behind them, down to the downloads.

    Args:
        project: the project as configured.
        table, row, column: the cell.
        options: what the project was read with, for the commands: `--configfile` and `--config` as given to Snakemake.
        full: every record and artefact with hashes, recipes, counts, versions and commands, in place of one line each.

    Raises:
        InputError: no such cell; or its scores are not built, or not what their lineage says.
    """
    place, results = find_cell(project, table, row, column), project.paths.results
    shown = results.relative_to(project.root) if results.is_relative_to(project.root) else results
    command = " ".join(["snakemake --cores all", *options])
    target = shlex.quote(f"{shown}/tables/{table}.md")
    scores = [score for _, part in place.parts for score in part.get("scores", [])]
    for score in scores:
        if not (results / score).exists():
            raise InputError("this cell is not built yet", where=str(results / score), do=f"Run {command} -- {target}")
    # What has no lineage is said to have none.
    require_whole(results, [results / score for score in scores if is_there(lineage_path(results / score))])
    published = published_of(place.resolved, project.root / PUBLISHED).at(place.row, place.column)
    lines = list(_heading(place, cell_value(place.resolved, results, *place.numbers), published))
    if not scores:
        return "\n".join(map(printable, lines))
    lines.append(f"command    {command} -- {target}")
    links = chain(results, dict.fromkeys(scores))
    numbers = {link.path: number for number, link in enumerate(links, start=1)}
    records = list(_records(place, results)) if full else _at_a_glance(place, results)
    lines += ["", "Records", *records, "", f"Chain, from the score back to the downloads (paths are below {shown})", ""]
    lines += _contents(links, numbers, None if full else SHOWN)
    lines += (
        _details(links, numbers, command, shown) if full else ["", "--full adds the recipe, hashes, counts, versions and command of each"]
    )
    return "\n".join(map(printable, lines))


def _details(links: Sequence[Link], numbers: Mapping[str, int], command: str, shown: Path) -> Iterator[str]:
    """Yield all that is known of every link, then versions and licences."""
    first = links[0].lineage
    versions = _versions(first) if first else ""
    yield from ("", "Each of them")
    for link in links:
        yield from _link(link, numbers, versions, command, shown)
    licences = sorted({licence for link in links for lineage in link.files.values() if lineage for licence in lineage["licences"]})
    yield from ("", *([f"versions   {versions}"] if versions else []), *(f"licence    {licence}" for licence in licences))
