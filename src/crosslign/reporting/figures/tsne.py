"""Sentences of several languages in two dimensions, one panel a run, with the number that the figure names as its companion."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from crosslign.entries.papers import Figure
from crosslign.errors import InputError
from crosslign.files import read_rows
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures._companions import companion_of
from crosslign.reporting.figures._style import PALETTE, colours_of, save, subplots

PERPLEXITY = 30
HIGHLIGHTED = 3
INK = "#222222"
MARKS = ("#C00000", INK, "#6B4C9A")
"""Colours of the groups that are picked out, none of a language's."""


def parallel_rows(texts: Path, items: Path, groups: int, split: str | None = None) -> tuple[np.ndarray, list[str], list[str]]:
    """Return rows of the evaluation corpus that belong to `groups` groups present in every language, in its order; of one split, or of all.

    Where the set has more groups, they are drawn, always the same.

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
    whole = [group for group, found in members.items() if len(found) == len(every)]
    if len(whole) < 2:
        raise InputError("too few sentences exist in every language", where=str(items), why=f"languages {every}, whole groups {len(whole)}")
    chosen = sorted(np.random.default_rng(0).permutation(len(whole))[:groups])
    rows = [(members[whole[i]][lang], lang, whole[i]) for i in chosen for lang in every]
    return np.array([row for row, _, _ in rows]), [lang for _, lang, _ in rows], [group for _, _, group in rows]


@dataclass(frozen=True)
class Panel:
    """One picture: the points of one system, with what they stand for.

    Attributes:
        points: float [n, 2].
        langs, groups: of each point.
        colours: by language.
        marked: groups that are picked out, where nothing else is asked for.
    """

    points: np.ndarray
    langs: Sequence[str]
    groups: Sequence[str]
    colours: Mapping[str, Any]
    marked: Sequence[str]

    def of(self, names: Sequence[str], name: str) -> np.ndarray:
        """Return the points whose language or group is this."""
        return self.points[np.flatnonzero(np.array(names) == name)]

    def scatter(self, axis: Axes, size: float = 14) -> None:
        """Draw all points in the colours of their languages."""
        for lang, colour in self.colours.items():
            x, y = self.of(self.langs, lang).T
            axis.scatter(x, y, s=size, color=[colour], alpha=0.8, linewidths=0, label=lang)


def _join(axis: Axes, points: np.ndarray, width: float, colour: str = INK) -> None:
    for point in points:
        axis.plot(*zip(points.mean(axis=0), point, strict=True), color=colour, linewidth=width, alpha=0.7, zorder=3)


def draw_marked(axis: Axes, panel: Panel) -> None:
    """Draw points by language and join a few groups of translations, each in a colour of its own."""
    panel.scatter(axis)
    for number, group in enumerate(panel.marked):
        mine, colour = panel.of(panel.groups, group), MARKS[number % len(MARKS)]
        _join(axis, mine, 0.9, colour)
        axis.scatter(mine[:, 0], mine[:, 1], s=34, facecolors="none", edgecolors=colour, linewidths=1.2, zorder=4)


def draw_languages(axis: Axes, panel: Panel) -> None:
    """Draw points by language, with each language's code at the middle of its own: invariance is that all stand in one place."""
    panel.scatter(axis, 6)
    for lang, colour in panel.colours.items():
        middle = np.median(panel.of(panel.langs, lang), axis=0)
        text = axis.annotate(re.split("[-_]", lang)[0], middle, ha="center", va="center", fontsize=7, weight="bold", color=colour, zorder=5)
        text.set_path_effects([withStroke(linewidth=2, foreground="white")])


def draw_translations(axis: Axes, panel: Panel) -> None:
    """Draw points by language, each joined to the middle of its translations: canonical form is that a group is one place."""
    panel.scatter(axis, 8)
    for group in dict.fromkeys(panel.groups):
        _join(axis, panel.of(panel.groups, group), 0.3)


def draw_cloud(axis: Axes, panel: Panel) -> None:
    """Draw all points in one colour: how evenly the space is used."""
    axis.scatter(panel.points[:, 0], panel.points[:, 1], s=8, color=PALETTE[0], alpha=0.6, linewidths=0)


ASPECTS = {"invariance": draw_languages, "canonical_form": draw_translations, "isotropy": draw_cloud}
"""What a row of panels can show."""


def project(vectors: np.ndarray, perplexity: float) -> np.ndarray:
    """Return points of vectors by t-SNE (docs/protocols.md): random_state 0, PCA initialisation, automatic learning rate.

    Args:
        vectors: float64 [n, d].
        perplexity: at most (n - 1) / 3 is taken.
    """
    from sklearn.manifold import TSNE

    perplexity = min(perplexity, (len(vectors) - 1) / 3)
    points: np.ndarray = TSNE(random_state=0, init="pca", learning_rate="auto", perplexity=perplexity).fit_transform(vectors)
    return points


def marked_of(groups: Sequence[str], places: Sequence[int] | None) -> list[str]:
    """Return the groups that are picked out: those at the places, or where one of them is not there or none is named, a few, evenly."""
    if places is not None and max(places) < len(groups):
        return [groups[at] for at in places]
    wanted = HIGHLIGHTED if places is None else len(places)
    return list(groups[:: max(1, len(groups) // wanted)][:wanted])


@FIGURES.register(version=1)
def draw(entry: Figure, inputs: Mapping[str, Any], out: Mapping[str, Path]) -> None:
    """Draw a column of panels a system, from the same points: one that marks a few groups, or one for each aspect.

    Args:
        entry: `title`; `companion`; `groups`, the number of parallel groups; `split`, of several; `perplexity`;
            `marked`, numbers of groups that are picked out (as many others where there are fewer groups); `aspects`, rows of panels (of
            `ASPECTS`).
        inputs: `panels` (label, matrix), `texts`, `items`.
        out: png, svg, csv.
    """
    rows, langs, groups = parallel_rows(inputs["texts"], inputs["items"], entry.get("groups", 60), entry.get("split"))
    colours, marked = colours_of(sorted(set(langs))), marked_of(list(dict.fromkeys(groups)), entry.get("marked"))
    aspects = {str(name): ASPECTS[name] for name in entry.get("aspects", [])} or {"": draw_marked}
    side = 4.6 if len(aspects) == 1 else 3.6
    size = (side * len(inputs["panels"]) + 0.6, side * len(aspects) + 0.2)
    figure, axes = subplots(len(aspects), len(inputs["panels"]), figsize=size, squeeze=False)
    numbers = []
    for column, panel in zip(axes.T, inputs["panels"], strict=True):
        vectors = np.load(panel["matrix"], mmap_mode="r")[rows].astype(np.float64)
        points = project(vectors, entry.get("perplexity", PERPLEXITY))
        companion, words = companion_of(entry, vectors, langs, groups)
        for axis, aspect in zip(column, aspects.values(), strict=True):
            aspect(axis, Panel(points, langs, groups, colours, marked))
            axis.set(xticks=[], yticks=[])
            axis.grid(visible=False)
        column[0].set_title(panel["label"] + words, fontsize=10 if side > 4 else 8)
        numbers += [
            (panel["label"], lang, group, f"{x:.4f}", f"{y:.4f}", *map(repr, companion.values()))
            for lang, group, (x, y) in zip(langs, groups, points, strict=True)
        ]
    for axis, aspect_name in zip(axes[:, 0], aspects, strict=True):
        axis.set_ylabel(aspect_name.replace("_", " "))
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside right center", markerscale=1.6)
    figure.suptitle(entry["title"], fontsize=11)
    save(figure, out, ("panel", "lang", "group", "x", "y", *companion), numbers)
