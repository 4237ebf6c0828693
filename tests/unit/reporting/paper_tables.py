"""Every table of the papers as it prints before anything was scored: labels, published figures, footnotes, reasons."""

from functools import cache
from pathlib import Path

from crosslign.config.cells import resolve_table
from crosslign.config.load import load_project
from crosslign.paths import CATALOG
from crosslign.reporting.layout import lay_out

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = CATALOG / "resources" / "published"
PAPERS = ("msimcse", "moco_bert", "scl", "mpcl", "emma_x")


@cache
def resolved_tables():
    """Return every table of every file in config/papers, resolved at the papers' scale."""
    papers = sorted(path.stem for path in (CATALOG / "papers").glob("*.yaml"))
    project = load_project(ROOT, {"scale": "paper", "papers": papers, "targets": ["all"]})
    return {name: resolve_table(project, name) for name in project.tables}


def _unscored(cell):
    return {"reason": "not run"} if "scores" in cell or "parts" in cell else cell


@cache
def laid_out(name):
    """Return a table whose cells hold no score of ours."""
    table = {key: value for key, value in resolved_tables()[name].items() if key not in ("budget", "tuned")}  # nothing was trained
    return lay_out({**table, "cells": [[_unscored(cell) for cell in row] for row in table["cells"]]}, ROOT, PUBLISHED)


def printed_tables():
    """Return the names of the tables that a paper prints, by the files of their figures."""
    return sorted(path.stem for paper in PAPERS for path in PUBLISHED.glob(f"{paper}_table*.csv"))
