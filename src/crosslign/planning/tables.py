"""What each table of a run costs by itself, as the table of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from crosslign.config.data_plan import data_plan
from crosslign.config.project import Project
from crosslign.console import bytes_text, duration
from crosslign.planning.cost import Job, cost_of
from crosslign.planning.graph import Graph, behind
from crosslign.planning.simulation import longest_path, simulate
from crosslign.planning.times import QUEUE, tasks_of

CORES = 64
HEADS = ("table", "GPU-hours", "1 GPU", "8 GPUs", "critical path", "downloads", "disk, at most")


def costly(graph: Graph) -> list[Job]:
    """Return rule and wildcards of the jobs that would run."""
    return [(job.rule, job.wildcards) for job in graph.values() if job.to_run]


def table_rows(project: Project, graph: Graph, means: Mapping[str, float]) -> Iterator[Sequence[str]]:
    """Yield the cost of each table of the graph, made alone and from nothing but what is there, in the papers' order."""
    made = {job.wildcards["table"]: name for name, job in graph.items() if job.rule == "make_table"}
    for table in (table for table in project.tables if table in made):
        own = behind(graph, [made[table]])
        tasks = tasks_of(project, own, means)
        cost = cost_of(project, costly(own), 8)
        times = [simulate(tasks, gpus, CORES, QUEUE) for gpus in (1, 8)]
        least = sum(tasks[name].seconds for name in longest_path(tasks))
        needs = [need for need in data_plan(project, [table]) if need.state in ("fetch", "mirror", "by hand")]
        downloads = bytes_text(sum(need.bytes or need.about_bytes or 0 for need in needs))
        yield (f"`{table}`", f"{cost.hours:.1f}", *map(duration, (*times, least)), downloads, bytes_text(cost.peak_mb * 1e6))


def tables_text(project: Project, graph: Graph, means: Mapping[str, float]) -> str:
    """Return the costs of all tables as a table in Markdown."""
    lines = [f"| {' | '.join(HEADS)} |", f"| --- |{' ---: |' * (len(HEADS) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in table_rows(project, graph, means))])
