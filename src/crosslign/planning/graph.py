"""The graph of jobs that the workflow engine finds, as it writes it in Graphviz's language."""

from __future__ import annotations

import re
from collections import ChainMap, Counter
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

OWN: Mapping[str, str] = {
    "fetch": "file",
    "prepare_encoder": "encoder",
    "filter_shards": "part",
    "build_corpus": "corpus",
    "build_evaluation": "corpus",
    "build_view": "view",
    "build_examples": "examples",
    "tokenise": "examples",
    "train_system": "run",
    "choose": "system",
    "embed": "run",
    "score": "task",
    "mine_embed": "side",
    "mine_search": "part",
}
"""The wildcard that tells a job from others of its rule."""


def own_name(rule: str, wildcards: Mapping[str, str]) -> str:
    """Return what tells a job from others of its rule; empty where its rule has one job."""
    return wildcards.get(OWN.get(stage_of(rule), ""), "")


def read_graph(dot: str) -> Graph:
    """Read what `snakemake --dag dot` prints; of a job's wildcards it leaves out those that a job before it has, too.

    Jobs are named by their places among all, sorted by rule and wildcards: Snakemake's own numbers differ from call to call.
    """
    found = {number: (label.split("\\n"), style) for number, label, style in NODE.findall(dot)}
    after: dict[str, set[str]] = {number: set() for number in found}
    for before, number in EDGE.findall(dot):
        after[number].add(before)
    told: dict[str, tuple[str, dict[str, str]]] = {}

    def sort_key(number: str) -> tuple[str, list[tuple[str, str]]]:
        return told[number][0], sorted(told[number][1].items())

    for number in TopologicalSorter(after).static_order():
        rule, *own = found[number][0]
        inherited = [told[before][1] for before in sorted(after[number], key=sort_key)]
        told[number] = rule, {**dict(ChainMap(*inherited[::-1])), **dict(text.split(": ", 1) for text in own)}
    names = {number: f"{place:05}" for place, number in enumerate(sorted(told, key=sort_key))}
    return {
        name: Planned(*told[number], "dashed" not in found[number][1], frozenset(names[before] for before in after[number]))
        for number, name in names.items()
    }


def counts(graph: Graph, targets: Collection[str], to_run: bool) -> Counter[str]:
    """Return the jobs by stage that would run, or whose outputs are there; targets make nothing."""
    return Counter(stage_of(job.rule) for job in graph.values() if job.to_run == to_run and job.rule not in targets)


def behind(graph: Graph, names: Collection[str]) -> Graph:
    """Return some jobs and all that they wait for, in the graph's order."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += graph[name].after
    return {name: job for name, job in graph.items() if name in found}
