"""Loss and learning rate of each run over its steps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crosslign.files import read_json_lines
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures._style import PALETTE, save, subplots, write_numbers


def _running_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Return the mean of each value and up to `window` - 1 values before it."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - window)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def _limits(loss: np.ndarray) -> tuple[float, float]:
    """Return where the axis of a loss ends: it has zero in it, and losses below zero (minus a similarity) hang from it."""
    low, high = min(float(loss.min()) * 1.05, 0.0), max(float(loss.max()) * 1.05, 0.0)
    return low, high if high > low else 1e-6


@FIGURES.register(version=1)
def draw(entry: Mapping[str, Any], inputs: Mapping[str, Any], out: Mapping[str, Path]) -> None:
    """Draw one column of panels a run: loss (thin: each step, bold: running mean) over learning rate.

    Args:
        entry: the figure's entry; `title`.
        inputs: `panels`, a list of `label` and `curve` (curve.jsonl of a run).
        out: png, svg, csv.
    """
    panels = inputs["panels"]
    width = min(4, len(panels))
    lines = -(-len(panels) // width)
    figure, axes = subplots(2 * lines, width, figsize=(3.1 * width, 2.9 * lines), squeeze=False, height_ratios=[3, 1] * lines, sharex=False)
    for axis in axes.flat:
        axis.set_visible(False)
    rows = []
    for index, panel in enumerate(panels):
        curve = read_json_lines(panel["curve"])
        steps = np.array([point["step"] for point in curve])
        loss = np.array([point["loss"] for point in curve])
        rate = np.array([point["learning_rate"] for point in curve])
        rows += [(panel["label"], int(s), repr(float(value)), repr(float(r))) for s, value, r in zip(steps, loss, rate, strict=True)]
        above, below = axes[2 * (index // width), index % width], axes[2 * (index // width) + 1, index % width]
        colour = PALETTE[index % len(PALETTE)]
        above.plot(steps, loss, color=colour, alpha=0.25, linewidth=0.7)
        above.plot(steps, _running_mean(loss, max(1, len(loss) // 20)), color=colour, linewidth=1.8)
        above.set(title=panel["label"], ylim=_limits(loss), ylabel="loss")
        below.plot(steps, rate * 1e5, color="#555555", linewidth=1.2)
        below.set(xlabel="step", ylabel="rate\n×1e-5", ylim=(0, float(rate.max()) * 1.15e5 or 1))
        for axis in (above, below):
            axis.set_visible(True)
            axis.set_xlim(0, max(int(steps.max()), 1))
    figure.suptitle(entry["title"], fontsize=11)
    save(figure, out)
    write_numbers(out["csv"], ("system", "step", "loss", "learning_rate"), rows)
