"""Which folder commands read: the one that they are given, else the one that the configuration names."""

import re
from pathlib import Path

import pytest

from crosslign.cli.main import main
from crosslign.files import write_json
from crosslign.files.lineage import Lineage
from crosslign.tasks.records import Record
from crosslign.tasks.score import write_scores

ROOT = Path(__file__).parents[3]
RUN = "QS-P-s42"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose results lie elsewhere: a corpus, what a job took, and a trained run's card."""
    config = tmp_path / "config"
    config.mkdir()
    for path in (*(ROOT / "config").iterdir(), ROOT / "workflow"):
        (tmp_path / path.relative_to(ROOT)).symlink_to(path)
    (config / "config.yaml").unlink()
    (config / "config.yaml").write_text("scale: quick\nresults: elsewhere\n", encoding="utf-8")
    results = tmp_path / "elsewhere" / "quick"
    for name, text in (("corpora/c.parquet", "rows"), ("benchmarks/score/a.tsv", "s\tmax_rss\n40.0\t512.0\n")):
        (results / name).parent.mkdir(parents=True)
        (results / name).write_text(text, encoding="utf-8")
    Lineage("build_corpus", {}, [], results).write(results / "corpora/c.parquet", "corpus")
    write_json(results / "systems" / RUN / "last" / "main" / "config.json", {})
    recipe = {"system": "QS-P", "run_id": RUN, "seed": 42, "paper": "msimcse", "base": {"members": {"main": "m"}}, "parts": {}, "terms": []}
    recipe |= {"train": {"steps": 1}, "select": {}, "readout": {"pooling": "mean"}}
    Lineage("train_system", recipe, [], results).write(results / "systems" / RUN, "system")
    score = results / "scores" / RUN / "last" / "mean" / "task.json"
    write_json(score, {"records": []})
    Lineage("score", {}, [], results).write(score, "scores")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "said"), [(["verify"], "all results are complete and undamaged"), (["status"], "score"), (["card", RUN], RUN)]
)
def test_without_a_folder_commands_read_the_one_of_the_configuration(project, capsys, command, said):
    assert main(command) == 0
    assert said in capsys.readouterr().out


def test_a_folder_given_by_config_or_by_name_goes_before(project, capsys):
    (project / "elsewhere").rename(project / "moved")
    assert main(["status", "--config", "results=moved"]) == 0
    assert main(["verify", "moved/quick"]) == 0
    assert main(["card", RUN, "--results", "moved/quick"]) == 0
    assert main(["card", RUN]) == 2
    assert "elsewhere/quick" in capsys.readouterr().err


def test_scores_are_written_for_mteb_from_any_folder(project, capsys, monkeypatch):
    monkeypatch.chdir(project.parent)
    for folder, said in (("quick", "no score of a task of MTEB"), ("quack", "elsewhere/quack: no scores here")):
        assert main(["mteb", str(project / "elsewhere" / folder), "out", "--directory", str(project)]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("scale", ["quick", "laptop"])
def test_only_scores_of_all_of_a_test_are_written_for_mteb(project, capsys, scale):
    where = {"run_id": RUN, "system": "QS-P", "seed": 42, "checkpoint": "last", "readout": "mean", "profile": scale, "pooling": "mean"}
    where |= {"layer": -1, "max_length": 9, "checkpoint_sha": "abc", "code_version": "c", "data_manifest_sha": "d"}
    score = project / "elsewhere" / "quick" / "scores" / RUN / "last" / "mean" / "sts17_mteb.json"
    write_scores(score, {**where, "task": "sts17_mteb"}, [Record("sts17_mteb", "es-es", "spearman", 0.8, 250, main=True)])
    Lineage("score", {}, [], score).write(score, "scores")
    assert main(["mteb", "elsewhere/quick", "out"]) == (2 if scale == "quick" else 0)
    said = "these scores are not on MTEB's items; scale quick uses synthetic data, or a part of each test"
    assert (said in capsys.readouterr().err) == (scale == "quick") != (project / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["QS-P-s43"], "no trained run 'QS-P-s43' here.*did you mean 'QS-P-s42'"),
        ([RUN, "--checkpoint", "lst"], "no checkpoint 'lst' here.*'last'"),
    ],
)
def test_a_card_of_a_run_or_checkpoint_that_is_not_there_names_the_nearest(project, capsys, arguments, said):
    assert main(["card", *arguments]) == 2
    assert re.search(said, capsys.readouterr().err)


def test_to_discard_and_to_settle_exclude_each_other(project, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["verify", "--discard", "--settle"])
    assert ended.value.code == 2
    assert "not allowed with" in capsys.readouterr().err
