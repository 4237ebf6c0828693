"""Draws architecture.svg: the data from source to table, and below it the packages of the library in layers, from their imports.

    python docs/images/architecture.py

A package stands one layer above the highest package that it imports, so that all imports go down.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch

FOLDER = Path(__file__).parent
SOURCE = FOLDER.parents[1] / "src" / "crosslign"
DATA = {
    "source": "fetch", "corpus": "build_corpus", "view": "build_view", "training set": "build_examples",
    "run": "train_system", "embeddings": "embed", "score": "score", "table": "make_table",
}  # fmt: skip
"""Artefacts in the order of the data, each with the stages that make it."""
ABOUT = {
    "config": "YAML, recipes, graph", "files": "lineage, rows, locks", "corpora": "sources, readers, filters",
    "encoders": "load, pool, encode", "mining": "neighbours, margins",
    "objectives": "losses, parts", "training": "one trainer", "tasks": "scorers, records",
    "jobs": "log, devices, outputs", "reporting": "tables, figures", "provenance": "explain, diff", "stages": "one a rule",
    "planning": "cost of a run", "slurm": "executor", "entries": "types of YAML",
    "views": "augmentation", "examples": "training sets", "cli": "commands",
}  # fmt: skip
COLOURS = {"data": "#dbe9f6", "package": "#eef3e6"}


def imported(path: Path) -> set[str]:
    """Return the packages of the library that a module imports."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names = [name for node in tree if isinstance(node, ast.ImportFrom) for name in [node.module or ""]]
    return {name.split(".")[1] for name in names if name.startswith("crosslign.")}


def layers() -> list[list[str]]:
    """Return the packages by layer, lowest first."""
    graph: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        package = path.relative_to(SOURCE).with_suffix("").parts[0]
        if not package.startswith("_"):
            graph.setdefault(package, set()).update(imported(path) - {package})

    @cache
    def layer(package: str) -> int:
        return 1 + max(map(layer, graph[package]), default=0)

    found = [sorted(package for package in graph if layer(package) == number) for number in range(1, len(graph) + 1)]
    return [packages for packages in found if packages]


def box(axes: plt.Axes, place: tuple[float, float], width: float, texts: tuple[str, str], colour: str) -> None:
    """Draw a box with a name and what it does."""
    x, y = place
    style = {"boxstyle": "round,pad=0.01,rounding_size=0.06", "facecolor": colour, "edgecolor": "#555555", "linewidth": 0.8}
    axes.add_patch(FancyBboxPatch((x, y), width, 0.62, **style))
    high = 0.43 if texts[1] else 0.31
    axes.text(x + width / 2, y + high, texts[0], ha="center", va="center", fontsize=8.5, weight="bold")
    axes.text(x + width / 2, y + 0.19, texts[1], ha="center", va="center", fontsize=6.5)


def draw(out: Path) -> None:
    """Write the picture."""
    mpl.rcParams.update({"svg.hashsalt": "crosslign", "svg.fonttype": "none", "font.family": "DejaVu Sans"})
    rows, width = layers(), 14.0
    figure, axes = plt.subplots(figsize=(11, 1.0 + 0.62 * (len(rows) + 1.4)))
    axes.axis("off")
    top, step = 0.85 * len(rows) + 0.6, width / len(DATA)
    for at, (artefact, stages) in enumerate(DATA.items()):
        box(axes, (at * step, top), step - 0.3, (artefact, stages), COLOURS["data"])
        if at:
            axes.annotate("", (at * step, top + 0.31), (at * step - 0.3, top + 0.31), arrowprops={"arrowstyle": "->", "linewidth": 1})
    axes.text(0, top + 0.8, "Artefacts, and the stages that make them", fontsize=9)
    axes.text(0, top - 0.35, "Packages of src/crosslign in layers: imports go down", fontsize=9)
    for level, packages in enumerate(rows):
        step = width / len(packages)
        for at, package in enumerate(packages):
            own = min(step - 0.12, 3.4)
            box(axes, (at * step + (step - own) / 2, 0.85 * level), own, (package, ABOUT.get(package, "")), COLOURS["package"])
    axes.set_xlim(-0.1, width + 0.1)
    axes.set_ylim(-0.1, top + 1.1)
    figure.savefig(out, bbox_inches="tight", metadata={"Date": None} if out.suffix == ".svg" else None)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER / "architecture.svg")
