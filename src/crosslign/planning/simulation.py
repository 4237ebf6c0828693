"""How long a graph of jobs takes on so many GPUs and cores: a simulation of a scheduler that starts what is ready."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter


@dataclass(frozen=True)
class Task:
    """One job of the graph.

    Attributes:
        seconds: how long it runs.
        gpus, cores: what it holds meanwhile.
        after: names of the jobs that it waits for.
        priority: higher ones start first among those that are ready.
    """

    seconds: float
    gpus: int = 0
    cores: int = 1
    after: frozenset[str] = field(default_factory=frozenset)
    priority: float = 0


def longest_path(tasks: Mapping[str, Task]) -> list[str]:
    """Return the longest chain of jobs, first to last: its time is what no number of devices brings a run under."""
    ends: dict[str, float] = {}
    before: dict[str, str | None] = {}
    for name in _sorter(tasks).static_order():
        before[name] = max(sorted(tasks[name].after), key=ends.__getitem__, default=None)
        ends[name] = tasks[name].seconds + max((ends[other] for other in tasks[name].after), default=0.0)
    chain: list[str] = []
    last = max(tasks, key=ends.__getitem__, default=None)
    while last is not None:
        chain.append(last)
        last = before[last]
    return chain[::-1]


def _sorter(tasks: Mapping[str, Task]) -> TopologicalSorter[str]:
    return TopologicalSorter({name: task.after for name, task in tasks.items()})


def simulate(tasks: Mapping[str, Task], gpus: int, cores: int, jobs: int, start_seconds: float = 0.0) -> float:
    """Return the seconds from the first start to the last end: whenever a job ends, what is ready and fits starts.

    What has the higher priority goes first, then what comes first in the graph.

    Args:
        tasks: jobs by name; none may ask for more than there is.
        gpus: devices.
        cores: cores for all jobs together.
        jobs: jobs that may run at once.
        start_seconds: what the scheduler and the imports of a job add to each.
    """
    places = {name: place for place, name in enumerate(tasks)}
    waiting, ready = _sorter(tasks), list[tuple[float, int, str]]()
    waiting.prepare()
    running: list[tuple[float, str]] = []
    now, free_gpus, free_cores = 0.0, gpus, cores
    while waiting.is_active():
        left = []
        for entry in sorted([*ready, *((-tasks[name].priority, places[name], name) for name in waiting.get_ready())]):
            task = tasks[entry[2]]
            if len(running) < jobs and task.gpus <= free_gpus and task.cores <= free_cores:
                free_gpus, free_cores = free_gpus - task.gpus, free_cores - task.cores
                heapq.heappush(running, (now + task.seconds + start_seconds, entry[2]))
            else:
                left.append(entry)
        ready = left
        now, ended = heapq.heappop(running)
        free_gpus, free_cores = free_gpus + tasks[ended].gpus, free_cores + tasks[ended].cores
        waiting.done(ended)
    return now
