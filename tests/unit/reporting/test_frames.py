"""Scores and tables as data frames."""

import json
import math
import random
from pathlib import Path

import pytest

import crosslign
from crosslign.config.cells import resolve_table
from crosslign.config.load import load_project
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]

RECORD = {"eval": "sts", "subset": "en-de", "metric": "spearman", "value": 0.5, "n_items": 250, "direction": "", "protocol": "all"}
COLUMNS = ["run", "checkpoint", "evaluation", "subset", "metric", "protocol", "direction", "readout", "seed", "value", "ci_low", "ci_high"]
COLUMNS += ["items", "status", "reason", "note", "score_file"]


def write(path, run, seed, *records):
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {"run_id": run, "checkpoint": "last", "readout": "mean", "seed": seed, "task": "sts"}
    path.write_text(json.dumps({**head, "records": [{"run_id": run, "seed": seed, **record} for record in records]}), encoding="utf-8")
    return path


def test_every_record_is_a_row_with_all_that_names_it(tmp_path):
    undefined = RECORD | {"value": None, "status": "undefined", "reason": "all gold scores are equal", "subset": "fr-de"}
    first = write(tmp_path / "A-s1" / "sts.json", "A-s1", 1, RECORD | {"ci_low": 0.25, "ci_high": 0.75, "note": "half"}, undefined)
    second = write(tmp_path / "base" / "sts.json", "base", None, RECORD)
    (tmp_path / "base" / "sts.json.lineage.json").write_text("{}", encoding="utf-8")
    found = crosslign.scores(sorted(tmp_path.rglob("*.json")))
    assert list(found.columns) == COLUMNS
    assert found.score_file.tolist() == [str(first), str(first), str(second)]
    row = found.iloc[0]
    assert (row.run, row.checkpoint, row.evaluation, row.subset, row.metric, row.protocol, row.direction, row.readout) == (
        *("A-s1", "last", "sts", "en-de", "spearman", "all", "", "mean"),
    )
    assert (row.seed, row.value, row.ci_low, row.ci_high, row["items"], row.note) == (1, 0.5, 0.25, 0.75, 250, "half")
    assert math.isnan(found.value[1])
    assert (found.status[1], found.reason[1]) == ("undefined", "all gold scores are equal")
    assert found.seed.isna().tolist() == [False, False, True]
    pivot = found.pivot(index="run", columns="subset", values="value")
    assert pivot.loc["base", "en-de"] == 0.5
    assert crosslign.scores([]).columns.tolist() == COLUMNS


@pytest.mark.parametrize("record", [RECORD | {"value": 2.0}, RECORD | {"seed": "one"}, {"eval": "sts"}])
def test_what_is_no_score_is_refused_with_its_file(tmp_path, record):
    with pytest.raises(InputError, match=r"sts\.json"):
        crosslign.scores([write(tmp_path / "sts.json", "A-s1", 1, record)])


def test_a_table_of_a_paper_is_a_frame_of_its_rows_and_columns_with_unrounded_averages(tmp_path):
    config = ["scale=quick", "papers=[msimcse]", f"results={tmp_path}"]
    project = load_project(ROOT, {"scale": "quick", "papers": ["msimcse"], "results": str(tmp_path), "targets": ["all"]})
    resolved, files, draw = resolve_table(project, "msimcse_table1"), {}, random.Random(1)
    for cell in (cell for row in resolved["cells"] for cell in row if "scores" in cell):
        for score in cell["scores"]:
            select = {("eval" if key == "task" else key): value for key, value in cell["select"].items()}
            files.setdefault(score, {}).setdefault(json.dumps(select), {**select, "value": draw.random()})
    for score, records in files.items():
        write(project.paths.results / score, score.split("/")[1], None, *records.values())
    found = crosslign.table("msimcse_table1", ROOT, config=config)
    assert found.shape == (len(resolved["rows"]), len(resolved["columns"]))
    labels, checked = [column["label"] for column in resolved["columns"]], set()
    for number, row in enumerate(resolved["cells"]):
        for column, cell in enumerate(row):
            value = found.iloc[number, column]
            if "scores" in cell:
                select = json.dumps({("eval" if key == "task" else key): value for key, value in cell["select"].items()})
                values = [files[score][select]["value"] for score in cell["scores"]]
                assert value == math.fsum(values) / len(values)
                checked.add("scores")
            elif "mean_of" in cell and not math.isnan(value):
                parts = [found.iloc[number, labels.index(label)] for label in cell["mean_of"]]
                assert value == pytest.approx(sum(parts) / len(parts), abs=1e-12)
                checked.add("mean_of")
            elif "reason" in cell:
                assert math.isnan(value)
    assert "scores" in checked
    with pytest.raises(InputError, match=r"crosslign\.table: .*'msimcse_table0'.*msimcse_table1"):
        crosslign.table("msimcse_table0", ROOT, config=config)
