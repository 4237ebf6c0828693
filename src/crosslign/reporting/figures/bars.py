"""Scores as bars: a group for each evaluation, a bar for each system, with deviations over seeds or 95 % intervals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.reporting.cell import Cell
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures._style import PALETTE, save, subplots, write_numbers
from crosslign.reporting.values import fill_cell


def spread(cell: Cell) -> tuple[float, float] | None:
    """Return how far the value's bar of error reaches down and up: a standard deviation over seeds, else the interval; or None."""
    if cell.ours is None:
        return None
    if cell.std is not None:
        return cell.std, cell.std
    if cell.ci_low is not None and cell.ci_high is not None:
        return max(0.0, cell.ours - cell.ci_low), max(0.0, cell.ci_high - cell.ours)
    return None


@FIGURES.register
def draw(entry: Mapping[str, Any], inputs: Mapping[str, Any], out: Mapping[str, Path]) -> None:
    """Draw the bars.

    Args:
        entry: `title`, and `cells`, the evaluations.
        inputs: `panels`, a list of `label` and `cells` (resolved), and `results`.
        out: png, svg, csv.
    """
    names = [f"{cell['task']} {cell['subset']}" for cell in entry["cells"]]
    panels = inputs["panels"]
    figure, axis = subplots(figsize=(max(6.0, 0.28 * len(names) * (len(panels) + 1)), 4.2))
    width, rows = 0.8 / len(panels), []
    for number, panel in enumerate(panels):
        for place, cell in enumerate(fill_cell(resolved, Path(inputs["results"])) for resolved in panel["cells"]):
            x = place + (number - (len(panels) - 1) / 2) * width
            reach = spread(cell)
            if cell.ours is not None:
                error = [[100 * reach[0]], [100 * reach[1]]] if reach else None
                label = panel["label"] if not place else None
                colour = PALETTE[number % len(PALETTE)]
                axis.bar(x, 100 * cell.ours, width, yerr=error, color=colour, label=label, error_kw={"elinewidth": 0.8})
            rows.append((panel["label"], names[place], cell.ours, cell.std, cell.ci_low, cell.ci_high, cell.reason))
    axis.set_xticks(range(len(names)), names, rotation=60 if len(names) > 4 else 0, ha="right" if len(names) > 4 else "center", fontsize=7)
    axis.set(title=entry["title"], ylabel="score × 100")
    axis.legend(fontsize=7)
    save(figure, out)
    write_numbers(out["csv"], ("system", "evaluation", "value", "std", "ci_low", "ci_high", "reason"), rows)
