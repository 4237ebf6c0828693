"""The graph of jobs that the workflow engine finds, as it writes it in Graphviz's language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

from crosslign.config.resources import stage_of

NODE = re.compile(r'^\s*(\d+)\[label = "([^"]*)".*style="([^"]*)"', flags=re.MULTILINE)
EDGE = re.compile(r"^\s*(\d+) -> (\d+)", flags=re.MULTILINE)


@dataclass(frozen=True)
class Planned:
    """One job.

    Attributes:
        rule: its rule.
        wildcards: its own, and those of the jobs before it.
        to_run: whether it would run; else what it makes is there.
        after: names of the jobs that it waits for.
    """

    rule: str
    wildcards: Mapping[str, str]
    to_run: bool
    after: frozenset[str]


Graph = Mapping[str, Planned]


def read_graph(dot: str) -> Graph:
    """Read what `snakemake --dag dot` prints; of a job's wildcards it leaves out those that a job before it has, too."""
    found = {number: (label.split("\\n"), style) for number, label, style in NODE.findall(dot)}
    after: dict[str, set[str]] = {number: set() for number in found}
    for before, number in EDGE.findall(dot):
        after[number].add(before)
    jobs: dict[str, Planned] = {}
    for number in TopologicalSorter(after).static_order():
        (rule, *own), style = found[number]
        wildcards: dict[str, str] = {}
        for before in sorted(after[number], key=int):
            wildcards |= jobs[before].wildcards
        wildcards |= dict(text.split(": ", 1) for text in own)
        jobs[number] = Planned(rule, wildcards, "dashed" not in style, frozenset(after[number]))
    return jobs


def counts(graph: Graph, targets: Collection[str], to_run: bool) -> Counter[str]:
    """Return the jobs by stage that would run, or whose outputs are there; targets make nothing."""
    return Counter(stage_of(job.rule) for job in graph.values() if job.to_run == to_run and job.rule not in targets)


def behind(graph: Graph, names: Collection[str]) -> Graph:
    """Return some jobs and all that they wait for."""
    found: dict[str, Planned] = {}
    waiting = list(names)
    while waiting:
        if (name := waiting.pop()) not in found:
            found[name] = graph[name]
            waiting += graph[name].after
    return found
