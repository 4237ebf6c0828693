"""Retrieval examples: for a few queries the nearest sentences of a pool, one panel a run (docs/protocols.md; MoCo-BERT Table 10)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from crosslign.entries.papers import Figure
from crosslign.errors import InputError
from crosslign.files import read_rows
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures._style import save, subplots
from crosslign.tasks.scorers.nearest_sentences import nearest_of

TOP = 3
WIDTH = 88
"""Characters of a sentence that a panel has room for; the CSV holds all of it."""


@FIGURES.register(version=1)
def draw(entry: Figure, inputs: Mapping[str, Any], out: Mapping[str, Path]) -> None:
    """Write the nearest sentences of each query, with their cosines to three decimals.

    Args:
        entry: `title`; `top`, sentences for each query.
        inputs: `panels` (label, matrix), `texts`, `items`.
        out: png, svg, csv.

    Raises:
        InputError: the evaluation corpus has no queries, or nothing to search.
    """
    table, items = read_rows(inputs["texts"], "texts"), read_rows(inputs["items"], "items")
    row_of = {text: row for row, text in enumerate(table["text_id"].to_pylist())}
    roles: dict[str, list[int]] = {"query": [], "candidate": []}
    for role, text in zip(items["role"].to_pylist(), items["text_id"].to_pylist(), strict=True):
        roles.setdefault(role, []).append(row_of[text])
    if not roles["query"] or not roles["candidate"]:
        raise InputError("a figure of kind nearest needs queries and candidates", where=str(inputs["items"]))
    sentences, numbers = table["text"].to_pylist(), []
    lines = (entry.get("top", TOP) + 2) * len(roles["query"])
    figure, axes = subplots(len(inputs["panels"]), 1, figsize=(9.0, 0.6 + (0.13 * lines + 0.3) * len(inputs["panels"])), squeeze=False)
    for axis, panel in zip(axes[:, 0], inputs["panels"], strict=True):
        found = nearest_of(np.load(panel["matrix"], mmap_mode="r"), sentences, roles["query"], roles["candidate"], entry.get("top", TOP))
        printed = []
        for query, others in found:
            printed += [shorten(query, WIDTH), *(f"    {score:.3f}  {shorten(other, WIDTH)}" for other, score in others), ""]
            numbers += [(panel["label"], query, rank, f"{score:.3f}", other) for rank, (other, score) in enumerate(others, start=1)]
        axis.text(0.0, 1.0, "\n".join(printed), transform=axis.transAxes, va="top", family="DejaVu Sans Mono", fontsize=7)
        axis.set(title=panel["label"])
        axis.set_axis_off()
    figure.suptitle(entry["title"], fontsize=11)
    save(figure, out, ("panel", "query", "rank", "cosine", "sentence"), numbers)
