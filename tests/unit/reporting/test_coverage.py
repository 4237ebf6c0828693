"""What is counted of the printed figures, on a table made by hand, and the page that the command wrote."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest

from crosslign.cli.main import main
from crosslign.config.load import load_project
from crosslign.config.settings import read_settings
from crosslign.reporting.coverage import coverage, coverage_page

ROOT = Path(__file__).resolve().parents[3]
HEAD = "paper,table,group,model,model_label,task,subset,metric,value,std,direction,note\n"


@pytest.fixture(scope="module")
def projects():
    settings = {scale: read_settings([ROOT / "config" / "paper.yaml"], {"scale": scale, "papers": ["scl"]}) for scale in ("paper", "quick")}
    return [load_project(ROOT, settings[scale]) for scale in ("paper", "quick")]


def made(projects, tmp_path, footnotes=(), rows=None):
    """Count one table of two columns and a mean of both, with figures of two models."""
    columns = [
        {
            "label": name,
            "task": "tatoeba",
            "subset": code,
            "metric": "accuracy",
            "published": {"task": "t", "subset": name, "metric": "accuracy"},
        }
        for name, code in (("de", "deu"), ("fr", "fra"))
    ]
    columns.append({"label": "Avg", "mean_of": ["de", "fr"], "published": {"task": "t", "subset": "avg", "metric": "accuracy"}})
    rows = rows or [
        {"label": "LaBSE", "system": "labse", "published": "labse"},
        {"label": "Other", "reason": "no weights", "published": "other"},
    ]
    lines = [
        f"scl,9,,{model},,t,{subset},accuracy,{90 + at},,higher,\n"
        for at, model in enumerate(("labse", "other"))
        for subset in ("de", "fr", "avg")
    ]
    (tmp_path / "scl_table9.csv").write_text(HEAD + "".join(lines))
    changed = []
    for project in projects:
        table = {"title": "T", "columns": columns, "rows": copy.deepcopy(rows), "footnotes": list(footnotes)}
        changed.append(replace(project, tables={"scl_table9": table}, paper_of={**project.paper_of, "scl_table9": "scl"}))
    return coverage(*changed, tmp_path)["scl"]


def test_runnable_cells_and_dashes_are_counted_by_printed_figure(projects, tmp_path):
    found = made(projects, tmp_path)
    assert found.states == {"runnable": 3, "dash": 3}
    assert found.reasons == {"no weights": 3}
    assert found.tables == {"scl_table9": [3, 6]}


def test_what_measures_something_else_is_not_runnable_nor_is_its_mean(projects, tmp_path):
    note = {"at": {"row": "LaBSE", "column": "de"}, "text": "another set", "measures_other": True}
    found = made(projects, tmp_path, [note])
    assert found.states == {"runnable": 1, "measures something else": 2, "dash": 3}
    assert made(projects, tmp_path, [{**note, "measures_other": False}]).states["runnable"] == 3
    assert made(projects, tmp_path, [{"text": "all of it", "measures_other": True}]).states["runnable"] == 0


def test_a_figure_that_two_rows_show_counts_once_by_the_better(projects, tmp_path):
    rows = [
        {"label": "LaBSE", "system": "labse", "published": "labse"},
        {"label": "LaBSE, first token", "reason": "not run", "published": "labse"},
    ]
    found = made(projects, tmp_path, rows=[*rows[::-1], {"label": "Other", "reason": "no weights", "published": "other"}])
    assert found.states == {"runnable": 3, "dash": 3}
    assert "not run" not in found.reasons


def test_a_source_that_nothing_shows_is_named(projects, tmp_path, monkeypatch):
    bare = {key: value for key, value in projects[0].sources["tatoeba_v1"].items() if key != "evidence"}
    monkeypatch.setitem(projects[0].sources, "tatoeba_v1", bare)
    found = made(projects, tmp_path)
    assert found.states == {"address or format not shown": 3, "dash": 3}
    assert found.sources == {"tatoeba_v1": 3}


def test_a_figure_without_a_row_is_a_dash(projects, tmp_path):
    found = made(projects, tmp_path, rows=[{"label": "LaBSE", "system": "labse", "published": "labse"}])
    assert found.reasons == {"no table shows it": 3}


def test_the_page_is_what_the_command_writes(capsys):
    assert main(["coverage", "--directory", str(ROOT), "--configfile", str(ROOT / "config" / "paper.yaml")]) == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "papers" / "coverage.md").read_text(encoding="utf-8"), "write it again: see its head"


def test_pages_add_up():
    page = (ROOT / "docs" / "papers" / "coverage.md").read_text(encoding="utf-8")
    lines = [[int(n.replace(",", "")) for n in line.split("|")[2:-1]] for line in page.splitlines() if line.startswith(("| [", "| all"))]
    assert all(line[0] == sum(line[1:]) for line in lines)
    assert [sum(column) for column in zip(*lines[:-1], strict=True)] == lines[-1]
    assert coverage_page({}).endswith("| all | 0 | 0 | 0 | 0 | 0 | 0 |\n")


def test_a_paper_without_printed_figures_is_refused(capsys):
    assert main(["coverage", "--directory", str(ROOT), "--config", "papers=[quickstart]"]) == 2
    assert "Give --configfile config/paper.yaml" in capsys.readouterr().err
