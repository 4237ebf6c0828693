"""A figure of any kind, drawn without the systems whose data cannot be had."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

from crosslign.entries.papers import Figure
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.layout import scaled_title

WIDTH = 60
"""Characters of a line below a title, which the narrowest figure has room for."""


def draw(entry: Figure, inputs: Mapping[str, Any], out: Mapping[str, Path]) -> None:
    """Draw one figure; its title says of a reduced scale and of synthetic data that it is one, and which systems are left out and why.

    Where none is left, nothing else is shown.

    Args:
        entry: the figure's entry: `kind`, `title` and what its kind wants.
        inputs: `panels`, each with its `label` and either what its kind reads or the `reason` why that cannot be had; `scale`,
            `stand_in`, and what the panels share.
        out: png, svg, csv.
    """
    absent: dict[str, list[str]] = {}
    for panel in inputs["panels"]:
        if reason := _reason(panel):
            absent.setdefault(reason, []).append(panel["label"])
    notes = [scaled_title("", inputs["scale"], inputs["stand_in"]).strip(" –")]
    notes += [f"Without {', '.join(labels)}: {reason}." for reason, labels in absent.items()]
    shown = {**entry, "title": "\n".join([entry["title"], *(fill(note, WIDTH) for note in notes if note)])}
    left = [panel for panel in inputs["panels"] if "reason" not in panel]  # bars and lines keep the place of a system without scores
    if sum(map(len, absent.values())) < len(inputs["panels"]):
        FIGURES.get(entry["kind"])(shown, {**inputs, "panels": left}, out)
    else:
        _draw_nothing(str(shown["title"]), absent, out)


def _reason(panel: Mapping[str, Any]) -> str:
    """Return why a system shows nothing: no vectors, or none of its scores; else an empty string."""
    cells = panel.get("cells", [])
    reasons = [str(cell["reason"]) for cell in cells if "reason" in cell]
    return str(panel.get("reason", "")) or (reasons[0] if reasons and len(reasons) == len(cells) else "")


def _draw_nothing(title: str, absent: Mapping[str, list[str]], out: Mapping[str, Path]) -> None:
    from crosslign.reporting.figures._style import save, subplots

    figure, axis = subplots(figsize=(9.0, 0.6 + 0.2 * (title.count("\n") + 1)))
    axis.set_axis_off()
    figure.suptitle(title, fontsize=9)
    save(figure, out, ("system", "reason"), [(label, reason) for reason, labels in absent.items() for label in labels])
