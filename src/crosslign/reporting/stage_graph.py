"""The graph of a run's stages as an inline SVG: rules, their jobs and their time, and which rule's artefacts each has read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosslign.config.resources import stage_of
from crosslign.console import duration, number_of
from crosslign.planning.plan import STAGES, Measured
from crosslign.reporting.run_records import Lineages, stage_times

WIDTH, HEIGHT, GAP_X, GAP_Y, LANE = 172, 52, 20, 36, 18


@dataclass(frozen=True)
class Node:
    """One rule in the drawing: upper left corner in pixels, name, and a line on its jobs."""

    name: str
    jobs: str
    x: float
    y: float


@dataclass(frozen=True)
class StageGraph:
    """A drawing: its size in pixels, its nodes, the paths of its edges (SVG path data), and the same edges in words."""

    width: int
    height: int
    nodes: Sequence[Node]
    paths: Sequence[str]
    words: Sequence[str]


def stage_edges(lineages: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Return which stage's artefacts each stage has read: (stage that made it, stage that read it)."""
    lineages = list(lineages)
    maker = {lineage["artefact"]["path"]: stage_of(lineage["rule"]) for lineage in lineages}
    places = [(entry["path"].removeprefix("../"), stage_of(lineage["rule"])) for lineage in lineages for entry in lineage["inputs"]]
    read = {(maker.get(path, ""), stage) for path, stage in places}  # what scales share names its place below the folder of all of them
    return {(before, after) for before, after in read if before and before != after}


def layers(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the rules in layers, each below all that it reads from; longest paths count.

    Args:
        nodes: rules.
        edges: (before, after); must be free of cycles, else the rules of a cycle share the last layer.
    """
    order = {rule: place for place, rule in enumerate(STAGES)}
    nodes, before = sorted(nodes, key=lambda rule: (order.get(rule, len(order)), rule)), defaultdict(set)
    for first, second in edges:
        before[second].add(first)
    depth: dict[str, int] = dict.fromkeys(nodes, 0)
    for _ in nodes:
        for node in nodes:
            depth[node] = max([depth[node], *(min(depth[first] + 1, len(nodes)) for first in before[node])])
    found: dict[int, list[str]] = defaultdict(list)
    for node in nodes:
        found[depth[node]].append(node)
    return [found[level] for level in sorted(found)]


def _jobs(name: str, done: Mapping[str, Measured]) -> str:
    if name not in done:
        return ""
    return f"{number_of(done[name].jobs, 'job')}, {duration(done[name].seconds)}"


def _lanes(rows: Sequence[Sequence[str]], edges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return a lane for each rule that is read beyond the next layer; two share one where none passes beside the other."""
    depth = {name: level for level, row in enumerate(rows) for name in row}
    last: dict[str, int] = {}
    for first, second in edges:
        if depth[second] > depth[first] + 1:
            last[first] = max(last.get(first, 0), depth[second])
    found: dict[str, int] = {}
    ends: list[int] = []
    for name in sorted(last, key=lambda name: (depth[name], name)):
        lane = next((place for place, end in enumerate(ends) if end <= depth[name]), len(ends))
        ends[lane:] = [last[name], *ends[lane + 1 :]]
        found[name] = lane
    return found


def _place(rows: Sequence[Sequence[str]], width: int, left: float) -> dict[str, tuple[float, float]]:
    """Return the corner of each rule; every layer is centred in a width that begins at `left`."""
    found = {}
    for level, row in enumerate(rows):
        begin = left + (width - len(row) * WIDTH - (len(row) - 1) * GAP_X) / 2
        for index, name in enumerate(row):
            found[name] = (begin + index * (WIDTH + GAP_X), float(level * (HEIGHT + GAP_Y) + 2))
    return found


def _bend(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return a curve that goes on from one point to another below it."""
    (x, y), (to_x, to_y) = start, end
    half = (y + to_y) / 2
    return f"C{x:.0f} {half:.0f} {to_x:.0f} {half:.0f} {to_x:.0f} {to_y:.0f}"


def _path(start: tuple[float, float], end: tuple[float, float], lane: float) -> str:
    """Return a curve from the bottom of one box to the top of another; past other layers it runs along a lane beside the boxes."""
    begin, stop = (start[0] + WIDTH / 2, start[1] + HEIGHT), (end[0] + WIDTH / 2, end[1] - 3)
    move = f"M{begin[0]:.0f} {begin[1]:.0f}"
    if end[1] - start[1] <= HEIGHT + GAP_Y:
        return move + _bend(begin, stop)
    enter, leave = (lane, begin[1] + GAP_Y), (lane, end[1] - GAP_Y)
    return f"{move}{_bend(begin, enter)}L{leave[0]:.0f} {leave[1]:.0f}{_bend(leave, stop)}"


def draw_stages(done: Mapping[str, Measured], edges: set[tuple[str, str]]) -> StageGraph:
    """Lay out the rules that ran.

    Args:
        done: what each rule's finished jobs took.
        edges: (rule that made an artefact, rule that read it).
    """
    rows = layers({*done, *(name for edge in edges for name in edge)}, edges)
    widest = max((len(row) for row in rows), default=1)
    lanes = _lanes(rows, edges)
    sides = LANE * (1 + max(lanes.values(), default=-1))
    boxes = widest * WIDTH + (widest - 1) * GAP_X
    corners = _place(rows, boxes, 2)
    beside = {name: boxes + 2 + LANE * (lane + 1) for name, lane in lanes.items()}
    ordered = sorted(edges, key=lambda edge: (corners[edge[0]][1], corners[edge[0]][0], corners[edge[1]]))
    return StageGraph(
        boxes + sides + 8,
        max(1, len(rows)) * (HEIGHT + GAP_Y) - GAP_Y + 4,
        [Node(name, _jobs(name, done), *corners[name]) for row in rows for name in row],
        [_path(corners[first], corners[second], beside.get(first, 0.0)) for first, second in ordered],
        [f"{first} → {second}" for first, second in ordered],
    )


def stage_graph(lineages: Lineages) -> StageGraph:
    """Return the graph of the jobs behind these lineages."""
    return draw_stages(stage_times(lineages), stage_edges(lineages))
