"""What the overlap of corpora and evaluation corpora is measured on."""

from dataclasses import replace
from pathlib import Path

from crosslign.config.load import load_project
from crosslign.config.overlap import expected_none, overlap_inputs, training_sets

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = {"scale": "quick", "results": "results", "mirror": [], "papers": ["quickstart"], "targets": ["all"]}


def test_all_data_behind_the_tables_is_measured():
    found = overlap_inputs(load_project(ROOT, SETTINGS))
    assert list(found["corpora"]) == ["bible_train", "written_nli"]  # the corpus that a view copies, not the view
    # A set that is joined from others is measured by its parts.
    assert list(found["evaluations"]) == ["bucc_bible_dev", "bucc_bible_test", "sts_written", "tatoeba_bible", "tatoeba_written"]
    assert "verses_parallel" in found["examples"]
    assert all(path.name == "texts.parquet" for path in found["evaluations"].values())


def test_pairs_that_should_share_no_text_are_those_of_protocols():
    """MultiNLI and its translations against XNLI's development and test parts."""
    sets = ["xnli_dev_pairs", "xnli_test"]
    assert expected_none(load_project(ROOT, SETTINGS)) == {"multinli_train": sets, "xnli_mt": sets, "xtreme_xnli": sets}


def test_joined_sets_bring_their_parts():
    project = load_project(ROOT, SETTINGS)
    assert training_sets(project, ["QS-PN-s42", "minilm_l6"]) == ["nli_en", "verses_parallel", "verses_parallel_nli"]
    assert training_sets(project, []) == []


def test_evaluations_that_only_an_average_shows_are_measured():
    project = load_project(ROOT, {**SETTINGS, "papers": ["moco_bert"], "targets": ["moco_bert_table5"]})
    averaged = {**project.tables["moco_bert_table5"], "rows": [{"label": "BERT", "system": "bert-cls"}]}
    averaged["columns"] = [column for column in averaged["columns"] if "mean_of" in column]
    found = overlap_inputs(replace(project, tables={"moco_bert_table5": averaged}))
    assert {"sts12", "sickr"} <= set(found["evaluations"])
