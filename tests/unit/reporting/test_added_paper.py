"""The page that teaches how to add a paper, followed as it stands."""

import re
import shutil
import textwrap
from pathlib import Path

import pytest

from crosslign.config.cells import resolve_table
from crosslign.config.load import load_project
from crosslign.reporting.layout import lay_out

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def project(tmp_path):
    """A copy of the configuration with the page's two files in their places."""
    shutil.copytree(ROOT / "workflow" / "schemas", tmp_path / "workflow" / "schemas")
    (tmp_path / "config/papers").mkdir(parents=True)
    page = (ROOT / "docs" / "add-a-paper.md").read_text(encoding="utf-8")
    (recipe, figures) = (textwrap.dedent(found) for _, found in re.findall(r"```(yaml|csv)\n(.*?)```", page, flags=re.DOTALL))
    (tmp_path / "config/papers/my_paper.yaml").write_text(recipe, encoding="utf-8")
    (tmp_path / "my_paper_table1.csv").write_text(figures, encoding="utf-8")
    return load_project(tmp_path, {"scale": "quick", "papers": ["quickstart", "my_paper"], "targets": ["my_paper"]})


def test_its_cells_lead_to_scores_and_stand_beside_what_was_printed(project):
    resolved = resolve_table(project, "my_paper_table1")
    (cold,), (colder,) = resolved["cells"]
    assert [Path(score).parts[1] for score in cold["scores"]] == ["MY-cold-s42"]
    assert colder == {"reason": "no public weights"}
    printed = lay_out({**resolved, "cells": [[{"reason": "not run"}], [colder]]}, project.root, project.root)
    assert [row.cells[0].published for row in printed.rows] == ["61.2 ± 0.4", "70.0"]
