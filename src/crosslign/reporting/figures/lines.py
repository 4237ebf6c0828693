"""One score over a setting that systems differ in, such as the size of a queue."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.entries.papers import Figure
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures._style import PALETTE, save, subplots
from crosslign.reporting.values import fill_cell, mean_cell


@FIGURES.register(version=1)
def draw(entry: Figure, inputs: Mapping[str, Any], out: Mapping[str, Path]) -> None:
    """Draw the mean of the evaluations at each system's place; a system without a value leaves a gap.

    Args:
        entry: `title`, `x` (a place for each system), `x_label`, and `cells`, the evaluations that are averaged.
        inputs: `panels`, a list of `label` and `cells` (resolved), and `results`.
        out: png, svg, csv.
    """
    results = Path(inputs["results"])
    values = [mean_cell([fill_cell(cell, results) for cell in panel["cells"]], "one of its evaluations") for panel in inputs["panels"]]
    figure, axis = subplots(figsize=(6, 4))
    ours = [float("nan") if value.ours is None else 100 * value.ours for value in values]
    error = [0.0 if value.std is None else 100 * value.std for value in values]
    axis.errorbar(entry["x"], ours, yerr=error if any(error) else None, marker="o", color=PALETTE[0], capsize=3)
    if min(entry["x"]) > 0 and max(entry["x"]) / min(entry["x"]) > 50:
        axis.set_xscale("log")
    axis.set(title=entry["title"], xlabel=entry.get("x_label", ""), ylabel="score × 100")
    rows = [(p["label"], x, v.ours, v.std, v.reason) for p, x, v in zip(inputs["panels"], entry["x"], values, strict=True)]
    save(figure, out, ("system", "x", "value", "std", "reason"), rows)
