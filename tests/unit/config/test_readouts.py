"""How a cell's vectors are read: pooling of the system, length and prefix of the evaluation, and what tables and rows say."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from crosslign.config.cells import resolve_table
from crosslign.config.figures import figure_inputs
from crosslign.config.graph import score_inputs, score_length
from crosslign.config.load import load_project
from crosslign.config.readouts import readout, variant
from crosslign.config.resolve import dev_readouts, readout_name, resolve, role_readout
from crosslign.errors import InputError
from crosslign.paths import CATALOG

ROOT = Path(__file__).resolve().parents[3]
PAPERS = ["msimcse", "moco_bert", "scl", "mpcl", "emma_x", "anchors"]


@pytest.fixture(scope="module", params=["paper", "quick"])
def project(request):
    return load_project(ROOT, {"scale": request.param, "papers": PAPERS, "targets": ["all"]})


def reading(project, table, row, column):
    """Return the readout in the path of the first score of a cell."""
    return Path(cell_of(project, table, row, column)["scores"][0]).parent.name


def cell_of(project, table, row, column):
    shown = resolve_table(project, table)
    at = next(i for i, entry in enumerate(shown["rows"]) if entry["label"] == row)
    return shown["cells"][at][[entry["label"] for entry in shown["columns"]].index(column)]


@pytest.mark.parametrize(
    ("name", "length", "raw", "expected"),
    [
        ("cls", None, False, "cls"),
        ("cls", 96, False, "cls_t96"),
        ("cls_t64", 64, False, "cls_t64"),
        ("cls_t64", 96, False, "cls_t96"),
        ("cls_t64", 512, False, "cls"),  # what `cls` is anyway: one name, one matrix
        ("cls_t64", None, True, "cls_raw_t64"),
        ("cls_raw_t64", 512, False, "cls_raw"),
        ("mean_t64_bf16", 96, True, "mean_t64_bf16_raw_t96"),
        ("e5_query_passage", 96, True, "e5_query_passage_raw_t96"),
    ],
)
def test_a_variant_of_a_readout_has_one_name_and_differs_in_what_was_asked_alone(project, name, length, raw, expected):
    own = readout(project, name)
    assert variant(project, name, length, raw) == expected
    assert readout(project, expected) == {**own, "max_length": length or own["max_length"], "normalise": own["normalise"] and not raw}


@pytest.mark.parametrize("name", ["nothing", "cls_tt", "cls_t", "_raw", "_t64", "nothing_t64", "nothing_raw", "cls_query", "_passage"])
def test_an_unknown_readout_is_named(project, name):
    with pytest.raises(InputError, match=r"readouts: .*unknown"):
        readout(project, name)


def test_a_task_fixes_lengths_and_leaves_the_pooling_to_the_system(project):
    for system, pooling in (("labse", "pooler"), ("sbert-paraphrases", "mean"), ("xlm-r", "cls")):
        name = readout_name(project, system, "lareqa")
        entries = {role: readout(project, role_readout(project, system, name, "lareqa", role)) for role in ("queries", "candidates")}
        assert {role: entry["pooling"] for role, entry in entries.items()} == dict.fromkeys(entries, pooling)
        assert entries["queries"]["max_length"] == 96
    limits = {"labse": 256, "sbert-paraphrases": 128, "xlm-r": 256}
    for system, limit in limits.items():
        assert score_length(project, system, readout_name(project, system, "lareqa"), "lareqa") == limit


def test_evaluation_corpora_of_a_task_are_read_to_its_lengths(project):
    inputs = score_inputs(project, "xlm-r", "base", "cls", "lareqa")
    assert {role: part["matrix"].parent.name for role, part in inputs.items()} == {"queries": "cls_t96", "candidates": "cls_t256"}
    own = score_inputs(project, "xlm-r", "base", "cls", "tatoeba")
    assert [part["matrix"].parent.name for part in own.values()] == ["cls"]
    for task, length in (("mewsli_x", 64), ("stsb_dev", 512), ("sts22", 512), ("sts22_t64", 64)):
        name = readout_name(project, "xlm-r", task)
        matrices = score_inputs(project, "xlm-r", "base", name, task)
        assert {readout(project, part["matrix"].parent.name)["max_length"] for part in matrices.values()} == {length}


@pytest.mark.parametrize(
    ("cell", "lengths", "queries", "candidates"),
    [
        ("e5_query", {"queries": 96, "candidates": 256}, "e5_query_t96", "e5_query_passage_t256"),
        ("e5_query_bf16", {}, "e5_query_bf16", "e5_query_bf16_passage"),
        ("e5_query_t64", {}, "e5_query_t64", "e5_query_passage_t64"),
        ("e5_query_raw_t64", {}, "e5_query_raw_t64", "e5_query_passage_raw_t64"),
        ("e5_query_passage", {}, "e5_query_passage", "e5_query_passage"),  # a table that says so reads all alike
        ("mean", {"queries": 64}, "mean_t64", "mean"),  # has no prefixes
    ],
)
def test_evaluation_corpora_of_a_task_get_its_prefixes_where_the_readout_has_them(project, cell, lengths, queries, candidates):
    expected = {"queries": queries, "candidates": candidates}
    project = replace(project, tasks={**project.tasks, "lareqa": {**project.tasks["lareqa"], "lengths": lengths}})
    assert {role: role_readout(project, "me5_small", cell, "lareqa", role) for role in expected} == expected
    words = {role: "passage: " if "passage" in name else "query: " if "e5" in name else "" for role, name in expected.items()}
    assert {role: readout(project, name)["prefix"] for role, name in expected.items()} == words


def test_a_readout_with_another_prefix_differs_in_that_alone(project):
    own = readout(project, "e5_query")
    assert "prefixes" not in own
    assert readout(project, "e5_query_passage") == {**own, "prefix": "passage: "}
    for task in ("lareqa", "lareqa_small", "mewsli_x"):
        found = dev_readouts(project, "me5_small", {"best": {"task": task}})[task]
        assert {role: entry["prefix"] for role, entry in found.items()} == {"queries": "query: ", "candidates": "passage: "}
    assert readout_name(project, "me5_small", "tatoeba") == "e5_query"


def test_no_encoder_reads_more_than_it_was_published_to(project):
    assert readout_name(project, "labse", "sts22") == "pooler_t256"
    assert readout_name(project, "MP-labse-multi-main", "sts22") == "pooler_t256"
    assert readout_name(project, "MP-labse-multi-main", "sts22_t64") == "pooler_t64"
    assert readout_name(project, "labse", "bucc", {"length": 512}) == "pooler_t256"


def test_logistic_regression_gets_raw_vectors_but_from_encoders_that_scale_theirs(project):
    for task in ("mtop", "mtop_dev"):
        assert readout(project, readout_name(project, "MP-xlmr-multi-main", task))["normalise"] is False
        assert readout(project, readout_name(project, "labse", task))["normalise"] is True
        assert readout(project, readout_name(project, "MP-labse-multi-main", task))["normalise"] is True
    assert readout(project, readout_name(project, "xlm-r", "tatoeba"))["normalise"] is True


def test_selection_reads_as_the_evaluations_do(project):
    found = resolve(project, "MP-labse-multi-main", 42)["dev_readouts"]
    assert (found["sts22"]["test"]["max_length"], found["tatoeba"]["test"]["max_length"]) == (256, 64)
    found = resolve(project, "MP-xlmr-multi-main", 42)["dev_readouts"]
    assert (found["sts22"]["test"]["max_length"], found["mtop_dev"]["test"]["normalise"]) == (512, False)
    assert resolve(project, "MS-E", 42)["dev_readouts"]["stsb_dev"]["test"]["max_length"] == 512
    lareqa = dev_readouts(project, "xlm-r", {"best": {"task": "lareqa"}})["lareqa"]
    assert {role: entry["max_length"] for role, entry in lareqa.items()} == {"queries": 96, "candidates": 256}


@pytest.mark.parametrize(
    ("table", "row", "column", "expected"),
    [
        ("msimcse_table1", "XLM-R", "Tatoeba-36", "mean_l8"),  # as XTREME read what is printed there
        ("msimcse_table1", "XLM-R, first token", "Tatoeba-36", "cls_t32"),
        ("msimcse_table3", "XLM-R", "ar-ar", "first0_last_t32"),
        ("msimcse_table3", "XLM-R, block 1 and last", "ar-ar", "first1_last_t32"),
        ("mpcl_table1", "XLM-R Conneau et al. (2020)", "BUCC", "cls_l20"),
        ("mpcl_table1", "XLM-R Conneau et al. (2020)", "STS22", "cls"),
        ("mpcl_table5", "XLM-R", "avg", "cls_l20"),
        ("mpcl_table5", "XLM-R, first token", "avg", "cls_t64"),
        ("mpcl_table6", "XLM-R", "Tatoeba-36", "mean_l8"),
        ("mpcl_table6", "XLM-R", "de", "cls_t64"),
        ("mpcl_table1", "LaBSE Feng et al. (2020)", "MTOP", "pooler_t64"),
        ("emma_x_table2", "XLM-R", "BUCC", "cls"),
        ("emma_x_table2", "EMMA-X", "Tatoeba", "cls"),
        ("emma_x_table2", "S-BERT", "BUCC", "mean_t128"),
        ("emma_x_table1", "EMMA-X", "XNLI", "cls_t128"),  # a fine-tune reads as it was trained
        # XTREME, 838c13b: scripts/run_bucc2018.sh reads the first token at index 7 of the last 12 layers, run_tatoeba.sh the mean at
        # index 7 of 12, or 13 of 24 for XLM-R. So of 12, 16 and 24 layers:
        ("msimcse_table1", "XLM-R", "BUCC", "cls_l20"),
        ("scl_table6", "mBERT∗", "de-en", "cls_l8"),
        ("scl_table6", "XLM∗", "de-en", "cls_l12"),
        ("scl_table6", "XLM, mean", "de-en", "mean_l12"),
        ("scl_table6", "XLMR-large∗", "de-en", "cls_l20"),
        ("emma_x_table1", "mBERT*", "BUCC", "cls_l8"),
        ("emma_x_table1", "XLM*", "BUCC", "cls_l12"),
        ("emma_x_table1", "XLM-R*", "BUCC", "cls_l20"),
        ("emma_x_table1", "mBERT*", "Tatoeba", "mean_l8"),
        ("emma_x_table1", "XLM*", "Tatoeba", "mean_l12"),
        ("emma_x_table1", "XLM-R*", "Tatoeba", "mean_l14"),
        ("moco_bert_table1", "mBERT_base (Hu et al., 2020)", "Tatoeba zh-en", "mean_l8"),
        ("anchors_retrieval", "XLM-R large, mean of layer 14", "14", "mean_l14"),
    ],
)
def test_tables_and_rows_say_how_they_read(project, table, row, column, expected):
    assert reading(project, table, row, column) == expected


@pytest.mark.parametrize(
    ("table", "row", "column", "direction"),
    [
        ("mpcl_table6", "LaBSE (Reproduced)", "Tatoeba-36", "en2xx"),  # as XTREME's script searches
        ("mpcl_table6", "XLM-R", "Tatoeba-36", "xx2en"),  # as InfoXLM's paper, which is quoted
        ("mpcl_table1", "INFOXLM Chi et al. (2021)", "Tatoeba-14", "xx2en"),
        ("moco_bert_table1", "mBERT_base (Hu et al., 2020)", "Tatoeba zh-en", "en2xx"),
    ],
)
def test_a_figure_is_searched_in_the_direction_of_what_is_printed(project, table, row, column, direction):
    assert cell_of(project, table, row, column)["select"]["direction"] == direction


def test_a_column_goes_before_its_row_and_a_row_before_its_table(project):
    entry = project.tables["msimcse_table1"]
    column, row = dict(entry["columns"][1]), dict(entry["rows"][1])

    def read(table=(), row_says=(), column_says=()):
        rows, columns = [{**row, **dict(row_says)}], [{**column, **dict(column_says)}]
        tables = {**project.tables, "msimcse_table1": {**entry, **dict(table), "rows": rows, "columns": columns}}
        return reading(replace(project, tables=tables), "msimcse_table1", "XLM-R, first token", "Tatoeba-14")

    assert read() == "cls_t32"
    assert read(table={"readout": "mean"}) == "mean_t32"
    assert read(row_says={"length": 48}) == "cls_t48"
    assert read(row_says={"length": 48, "readout": "mean"}, column_says={"readout": "max"}) == "max_t48"
    assert read(row_says={"length": 48}, column_says={"length": 40}) == "cls_t40"


@pytest.mark.parametrize(("paper", "length"), [("msimcse", 32), ("mpcl", 64), ("emma_x", 512)])
def test_a_papers_tables_and_figures_are_read_alike(project, paper, length):
    entries = {**project.tables, **project.figures}
    of_paper = [name for name in entries if project.paper_of[name] == paper]
    assert len(of_paper) > 5
    assert {entries[name]["length"] for name in of_paper} == {length}
    assert all("length" not in entry for name, entry in entries.items() if project.paper_of[name] in ("scl", "moco_bert", "anchors"))


def test_a_figure_is_read_so_too(project):
    panels = figure_inputs(project, "msimcse_figure1")["inputs"]["panels"]
    assert [Path(panel["matrix"]).parent.name for panel in panels] == ["cls_t32", "cls_t32"]


LAREQA = "lengths: {queries: 96, candidates: 256}, prefixes: {queries: query,"


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("tasks.yaml", LAREQA, LAREQA.replace("queries: 96", "question: 96"), "unknown role of lareqa 'question'"),
        ("tasks.yaml", LAREQA, LAREQA.replace("queries: query", "question: query"), "unknown role of lareqa 'question'"),
        ("tasks.yaml", LAREQA, LAREQA.replace("queries: query", "queries: qeury"), "unknown prefix of a readout 'qeury'"),
        ("encoders.yaml", "  mean_t64: {", "  e5_query_passage: {", "two readouts have the name 'e5_query_passage'"),
        ("encoders.yaml", "{query: ", "{t5: ", "does not match"),  # `e5_query_t5` is `e5_query` with 5 tokens
    ],
)
def test_every_readout_role_and_prefix_that_is_named_must_exist(tmp_path, file, old, new, message):
    (tmp_path / "workflow").symlink_to(ROOT / "workflow")
    (tmp_path / "config").mkdir()
    settings = {"scale": "quick", "papers": ["anchors"], "targets": ["all"]}
    text = (CATALOG / file).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "config" / file).write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(message)):
        load_project(tmp_path, settings)
