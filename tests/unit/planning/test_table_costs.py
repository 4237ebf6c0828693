"""The pages of the documentation that print costs have what a plan prints."""

import re
from pathlib import Path

import pytest
from project_copy import copy_project
from ruamel.yaml import YAML

from crosslign.cli.main import main
from crosslign.config.load import load_project

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("asked", ["emma_x_table8", pytest.param("all_tables", marks=pytest.mark.long)])
def test_the_page_of_costs_has_what_a_plan_prints(tmp_path, capsys, asked):
    page = (ROOT / "docs" / "table-costs.md").read_text(encoding="utf-8")
    folder = copy_project(tmp_path / "project")
    assert main(["plan", asked, "--directory", str(folder), "--configfile", str(folder / "config" / "paper.yaml"), "--tables"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| `")]
    own = [row for row in page.splitlines() if row.startswith("| `") and (asked == "all_tables" or f"`{asked}`" in row)]
    assert rows == [row for row in own if "`emma_x_table7`" not in row]  # which no target has but its own


@pytest.mark.long
def test_the_page_of_clusters_has_the_totals_that_a_plan_prints(tmp_path, capsys):
    folder = copy_project(tmp_path / "project")
    assert main(["plan", "--directory", str(folder), "--configfile", str(folder / "config" / "paper.yaml"), "--gpus", "8"]) == 0
    said = capsys.readouterr().out
    (total,) = (line for line in said.splitlines() if "GPU-hours" in line)
    jobs = sum(int(number) for number in re.findall(r"^  \w+ +(\d+) +\d+", said, flags=re.MULTILINE))
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    assert f"{jobs:,} jobs: `{total}`" in page


def test_the_page_of_costs_has_every_table_of_the_papers():
    page = (ROOT / "docs" / "table-costs.md").read_text(encoding="utf-8")
    papers = YAML(typ="safe").load(ROOT / "config" / "paper.yaml")["papers"]
    loaded = load_project(ROOT, {"scale": "paper", "papers": papers, "targets": ["all"]})
    assert re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE) == list(loaded.tables)


def test_other_pages_repeat_the_figures_of_the_page_of_costs():
    page, readme, questions, one, cluster = (
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("docs/table-costs.md", "README.md", "docs/faq.md", "docs/one-paper-table.md", "docs/cluster.md")
    )
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|.*\| (.+?) \| (.+?) \|$", page, flags=re.MULTILINE)
    costs = {name: (hours, downloads, disk) for name, hours, downloads, disk in rows}
    said = re.findall(r"\| Table (\d+): ([\d.]+) GPU-hours, ([\d.]+ .B)[^|]*\| \[(\w+)\]", readme)
    assert len(said) == 5
    assert [(hours, size) for _, hours, size, _ in said] == [costs[f"{paper}_table{number}"][:2] for number, *_, paper in said]
    hours, downloads, disk = costs["msimcse_table1"]
    assert f"{hours} GPU-hours, {downloads} of downloads" in cluster
    assert f"{float(disk.split()[0]):.0f} GB with 8 GPUs" in cluster
    largest = f"{max(float(hours) for hours, *_ in costs.values()):.0f} GPU-hours"
    assert f"to {largest}]" in questions
    assert f"its Table 1 takes {largest}" in one
