"""Scores as bars: a group for each evaluation, a bar for each system, with deviations over seeds or 95 % intervals; or their changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from crosslign.entries.papers import Figure
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures._style import PALETTE, save, subplots
from crosslign.reporting.values import Cell, fill_cell

ORANGE = "#D55E00"
BASE_COLUMNS = ("against", "against_value", "change")
MANY = 4
"""Groups of bars beyond which their names stand aslant, and bars without their numbers."""


@dataclass(frozen=True)
class Block:
    """One axis.

    Attributes:
        panels: `label` and resolved `cells` of each colour of bars; `against`, where changes are shown.
        names: of the groups of bars.
        title: the evaluation, where groups are none.
    """

    panels: Sequence[Mapping[str, Any]]
    names: Sequence[str]
    title: str = ""


def spread(cell: Cell) -> tuple[float, float] | None:
    """Return how far the value's bar of error reaches down and up: a standard deviation over seeds, else the interval; or None."""
    if cell.ours is None:
        return None
    if cell.std is not None:
        return cell.std, cell.std
    if cell.interval is None:
        return None
    low, high = cell.interval
    return max(0.0, cell.ours - low), max(0.0, high - cell.ours)


def change(cell: Cell, base: Cell) -> Cell:
    """Return a cell less its base, with the deviation over seeds of both; intervals of scores are none of their difference."""
    if cell.ours is None or base.ours is None:
        return Cell(reason=cell.reason or base.reason or "no value")
    return Cell(ours=cell.ours - base.ours, std=cell.std if base.std is None else math.hypot(cell.std or 0.0, base.std))


def is_unseen(subset: str, seen: Sequence[str]) -> bool:
    """Tell whether a subset (a language, or a pair such as `en-tr`) has a language that is not among those seen."""
    return bool(seen) and not set(subset.split("-")) <= set(seen)


def _draw_names(axis: Axes, cells: Sequence[Mapping[str, Any]], seen: Sequence[str], names: Sequence[str]) -> None:
    """Name the groups of bars; with `seen` only by subset, orange where unseen, and the tasks as blocks above."""
    many = len(names) > MANY
    labels = [cell["subset"] for cell in cells] if seen else names
    axis.set_xticks(range(len(names)), labels, rotation=60 if many else 0, ha="right" if many else "center", fontsize=7)
    axis.set_xlim(-0.6, len(names) - 0.4)
    if not seen:
        return
    for tick, cell in zip(axis.get_xticklabels(), cells, strict=True):
        tick.set_color(ORANGE if is_unseen(cell["subset"], seen) else "black")
    start = 0
    for task, block in groupby(cells, key=lambda cell: cell["task"]):
        end = start + len(list(block))
        axis.text(
            (start + end - 1) / 2,
            1.0,
            task.partition("_")[0].upper(),
            transform=axis.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=8,
        )
        if start:
            axis.axvline(start - 0.5, color="#999999", linewidth=0.8)
        start = end


def _placed(panels: Sequence[Mapping[str, Any]], places: Sequence[str], number: int) -> list[dict[str, Any]]:
    """Return one evaluation's panels where systems have places: one a label, with a cell at each place."""
    cells = {(panel["label"], place): panel["cells"][number] for panel, place in zip(panels, places, strict=True)}
    labels, order = dict.fromkeys(panel["label"] for panel in panels), dict.fromkeys(places)
    return [{"label": label, "cells": [cells.get((label, place), {}) for place in order]} for label in labels]


def _blocks(entry: Figure, panels: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Block]:
    """Return what stands on each axis: an evaluation where systems have places, else the systems of one base."""
    if places := entry.get("places"):
        return [Block(_placed(panels, places, number), list(dict.fromkeys(places)), name) for number, name in enumerate(names)]
    return [Block(list(found), list(names)) for _, found in groupby(panels, key=lambda panel: panel.get("against", {}).get("label"))]


@FIGURES.register(version=1)
def draw(entry: Figure, inputs: Mapping[str, Any], out: Mapping[str, Path]) -> None:
    """Draw the bars; systems that are set against one base share an axis, and so do all of an evaluation where they have places.

    Args:
        entry: `title`; `cells`, the evaluations, each with a `label` where its task and subset do not name it; `seen`, languages of the
            training data, where names of others are marked; `places`, the group of bars that each system belongs to.
        inputs: `panels`, a list of `label`, `cells` (resolved) and, where changes are shown, `against` (label and cells of the base);
            `results`.
        out: png, svg, csv.
    """
    results, seen = Path(inputs["results"]), entry.get("seen", [])
    names = [cell.get("label", f"{cell['task']} {cell['subset']}") for cell in entry["cells"]]
    blocks = _blocks(entry, inputs["panels"], names)
    widest = max(len(block.panels) for block in blocks)
    labels = {tuple(panel["label"] for panel in block.panels) for block in blocks}
    size = (min(14.0, max(6.0, 0.28 * len(blocks[0].names) * (widest + 1))), 0.6 + 3.6 * len(blocks))
    palette = [colour for colour in PALETTE if not seen or colour != ORANGE]
    figure, axes = subplots(len(blocks), 1, figsize=size, squeeze=False)
    rows = []
    for axis, block in zip(axes[:, 0], blocks, strict=True):
        width, base = 0.8 / len(block.panels), block.panels[0].get("against")
        base_cells = [fill_cell(cell, results) for cell in base["cells"]] if base else []
        for number, panel in enumerate(block.panels):
            cells = [fill_cell(resolved, results) for resolved in panel["cells"]]
            shown = [change(cell, under) for cell, under in zip(cells, base_cells, strict=True)] if base else cells
            _draw_bars(axis, shown, (number - (len(block.panels) - 1) / 2) * width, width, palette[number % len(palette)], panel["label"])
            for place, (cell, bar) in enumerate(zip(cells, shown, strict=True)):
                name = f"{block.title}, {block.names[place]}" if block.title else block.names[place]
                changes = (base["label"], base_cells[place].ours, bar.ours) if base else ()
                rows.append((panel["label"], name, cell.ours, cell.std, cell.ci_low, cell.ci_high, cell.reason or bar.reason, *changes))
        _draw_names(axis, entry["cells"], seen, block.names)
        axis.set(title=block.title, ylabel=f"change from {base['label']}, × 100" if base else "score × 100")
        if len(labels) > 1:
            axis.legend(fontsize=7)
    if len(labels) == 1:  # one for all axes, where it covers no bar
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=min(4, widest), fontsize=7)
    figure.suptitle(entry["title"], fontsize=10)
    columns = ("system", "evaluation", "value", "std", "ci_low", "ci_high", "reason")
    save(figure, out, (*columns, *(BASE_COLUMNS if "against" in inputs["panels"][0] else ())), rows)


def _draw_bars(axis: Axes, cells: Sequence[Cell], shift: float, width: float, colour: str, label: str) -> None:
    """Draw the bars of one system; a cell without a value leaves a gap, a system without any its name alone."""
    for place, cell in enumerate(cells):
        reach = spread(cell)
        if cell.ours is not None:
            error = [[100 * reach[0]], [100 * reach[1]]] if reach else None
            bar = axis.bar(place + shift, 100 * cell.ours, width, yerr=error, color=colour, error_kw={"elinewidth": 0.8})
            if len(cells) <= MANY:
                axis.bar_label(bar, fmt=lambda height: f"{height:.1f}".replace("-", "−"), padding=2, fontsize=7)
    axis.bar(0, 0, width, color=colour, label=label)
    axis.axhline(0, color="#333333", linewidth=0.8)
