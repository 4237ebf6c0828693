"""The costs on the papers' pages are those that the recipes declare, as `crosslign plan` adds them up."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

import pytest

from crosslign.cli.dry_run import jobs_as_dot
from crosslign.config.cells import resolve_table
from crosslign.config.figures import figure_inputs
from crosslign.config.load import load_project
from crosslign.config.loads import declared_hours
from crosslign.config.resolve import is_untrained, run_recipe
from crosslign.planning.graph import read_graph

ROOT = Path(__file__).resolve().parents[3]
PAPERS = ("msimcse", "moco_bert", "scl", "mpcl", "emma_x")
SAID = re.compile(r"Estimated cost[^:]*: ([\d,]+) trainings with ([\d,.]+) GPU-hours")


@pytest.fixture(scope="module")
def project():
    return load_project(ROOT, {"scale": "paper", "papers": list(PAPERS)})


def shown(project, paper):
    """Return the runs whose scores or vectors the paper's tables and figures read."""
    tables = [resolve_table(project, name) for name in project.tables if project.paper_of[name] == paper]
    cells = [part for table in tables for row in table["cells"] for cell in row for part in cell.get("parts", [cell])]
    scores = {score for cell in cells for score in cell.get("scores", [])}
    for name in (name for name in project.figures if project.paper_of[name] == paper):
        declared = [path.relative_to(project.paths.results).as_posix() for path in figure_inputs(project, name)["declared"]]
        scores |= {path for path in declared if path.startswith(("scores/", "embeddings/"))}
    return {score.split("/")[1] for score in scores if score.count("/") >= 4}


def trained(project, paper):
    """Return the trained runs among them, and those that they go on from."""
    waiting, found = [run for run in shown(project, paper) if not is_untrained(project, run)], set()
    while waiting:
        run = waiting.pop()
        if run not in found:
            found.add(run)
            base = run_recipe(project, run)["base"]
            waiting += [base["run"]] if "run" in base else []
    return found


@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_says_what_the_recipes_declare(project, paper):
    page = " ".join((ROOT / "docs" / "papers" / f"{paper}.md").read_text(encoding="utf-8").split())
    runs = trained(project, paper)
    hours = sum(declared_hours(project, run) for run in runs)
    count, told = SAID.search(page).groups()
    assert (int(count.replace(",", "")), float(told.replace(",", ""))) == (len(runs), pytest.approx(hours, abs=0.06))


@pytest.mark.long
@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_counts_the_trainings_that_a_plan_counts(project, paper, tmp_path):
    """Of the jobs that Snakemake finds from nothing but the configuration, as `crosslign plan` does."""
    asked = [f"papers=[{paper}]", f"results={tmp_path}"]
    graph = read_graph(jobs_as_dot(Namespace(directory=ROOT, configfile=ROOT / "config" / "paper.yaml", config=asked)))
    jobs = [job for job in graph.values() if job.rule == "train_system"]
    assert all(job.to_run for job in jobs)
    assert {job.wildcards["run"] for job in jobs} == trained(project, paper)
