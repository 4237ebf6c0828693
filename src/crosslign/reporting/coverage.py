"""Coverage of the papers' published figures: how many a run computes, and why not the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from crosslign.config.baselines import named_rows
from crosslign.config.cells import column_facts, counted, resolve_table, system_of
from crosslign.config.graph import Node
from crosslign.config.project import Project
from crosslign.config.uses import uses
from crosslign.entries.papers import Column, Row, Table
from crosslign.entries.resolved import ResolvedCell
from crosslign.reporting.published import Figure, Published, read_published

RUNNABLE, DASH, OTHER, UNPROVED, NOT_QUICK = "runnable", "dash", "measures something else", "address or format not shown", "none at quick"
ORDER = (RUNNABLE, OTHER, UNPROVED, NOT_QUICK, DASH)
"""States of a printed figure; of the states of several cells that show it, the first one counts."""
HEAD = """# What can be run of each paper

`crosslign coverage --configfile config/paper.yaml > docs/papers/coverage.md` writes this page from the configuration.
A test compares it.

A *cell* is one printed figure of a table. It is *runnable* if all of this holds:

- a cell of ours stands beside it, without a reason against it;
- every source of its data names the place that documents address and format (`evidence:` in the catalog);
- it also has a value at scale quick;
- no footnote marks it (`measures_other: true`) as a measurement of something else.

If two rows show a figure, the better one counts, once.
"""


@dataclass
class Coverage:
    """Printed figures of one paper by what became of them.

    Attributes:
        states: how many are in each state of `ORDER`; a figure that no table shows is a dash.
        reasons: how many dashes have which reason.
        sources: how many figures wait for the evidence of which source.
        others: how many measure something else, by table.
        tables: how many are runnable, and how many are printed, by table.
    """

    states: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    tables: dict[str, list[int]] = field(default_factory=dict)

    def add(self, table: str, state: str, why: str) -> None:
        """Count one printed figure of a table."""
        self.states[state] += 1
        self.reasons.update([why] if state in (DASH, NOT_QUICK) else [])
        self.sources.update(why.split(", ") if state == UNPROVED else [])
        self.others.update([table] if state == OTHER else [])
        count = self.tables.setdefault(table, [0, 0])
        count[0] += state == RUNNABLE
        count[1] += 1


def _sources(project: Project, row: Row, column: Column) -> set[str]:
    """Return the sources of all data behind a cell: evaluation, training and what is counted."""
    nodes: list[Node] = []
    labels = [part for part in column.get("mean_of", []) if isinstance(part, str)]
    parts = [{**column_facts(column), **part} for part in column.get("mean_of", []) if not isinstance(part, str)]
    for part in [] if labels else parts or [dict(column)]:
        if "task" in part:
            nodes += [("task", part["task"]), ("system", system_of(row, part))]
    for kind in ("corpora", "examples") if "count" in column else ():
        nodes += [({"corpora": "corpus"}.get(kind, kind), name) for name in counted(row, column).get(kind, [])]
    corpora = (project.corpora[name] for name in uses(project, nodes).corpora)
    return {entry["source"] for entry in corpora if "source" in entry}


def _reason(cell: ResolvedCell) -> str:
    return "; ".join(dict.fromkeys(part["reason"] for part in cell.get("parts", [cell]) if part.get("reason")))


def _marked(table: Table, row: int, column: str) -> bool:
    """Tell whether a footnote says of a cell that it measures something else than what is printed beside it."""
    for note in table.get("footnotes", []):
        at = note.get("at", {})
        here = at.get("column", column) == column and ("row" not in at or row in named_rows(at, table["rows"]))
        if here and note.get("measures_other"):
            return True
    return False


def _cells(project: Project, quick: Project, name: str) -> Iterator[tuple[Row, Column, str, str]]:
    """Yield row, column, state and reason of each cell of a table."""
    table, entry = resolve_table(project, name), project.tables[name]
    reduced = resolve_table(quick, name)["cells"]
    labels = [column["label"] for column in table["columns"]]
    for number, row in enumerate(table["rows"]):
        states: dict[str, tuple[str, str]] = {}
        cells = table["cells"][number]
        for at, column in sorted(enumerate(table["columns"]), key=lambda one: "mean_of" in cells[one[0]]):  # means behind their columns
            if members := cells[at].get("mean_of", []):
                states[labels[at]] = max((states[label] for label in members), key=lambda found: ORDER.index(found[0]))
            else:
                states[labels[at]] = _state(project, row, column, cells[at], reduced[number][at])
            if _marked(entry, number, labels[at]) and states[labels[at]][0] != DASH:
                states[labels[at]] = (OTHER, "")
            yield row, column, *states[labels[at]]


def _state(project: Project, row: Row, column: Column, cell: ResolvedCell, reduced: ResolvedCell) -> tuple[str, str]:
    if reason := _reason(cell):
        return DASH, reason
    unproved = sorted(name for name in _sources(project, row, column) if "evidence" not in project.sources[name])
    if unproved:
        return UNPROVED, ", ".join(unproved)
    return (NOT_QUICK, f"at scale quick: {reason}") if (reason := _reason(reduced)) else (RUNNABLE, "")


def coverage(project: Project, quick: Project, published: Path) -> dict[str, Coverage]:
    """Return what became of the printed figures of each paper whose systems are trained here.

    Args:
        project: the configuration at scale paper.
        quick: the same at scale quick.
        published: folder of the printed figures.
    """
    found: dict[str, Coverage] = {}
    trained = {project.paper_of[name] for name in project.systems}
    for paper in (paper for paper in project.settings["papers"] if paper in trained):
        best: dict[int, tuple[str, str, str]] = {}
        printed: dict[str, list[Figure]] = {}
        read: dict[str, Published] = {}
        for name in (name for name in project.tables if project.paper_of[name] == paper):
            source = project.tables[name].get("published_from", name)
            figures = read.setdefault(source, read_published(published, source))
            printed.setdefault(source, figures.all)
            for row, column, state, why in _cells(project, quick, name):
                figure = figures.at(row, column)
                if figure.value:
                    best[id(figure)] = min(best.get(id(figure), (source, DASH, why)), (source, state, why), key=lambda f: ORDER.index(f[1]))
        covered = Coverage()
        for source, lines in printed.items():
            for figure in lines:
                covered.add(*best.get(id(figure), (source, DASH, "no table shows it")))
        if covered.tables:
            found[paper] = covered
    return found


def coverage_page(found: Mapping[str, Coverage]) -> str:
    """Return the page docs/papers/coverage.md: one line a paper, then the reasons of its dashes, the most frequent first."""
    lines = [HEAD, "| paper | printed | runnable | " + " | ".join(ORDER[1:]) + " |", "|---" + "|---:" * (len(ORDER) + 1) + "|"]
    total: Counter[str] = Counter()
    for paper, covered in found.items():
        total += covered.states
        lines.append(_line(f"[{paper}]({paper}.md)", covered.states))
    lines.append(_line("all", total))
    for paper, covered in found.items():
        lines += ["", f"## {paper}", "", "| table | printed | runnable |", "|---|---:|---:|"]
        lines += [f"| {table} | {printed} | {runnable} |" for table, (runnable, printed) in covered.tables.items()]
        heads = ("reason of a dash", "source without evidence", f"{OTHER}, of table")
        for head, counts in zip(heads, (covered.reasons, covered.sources, covered.others), strict=True):
            if counts:
                lines += ["", f"| {head} | cells |", "|---|---:|"]
                lines += [f"| {what} | {n} |" for what, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    return "\n".join(lines) + "\n"


def _line(head: str, states: Mapping[str, int]) -> str:
    return f"| {head} | " + " | ".join(f"{n:,}" for n in (sum(states.values()), *(states.get(state, 0) for state in ORDER))) + " |"
