"""Single sentences: the cosine of each pair of their translations, one panel a sentence (docs/protocols.md; MPCL Figure 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from crosslign.entries.papers import Figure
from crosslign.files import read_rows
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures._style import PALETTE, save, subplots
from crosslign.reporting.figures.heatmap import cosine_table, stacked
from crosslign.reporting.figures.tsne import parallel_rows

PIVOT = "en"
RED = "#C00000"
MARKERS = "osD^v"
LEAST = 0.05
"""Cosines that the axis spans at least, so that noise does not look like a difference."""


def _pairs(names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of these languages by position: those with the pivot first, which stands first in them."""
    order = sorted(range(len(names)), key=lambda i: (names[i] != PIVOT, names[i]))
    return sorted(combinations(order, 2), key=lambda pair: names[pair[0]] != PIVOT)


@FIGURES.register(version=1)
def draw(entry: Figure, inputs: Mapping[str, Any], out: Mapping[str, Path]) -> None:
    """Draw a point for each system and pair of languages; pairs without English have red names and come last.

    Args:
        entry: `title`; `groups`, the number of sentences; `split`, where the evaluation corpus holds several.
        inputs: `panels`, the systems (label, matrix), `texts`, `items`.
        out: png, svg, csv.
    """
    rows, langs, _ = parallel_rows(inputs["texts"], inputs["items"], entry.get("groups", 2), entry.get("split"))
    names = list(dict.fromkeys(langs))
    pairs = _pairs(names)
    tables = [cosine_table(stacked(panel["matrix"], rows, len(names))) for panel in inputs["panels"]]
    texts = read_rows(inputs["texts"], "texts")["text"]
    said = [str(texts[int(row)]) for row in rows[names.index(PIVOT if PIVOT in names else names[0]) :: len(names)]]
    figure, axes = subplots(1, len(said), figsize=(0.6 + max(4.2, 0.8 + 0.26 * len(pairs)) * len(said), 4.2), squeeze=False, sharey=True)
    numbers: list[tuple[Any, ...]] = []
    for index, (axis, sentence) in enumerate(zip(axes[0], said, strict=True)):
        for number, (panel, table) in enumerate(zip(inputs["panels"], tables, strict=True)):
            cosines = [float(table[index, i, j]) for i, j in pairs]
            places = np.arange(len(pairs)) + 0.24 * (number - (len(tables) - 1) / 2)
            marker, colour = MARKERS[number % len(MARKERS)], PALETTE[number % len(PALETTE)]
            axis.plot(places, cosines, marker, color=colour, markersize=5, label=f"{panel['label']}, mean {np.mean(cosines):.3f}")
            numbers += [(sentence, names[i], names[j], panel["label"], f"{c:.6f}") for (i, j), c in zip(pairs, cosines, strict=True)]
        axis.set_xticks(range(len(pairs)), [f"{names[i]}-{names[j]}" for i, j in pairs], rotation=60, ha="right", fontsize=8)
        for label, (i, j) in zip(axis.get_xticklabels(), pairs, strict=True):
            label.set_color(RED if PIVOT not in (names[i], names[j]) else "black")
        axis.set_title(sentence, fontsize=9)
        axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    low = min(float(table.min()) for table in tables)
    axes[0][0].set(ylabel="cosine", ylim=(min(low, 1 - LEAST) - 0.1 * max(1 - low, LEAST), 1 + 0.05 * max(1 - low, LEAST)))
    figure.suptitle(entry["title"], fontsize=11)
    save(figure, out, ("sentence", "first", "second", "system", "cosine"), numbers)
