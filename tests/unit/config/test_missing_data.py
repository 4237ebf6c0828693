"""Data that cannot be had drops the systems and evaluations that need it, and nothing else."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from crosslign.config.cells import resolve_table, table_scores
from crosslign.config.figures import figure_inputs
from crosslign.config.load import load_project
from crosslign.config.overlap import overlap_inputs
from crosslign.config.uses import require_own_files
from crosslign.errors import InputError
from crosslign.paths import own_runs

ROOT = Path(__file__).resolve().parents[3]
ASKED_FOR = ("neu2017.zip", "casia2015.zip", "casict2015.zip")


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Read MoCo-BERT's file in an empty folder, with CWMT as files of one's own; `scale` and other settings as given."""
    monkeypatch.chdir(tmp_path)

    def project(scale="paper", **settings):
        given = {"scale": scale, "papers": ["moco_bert", "emma_x"], "targets": ["moco_bert"], "results": str(tmp_path / "results")}
        read = load_project(ROOT, {**given, **settings})
        files = [{"name": name} for name in ASKED_FOR]
        read.sources["cwmt"] = {**{key: read.sources["cwmt"][key] for key in ("stand_in", "licence")}, "local": "data/cwmt", "files": files}
        for name in ("neu2017", "casia2015", "casict2015"):
            corpus = f"cwmt_{name}_en-zh"
            read.corpora[corpus] = {**read.corpora[corpus], "access": "manual"}
        return read

    return project


def by_label(project, table):
    """The first cell of each row of a table, by its label."""
    resolved = resolve_table(project, table)
    return {row["label"]: cells[0] for row, cells in zip(resolved["rows"], resolved["cells"], strict=True)}


def put(folder, names=ASKED_FOR):
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text("text\n")


def test_a_system_without_its_training_text_is_a_reason_and_the_others_run(load):
    cells = by_label(load(), "moco_bert_table1")
    assert cells["MoCo-BERT_base (zh→en)"] == {"reason": f"cwmt must be fetched by hand: put {', '.join(ASKED_FOR)} into data/cwmt"}
    assert "scores" in cells["mBERT_base (Hu et al., 2020)"]


@pytest.mark.parametrize("folder", ["data/cwmt", "results/downloads/cwmt", "mirror/cwmt"])
def test_it_runs_once_the_files_lie_where_fetching_looks(load, tmp_path, folder):
    put(tmp_path / folder)
    assert "scores" in by_label(load(mirror=str(tmp_path / "mirror")), "moco_bert_table1")["MoCo-BERT_base (zh→en)"]


def test_only_the_files_that_lack_are_named(load, tmp_path):
    put(tmp_path / "data" / "cwmt", ASKED_FOR[:2])
    cell = by_label(load(), "moco_bert_table1")["MoCo-BERT_base (zh→en)"]
    assert cell == {"reason": "cwmt must be fetched by hand: put casict2015.zip into data/cwmt"}


def test_files_of_ones_own_that_are_to_be_fetched_are_there_or_named(load, tmp_path):
    wanted = [("cwmt", name) for name in ASKED_FOR]
    wanted += [("social_iqa", "socialiqa-train-dev.zip")]
    with pytest.raises(InputError, match=r"cwmt\.local: 3.*data/cwmt/casia2015\.zip,.*`access: manual`"):
        require_own_files(load(), wanted)
    put(tmp_path / "data" / "cwmt", ASKED_FOR[:1])
    put(tmp_path / "results" / "downloads" / "cwmt", ASKED_FOR[1:])
    require_own_files(load(mirror=str(tmp_path / "mirror")), wanted)
    (tmp_path / "data" / "cwmt" / ASKED_FOR[0]).unlink()
    (tmp_path / "data" / "cwmt" / ASKED_FOR[0]).mkdir()
    with pytest.raises(InputError, match=rf"cwmt\.local: [^;]*; data/cwmt/{ASKED_FOR[0]}\."):
        require_own_files(load(), wanted)


def test_stand_ins_need_nothing(load):
    assert "scores" in by_label(load("quick"), "moco_bert_table1")["MoCo-BERT_base (zh→en)"]


def test_scores_that_are_there_are_shown_without_the_data(load):
    project = load()
    score = project.paths.score("MB-main-s42", "last", "mean_t128", "tatoeba_zh")
    score.parent.mkdir(parents=True)
    score.write_text("{}")
    shown = by_label(project, "moco_bert_table1")["MoCo-BERT_base (zh→en)"]
    assert shown["scores"] == [score.relative_to(project.paths.results).as_posix()]


def test_an_evaluation_set_made_of_text_that_lacks_is_a_reason(load):
    assert "cwmt" in by_label(load(), "moco_bert_table10")["MoCo-BERT"]["reason"]


def test_a_fine_tune_without_its_text_is_a_reason(load, monkeypatch):
    project = load()
    for corpus in ("multiarc_train", "mewsli_x_train"):
        monkeypatch.setitem(project.corpora[corpus], "access", "withdrawn")
    resolved = resolve_table(project, "emma_x_table1")
    row = dict(zip((column["label"] for column in resolved["columns"]), resolved["cells"][-1], strict=True))
    assert row["Mewsli-X"] == {"reason": "mewsli_x was withdrawn by its provider"}
    assert row["MultiARC"] == {"reason": "multiarc was withdrawn by its provider"}
    assert "scores" in row["PAWS-X"]


def test_counts_of_a_mixture_need_all_its_corpora(load):
    resolved = resolve_table(load(), "moco_bert_table7")
    assert "scores" in resolved["cells"][0][0]
    assert "cwmt must be fetched by hand" in resolved["cells"][0][1]["reason"]


def test_figures_leave_out_the_systems_and_declare_nothing_of_them(load):
    project = load()
    alone = figure_inputs(project, "moco_bert_figure3")
    assert alone["declared"] == []
    assert [set(panel) for panel in alone["inputs"]["panels"]] == [{"label", "reason"}]
    bars = figure_inputs(project, "moco_bert_figure2")
    assert bars["declared"] == []
    assert all("cwmt" in cell["reason"] for panel in bars["inputs"]["panels"] for cell in panel["cells"])


def test_the_overlap_asks_for_nothing_that_lacks(load):
    inputs = overlap_inputs(load())
    assert not any("cwmt" in name for part in inputs.values() for name in part)


@pytest.mark.parametrize("place", ["", "labse", "labse/base", "labse/base/pooler_t256"])
def test_what_another_group_did_not_send_is_a_reason_and_nothing_is_computed_into_its_folder(load, place):
    project = load("quick")
    score = project.paths.score("labse", "base", "pooler_t256", "bucc_moco")
    score.parent.mkdir(parents=True)
    (project.paths.results / "scores" / place / "origin.txt").write_text("Another group\n")
    rule = re.compile(rf"(?P<run>{own_runs(project.paths.results)})/(?P<rest>.*)")
    below = score.relative_to(project.paths.results / "scores").as_posix()
    assert rule.fullmatch(below) is None
    assert (rule.fullmatch("labse-2/base/pooler_t256/bucc_moco.json") is None) == (not place)
    asked = by_label(project, "moco_bert_table2")["LaBSE (Feng et al., 2020)"]
    assert asked == {"reason": f"not among the scores of another group in {Path('scores', place)}"}
    score.write_text("{}")
    later = replace(project)  # remembers nothing of what was there
    assert "scores" in by_label(later, "moco_bert_table2")["LaBSE (Feng et al., 2020)"]
    assert table_scores(later, "moco_bert_table2")


def test_without_scores_of_others_all_are_computed_here(load):
    assert own_runs(load().paths.results) == "[^/]+"
