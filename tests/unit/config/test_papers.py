"""Every paper file in config/papers resolves at every scale, and the methods' file holds what it promises."""

from pathlib import Path

import pytest

from crosslign.config.cells import resolve_table
from crosslign.config.load import load_project
from crosslign.config.resolve import resolve, runs_of
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
PAPERS = sorted(path.stem for path in (ROOT / "config" / "papers").glob("*.yaml"))
SCALES = sorted(path.stem for path in (ROOT / "config" / "scales").glob("*.yaml"))


def project(*papers, scale="laptop", **settings):
    return load_project(ROOT, {"scale": scale, "papers": list(papers), "targets": ["all"], **settings})


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("paper", PAPERS)
def test_all_systems_and_tables_of_a_paper_resolve(paper, scale):
    loaded = project(paper, scale=scale)
    for system in loaded.systems:
        for run in runs_of(loaded, system):
            assert resolve(loaded, system, int(run.rpartition("-s")[2]))["run_id"] == run
    for table in loaded.tables:
        cells = [cell for row in resolve_table(loaded, table)["cells"] for cell in row]
        assert all("scores" in cell or "reason" in cell or "mean_of" in cell or "parts" in cell or "text" in cell for cell in cells)


def test_the_methods_table_has_all_five_methods_under_the_quick_starts_evaluations():
    loaded = project("quickstart", "five_methods")
    rows = [row["system"] for row in loaded.tables["methods"]["rows"]]
    used = {term["objective"] for system in rows[1:] for term in resolve(loaded, system, 42)["terms"]}
    wanted = {"infonce", "momentum_contrast", "alignment", "supervised_contrastive", "multi_positive_infonce", "rank_infonce", "gmm_ranks"}
    assert used == wanted
    tasks = [{column["task"] for column in loaded.tables[table]["columns"]} for table in ("methods", "quickstart")]
    assert tasks[0] == tasks[1]
    similarities = {t.get("similarity") for system in rows[1:] for t in resolve(loaded, system, 42)["terms"]}
    assert {"cosine", "mse", "kl", "symmetric_kl"} <= similarities


def test_every_training_of_the_methods_table_is_kept_clean_of_its_evaluations():
    loaded = project("five_methods")
    parts = set(loaded.corpora["quickstart"]["of"])
    for name, entry in loaded.examples.items():
        if "of" not in entry:
            assert set(entry["decontaminate"]) == parts, name


def test_phase_two_goes_on_from_phase_one_of_its_seed():
    loaded = project("five_methods", seeds=[3, 4])
    assert runs_of(loaded, "QM-MB") == ["QM-MB-s3", "QM-MB-s4"]
    assert resolve(loaded, "QM-EX-p2", 4)["base"]["run"] == "QM-EX-p1-s4"


def test_a_setting_of_a_recipe_is_a_cell():
    table = resolve_table(project("moco_bert", scale="paper"), "moco_bert_table9")
    shown = {row["label"]: cells[0].get("text", cells[0].get("reason")) for row, cells in zip(table["rows"], table["cells"], strict=True)}
    assert shown["queue size"] == "409600"
    assert shown["temperature"] == "0.04"
    assert shown["pooling"] == "mean"
    assert "configuration" in shown["dropout"]


def test_a_setting_that_no_recipe_has_is_named(monkeypatch):
    loaded = project("moco_bert", scale="paper")
    monkeypatch.setitem(loaded.tables["moco_bert_table9"]["rows"][0], "setting", "train.epoch")
    with pytest.raises(InputError, match=r"MB-main has no setting 'train\.epoch'"):
        resolve_table(loaded, "moco_bert_table9")


def test_a_table_may_name_seeds_of_its_own_and_config_has_the_last_word():
    def runs(**settings):
        table = resolve_table(project("msimcse", scale="paper", **settings), "msimcse_table1_seeds")
        return [sum("-s" in score for score in cells[0]["scores"]) for cells in table["cells"]], table["cells"][2][0]["scores"]

    counts, scores = runs()
    assert counts == [0, *[3] * 9]
    assert [score.split("/")[1] for score in scores] == ["MS-E-s42", "MS-E-s43", "MS-E-s44"]
    assert [score.split("/")[1] for score in runs(seeds=[7])[1]] == ["MS-E-s7"]
