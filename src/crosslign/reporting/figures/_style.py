"""One look for all figures: a colour-blind-safe palette, quiet axes, and files whose bytes repeat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from crosslign.files import atomic_path, write_text
from crosslign.files.text import csv_of

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6B4C9A", "#333333")
"""Okabe and Ito's colours, reordered so that neighbours differ most."""

plt.rcParams.update(
    {
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": 10,
        "figure.constrained_layout.use": True,
        "figure.facecolor": "white",
        "font.family": ["DejaVu Sans"],
        "font.size": 9,
        "grid.alpha": 0.25,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "savefig.facecolor": "white",
        "svg.fonttype": "path",
        "svg.hashsalt": "crosslign",
    }
)


def colours_of(names: Sequence[str]) -> dict[str, Any]:
    """Return a colour for each name: those of the palette, or twenty where they are not enough."""
    many: Sequence[Any] = [mpl.colormaps["tab20"](place) for place in range(20)] if len(names) > len(PALETTE) else PALETTE
    return {name: many[index % len(many)] for index, name in enumerate(names)}


def subplots(rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Return a new figure in this style and its axes."""
    figure, axes = plt.subplots(rows, columns, **options)
    return figure, axes


def save(figure: Figure, out: Mapping[str, Path], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a figure as PNG (160 dpi) and SVG, without dates, the numbers behind it as CSV, and close it."""
    with atomic_path(out["png"]) as path:
        figure.savefig(path, format="png", dpi=160, metadata={"Software": None})
    with atomic_path(out["svg"]) as path:
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    write_text(out["csv"], csv_of(columns, rows))
    plt.close(figure)
