"""The smallest table of each of the five papers that trains, built from nothing on stand-ins, then read cell by cell.

`make test-papers`; one seed, so that it stays below ten minutes on two cores.
"""

import csv
import json
import math
import re
import shutil

import pytest
from project_copy import Workflow, copy_project

from crosslign.config.load import load_project
from crosslign.files.text import read_csv
from crosslign.paths import CATALOG, PUBLISHED

TABLES = ("msimcse_table7", "moco_bert_table1", "scl_table7", "mpcl_table2", "emma_x_table5")
PAPERS = ["msimcse", "moco_bert", "scl", "mpcl", "emma_x"]
CONFIG = (f"papers=[{','.join(PAPERS)}]", "targets=[all_tables]", "seeds=[42]")
pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The five tables, from one call."""
    workflow = Workflow(copy_project(tmp_path_factory.mktemp("papers")))
    workflow.run(*(f"results/quick/tables/{table}.md" for table in TABLES), config=CONFIG)
    return workflow


@pytest.fixture(scope="session")
def declared(built):
    """The project as configured: rows and columns of its tables."""
    return load_project(built.folder, {"scale": "quick", "results": str(built.folder / "results"), "papers": PAPERS, "seeds": [42]})


def cells_of(built, table):
    return read_csv(built.results / "tables" / f"{table}.csv")[1]


def printed(built, table):
    """Figures of a paper's table by (heading, label, model, task, subset, metric), and by fewer of them where a row says no more."""
    found = {}
    with open(CATALOG / PUBLISHED / f"{table}.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            place = (row["model"], row["task"], row["subset"], row["metric"])
            for heading, label in ((row["group"], row["model_label"]), (row["group"], None), (None, None)):
                found.setdefault((heading, label, *place), row["value"])
    return found


@pytest.mark.parametrize("table", TABLES)
def test_every_cell_is_a_number_or_a_dash_with_its_reason(built, declared, table):
    entry, cells = declared.tables[table], cells_of(built, table)
    assert len(cells) == len(entry["rows"]) * len(entry["columns"])
    footnotes = dict(re.findall(r"<sup>([a-z]+)</sup> (\S.*)$", (built.results / "tables" / f"{table}.md").read_text(), flags=re.MULTILINE))
    for cell in cells:
        if cell["ours"]:
            assert math.isfinite(float(cell["ours"])), cell
        else:
            letters = [letter for letter in cell["footnotes"].split(",") if letter]
            assert letters, cell
            assert set(letters) <= footnotes.keys(), cell
    assert any(cell["ours"] for cell in cells)


@pytest.mark.parametrize("table", TABLES)
def test_published_figures_are_those_of_the_resources(built, declared, table):
    entry, figures, shown = declared.tables[table], printed(built, table), 0
    cells = iter(cells_of(built, table))
    for row in entry["rows"]:
        for column in entry["columns"]:
            cell, asked = next(cells), column.get("published", {})
            assert (cell["row"], cell["column"]) == (row["label"], column["label"])
            place = (row.get("published"), *(asked.get(key, "") for key in ("task", "subset", "metric")))
            heads = ((row.get("group", ""), row["label"]), (row.get("group", ""), None), (None, None))
            wanted = next((figures[(*head, *place)] for head in heads if (*head, *place) in figures), "")
            assert (float(cell["published"]) if cell["published"] else "") == (float(wanted) if wanted else ""), cell
            shown += bool(wanted)
    assert shown


@pytest.mark.parametrize("table", TABLES)
def test_the_title_says_that_it_is_reduced_and_on_stand_ins(built, table):
    title = (built.results / "tables" / f"{table}.md").read_text(encoding="utf-8").splitlines()[0]
    assert title.startswith("### ")
    assert "(scale quick, reduced)" in title
    assert title.endswith("synthetic data, scores mean nothing")


@pytest.mark.parametrize("table", TABLES)
def test_some_cell_rests_on_a_system_that_was_trained_here(built, table):
    runs = {part.split("/")[1] for cell in cells_of(built, table) for part in cell["score_file"].split(";") if part.startswith("scores/")}
    trained = [built.results / "systems" / run / "lineage.json" for run in runs]
    trained = [json.loads(path.read_text(encoding="utf-8")) for path in trained if path.exists()]
    assert trained
    assert all(lineage["stand_in"] and lineage["rule"] == "train_system" for lineage in trained)


def test_training_moves_what_is_scored(built):
    """Each trained row of SCL's table has scores of its own: a checkpoint that was mixed up, or never moved, has those of another."""
    rows = {}
    for cell in cells_of(built, "scl_table7"):
        rows.setdefault(cell["row"], []).append(cell["ours"])
    found = [tuple(rows[row]) for row in ("XLMR-base", "MVA", "CL", "SCL")]
    assert len(set(found)) == len(found), found


def test_a_changed_published_figure_makes_its_table_again_and_nothing_else(built):
    path = built.folder / PUBLISHED / "scl_table7.csv"
    path.parent.mkdir(parents=True)
    for name in ("scl_table7.csv", "errata.csv"):
        shutil.copy(CATALOG / PUBLISHED / name, path.parent)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("XLM", "xlm", 1), encoding="utf-8")
    try:
        jobs = built.planned(*(f"results/quick/tables/{table}.md" for table in TABLES), config=CONFIG)
    finally:
        path.write_text(text, encoding="utf-8")
    assert jobs == [("make_table", "table=scl_table7")]
