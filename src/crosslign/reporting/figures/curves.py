"""Loss and learning rate of each run over its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslign.entries.papers import Figure
from crosslign.files import read_json_lines
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures._style import PALETTE, save, subplots

ZERO = 0.005
"""Below it a loss is printed as 0.00."""
NOTHING = "0.00 from the first step on:\nnothing to learn"


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


def _at_zero(curve: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether a loss that ranks a positive above others is zero from the first step on: it has nothing to teach.

    The medians of its first fifth and of all steps are then below `ZERO`. Losses of other kinds may be small and fall all the same.
    """
    ranks = any(word in name for name in curve[0].get("terms", {}) for word in ("infonce", "contrast"))
    losses = np.array([point["loss"] for point in curve])
    return ranks and all(np.median(np.abs(part)) < ZERO for part in (losses[: -(-len(losses) // 5)], losses))


def _width(panels: int) -> int:
    """Return how many columns leave the fewest places empty: four, or three; fewer where panels are fewer."""
    return min(range(min(4, panels), min(2, panels - 1), -1), key=lambda width: -panels % width)


@FIGURES.register(version=2)
def draw(entry: Figure, inputs: Mapping[str, Any], out: Mapping[str, Path]) -> None:
    """Draw one column of panels a run: loss (thin: each step, bold: running mean) over learning rate.

    Args:
        entry: the figure's entry; `title`.
        inputs: `panels`, a list of `label` and `curve` (curve.jsonl of a run).
        out: png, svg, csv; its `at_zero` is 1 for a run whose loss has nothing to teach from the first step on.
    """
    panels = inputs["panels"]
    width = _width(len(panels))
    lines = -(-len(panels) // width)
    size = (max(6.2, 3.3 * width), 3.0 * lines)
    figure, axes = subplots(2 * lines, width, figsize=size, squeeze=False, height_ratios=[3, 1] * lines)
    for axis in axes.flat:
        axis.set_visible(False)
    rows = []
    for index, panel in enumerate(panels):
        curve = read_json_lines(panel["curve"])
        steps = np.array([point["step"] for point in curve])
        loss = np.array([point["loss"] for point in curve])
        rate = np.array([point["learning_rate"] for point in curve])
        idle = _at_zero(curve)
        found = zip(steps, loss, rate, strict=True)
        rows += [(panel["label"], int(s), repr(float(value)), repr(float(r)), "1" * idle) for s, value, r in found]
        above, below = axes[2 * (index // width), index % width], axes[2 * (index // width) + 1, index % width]
        colour = PALETTE[index % len(PALETTE)]
        above.plot(steps, loss, color=colour, alpha=0.25, linewidth=0.7)
        above.plot(steps, _running_mean(loss, max(1, len(loss) // 20)), color=colour, linewidth=1.8)
        above.set(title=panel["label"], ylim=(0, 1) if idle else _limits(loss), ylabel="loss")
        if idle:
            above.text(0.5, 0.5, NOTHING, transform=above.transAxes, ha="center", va="center", fontsize=9)
        below.plot(steps, rate * 1e5, color="#555555", linewidth=1.2)
        below.set(xlabel="step", ylabel="rate\n×10⁻⁵", ylim=(0, float(rate.max()) * 1.15e5 or 1))
        for axis in (above, below):
            axis.set_visible(True)
            axis.set_xlim(0, max(int(steps.max()), 1))
    figure.suptitle(entry["title"], fontsize=11)
    save(figure, out, ("system", "step", "loss", "learning_rate", "at_zero"), rows)
