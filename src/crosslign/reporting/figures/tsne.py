"""Sentences of several languages in two dimensions, one panel a run, with a number that says how mixed they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crosslign.errors import InputError
from crosslign.files import read_rows
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures._style import PALETTE, save, subplots, write_numbers

PERPLEXITY = 30
HIGHLIGHTED = 3


def parallel_rows(
    texts: Path, items: Path, groups: int, split: str | None = None, seed: int = 0
) -> tuple[np.ndarray, list[str], list[str]]:
    """Return rows of the text set that belong to `groups` groups present in every language, evenly sampled; of one split, or of all.

    Returns:
        row indices, and the language and group of each.
    """
    table, links = read_rows(texts, "texts"), read_rows(items, "items")
    position = {text: index for index, text in enumerate(table["text_id"].to_pylist())}
    langs = table["lang"].to_pylist()
    members: dict[str, dict[str, int]] = {}
    for text, group, of in zip(*(links[column].to_pylist() for column in ("text_id", "group", "split")), strict=True):
        if group is not None and split in (None, of):
            members.setdefault(group, {}).setdefault(langs[position[text]], position[text])
    every = sorted({lang for found in members.values() for lang in found})
    whole = sorted(group for group, found in members.items() if len(found) == len(every))
    if len(whole) < 2:
        raise InputError(
            "too few sentences that stand in every language", where=str(items), why=f"languages {every}, whole groups {len(whole)}"
        )
    chosen = sorted(np.random.default_rng(seed).permutation(len(whole))[:groups])
    rows = [(members[whole[i]][lang], lang, whole[i]) for i in chosen for lang in every]
    return np.array([row for row, _, _ in rows]), [lang for _, lang, _ in rows], [group for _, _, group in rows]


def neighbour_rate(vectors: np.ndarray, langs: list[str], groups: list[str]) -> float:
    """Return how often the nearest sentence of another language is the translation, over all language pairs (a fraction)."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    similarity = unit @ unit.T
    names, ids = np.array(langs), np.array(groups)
    hits = [
        ids[other][similarity[np.ix_(here, other)].argmax(axis=1)] == ids[here]
        for a in sorted(set(langs))
        for b in sorted(set(langs))
        if a != b
        for here, other in [(np.flatnonzero(names == a), np.flatnonzero(names == b))]
    ]
    return float(np.concatenate(hits).mean())


@FIGURES.register
def draw(entry: Mapping[str, Any], inputs: Mapping[str, Any], out: Mapping[str, Path]) -> None:
    """Draw t-SNE panels (PROTOCOLS B21: random_state 0, PCA initialisation, automatic learning rate, perplexity 30).

    Args:
        entry: `title`; `groups`, the number of parallel groups; `split`, where the text set holds several.
        inputs: `panels` (label, matrix), `texts`, `items`.
        out: png, svg, csv.
    """
    from sklearn.manifold import TSNE

    rows, langs, groups = parallel_rows(inputs["texts"], inputs["items"], entry.get("groups", 60), entry.get("split"))
    colours = {lang: PALETTE[i % len(PALETTE)] for i, lang in enumerate(sorted(set(langs)))}
    marked = list(dict.fromkeys(groups))[:: max(1, len(set(groups)) // HIGHLIGHTED)][:HIGHLIGHTED]
    figure, axes = subplots(1, len(inputs["panels"]), figsize=(4.6 * len(inputs["panels"]), 4.6), squeeze=False)
    numbers = []
    for axis, panel in zip(axes[0], inputs["panels"], strict=True):
        vectors = np.load(panel["matrix"], mmap_mode="r")[rows].astype(np.float64)
        perplexity = min(PERPLEXITY, (len(rows) - 1) / 3)
        points = TSNE(random_state=0, init="pca", learning_rate="auto", perplexity=perplexity).fit_transform(vectors)
        rate = neighbour_rate(vectors, langs, groups)
        for lang, colour in colours.items():
            mine = [i for i, found in enumerate(langs) if found == lang]
            axis.scatter(points[mine, 0], points[mine, 1], s=14, color=colour, alpha=0.8, linewidths=0, label=lang)
        for group in marked:
            mine = [i for i, found in enumerate(groups) if found == group]
            centre = points[mine].mean(axis=0)
            for i in mine:
                axis.plot(*zip(centre, points[i], strict=True), color="#222222", linewidth=0.8, alpha=0.7, zorder=3)
            axis.scatter(points[mine, 0], points[mine, 1], s=34, facecolors="none", edgecolors="#222222", linewidths=1.0, zorder=4)
        axis.set(title=f"{panel['label']}\nnearest in another language is the translation: {100 * rate:.1f} %", xticks=[], yticks=[])
        axis.grid(visible=False)
        numbers += [
            (panel["label"], lang, group, f"{x:.4f}", f"{y:.4f}", repr(rate))
            for lang, group, (x, y) in zip(langs, groups, points, strict=True)
        ]
    axes[0][-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=1.6)
    figure.suptitle(entry["title"], fontsize=11)
    save(figure, out)
    write_numbers(out["csv"], ("panel", "lang", "group", "x", "y", "neighbour_rate"), numbers)
