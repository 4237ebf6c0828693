"""What mining a user's own files is expected to take: time of encoding and search by the size of the files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from crosslign.config.loads import Load
from crosslign.config.project import Project
from crosslign.config.resources import load_of, uncapped_need
from crosslign.console import bytes_text, duration, number_of
from crosslign.planning.cost import Job

MINING_SECONDS: Mapping[str, Callable[[Load], float]] = {
    "mine_embed": lambda load: 3600 * load.encoding_hours,
    "mine_search": lambda load: 60 * load.search_minutes,
}
"""Expected seconds of a job's work by rule, from its load."""


def mining_lines(project: Project, jobs: Iterable[Job]) -> Iterator[str]:
    """Yield what each mining's searches compare and take: pairs of sentences, jobs, time and memory of one, disk until they are joined.

    Args:
        project: the configuration.
        jobs: rule and wildcards of every job that would start.
    """
    searches: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for rule, wildcards in jobs:
        if rule == "mine_search":
            searches[wildcards["mine"]].append(wildcards)
    for name, ranges in sorted(searches.items()):
        load, need = load_of(project, "mine_search", ranges[0]), uncapped_need(project, "mine_search", ranges[0])
        one = duration(MINING_SECONDS["mine_search"](load))
        yield (
            f"mining {name}: about {load.compared * len(ranges):.1e} pairs of sentences compared in {number_of(len(ranges), 'job')}, "
            f"{one} and {need.mem_mb / 1000:.0f} GB of memory each; {bytes_text(need.disk_mb * len(ranges) * 1e6)} until they are joined"
        )
