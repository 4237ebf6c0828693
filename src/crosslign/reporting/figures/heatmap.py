"""Case study: how alike a sentence and its translations are, by pair of languages (docs/protocols.md; MPCL Figure 1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crosslign.entries.papers import Figure
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures._companions import companion_of
from crosslign.reporting.figures._style import save, subplots
from crosslign.reporting.figures.tsne import parallel_rows


def cosine_table(vectors: np.ndarray) -> np.ndarray:
    """Return cosines of each group's sentences: float64 [groups, languages, languages] from [groups, languages, d]."""
    unit = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    cosines: np.ndarray = np.clip(unit @ unit.transpose(0, 2, 1), -1.0, 1.0)
    return cosines


def stacked(matrix: str, rows: np.ndarray, languages: int) -> np.ndarray:
    """Return the vectors of these rows by group and language: float64 [groups, languages, d]."""
    vectors: np.ndarray = np.load(matrix, mmap_mode="r")[rows].astype(np.float64)
    stacked: np.ndarray = vectors.reshape(-1, languages, vectors.shape[1])
    return stacked


@FIGURES.register(version=1)
def draw(entry: Figure, inputs: Mapping[str, Any], out: Mapping[str, Path]) -> None:
    """Draw the mean cosine of translations for each pair of languages, and write the cosine of every single pair.

    Args:
        entry: `title`; `companion`; `groups`, the number of sentences; `split`, where the evaluation corpus holds several.
        inputs: `panels` (label, matrix), `texts`, `items`.
        out: png, svg, csv.
    """
    rows, langs, groups = parallel_rows(inputs["texts"], inputs["items"], entry.get("groups", 100), entry.get("split"))
    names = list(dict.fromkeys(langs))
    numbers: list[tuple[Any, ...]] = []
    side = 1.4 + 0.42 * len(names)
    figure, axes = subplots(1, len(inputs["panels"]), figsize=((side + 0.4) * len(inputs["panels"]) + 0.8, side + 0.5), squeeze=False)
    shown = [stacked(panel["matrix"], rows, len(names)) for panel in inputs["panels"]]
    tables = [cosine_table(vectors) for vectors in shown]
    low = min(0.95, *(float(table.mean(0).min()) for table in tables))  # noise is not to look like a difference
    for axis, panel, vectors, table in zip(axes[0], inputs["panels"], shown, tables, strict=True):
        means = table.mean(0)
        image = axis.imshow(means, vmin=low, vmax=1.0, cmap="viridis")
        for (i, j), value in np.ndenumerate(means):
            axis.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7, color="white" if value < (1 + low) / 2 else "black")
        companion, words = companion_of(entry, vectors.reshape(len(rows), -1), langs, groups)
        axis.set(title=panel["label"] + words, xticks=range(len(names)), yticks=range(len(names)))
        axis.set_xticklabels(names)
        axis.set_yticklabels(names)
        axis.grid(visible=False)
        for group, cosines in zip(groups[:: len(names)], table, strict=True):
            pairs = ((i, j) for i in range(len(names)) for j in range(i + 1, len(names)))
            beside = [repr(value) for value in companion.values()]
            numbers += [(panel["label"], group, names[i], names[j], f"{cosines[i, j]:.6f}", *beside) for i, j in pairs]
    figure.colorbar(image, ax=axes[0].tolist(), shrink=0.8)
    figure.suptitle(entry["title"], fontsize=11)
    save(figure, out, ("panel", "group", "first", "second", "cosine", *companion), numbers)
