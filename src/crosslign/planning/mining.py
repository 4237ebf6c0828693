"""What mining a user's own files is expected to take: time of encoding and search by the size of the files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from crosslign.config.loads import Load
from crosslign.config.project import Project
from crosslign.config.resources import load_of, uncapped_need
from crosslign.console import bytes_text, number_of
from crosslign.durations import duration
from crosslign.planning.cost import HOURS_A_MILLION, Job

CPU_TIMES = 50.0
"""How many times as long as on a GPU encoding takes on two cores: 10,417 sentences in 95 s, 118 M parameters (docs/calibration.md)."""


def _encoding(load: Load, gpus: int) -> float:
    return 3600 * HOURS_A_MILLION * load.parameters * load.sentences / 1e6 * (1.0 if gpus else CPU_TIMES)


MINING_SECONDS: Mapping[str, Callable[[Load, int], float]] = {
    "mine_embed": _encoding,
    "mine_search": lambda load, gpus: 60 * load.search_minutes,
}
"""Expected seconds of a job's work by rule, from its load and the GPUs of a job."""


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
        one = duration(MINING_SECONDS["mine_search"](load, project.gpus))
        yield (
            f"mining {name}: about {load.compared * len(ranges):.1e} pairs of sentences compared in {number_of(len(ranges), 'job')}, "
            f"{one} and {need.mem_mb / 1000:.0f} GB of memory each; {bytes_text(need.disk_mb * len(ranges) * 1e6)} until they are joined"
        )
