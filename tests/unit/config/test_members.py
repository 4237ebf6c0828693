"""A system with an encoder for each of a few languages: text in another one is a reason, found before anything runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from crosslign.config.cells import resolve_table
from crosslign.config.checkpoints import check_checkpoints
from crosslign.config.figures import figure_inputs
from crosslign.config.load import load_project
from crosslign.config.members import reads, text_languages, why_unread
from crosslign.config.resolve import encoders_under
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
OWN = "the system has an encoder each for en, zh, none for "


@pytest.fixture(scope="module")
def loaded():
    return load_project(ROOT, {"scale": "quick", "papers": ["moco_bert", "emma_x"], "results": "results"})


def test_members_are_those_of_the_encoders_that_a_system_stands_on(loaded):
    assert list(encoders_under(loaded, "labse")) == ["main"]
    assert list(encoders_under(loaded, "labse+xnli_all")) == ["main"]
    assert list(encoders_under(loaded, "EX-p2-gmm4+xnli_all")) == ["main"]
    assert sorted(encoders_under(loaded, "MB-main")) == ["en", "zh"]
    assert sorted(encoders_under(loaded, "MB-main+xnli_all")) == ["en", "zh"]


def test_a_language_is_read_under_each_of_its_codes_and_by_a_member_for_all():
    assert reads(["en", "zh"], "cmn")
    assert reads(["en", "zh"], "zh-CN")
    assert not reads(["en", "zh"], "de")
    assert reads(["en", "other"], "de")
    assert reads(["main"], "de")


@pytest.mark.parametrize(
    ("corpus", "langs"),
    [
        ("tatoeba_zh", {"en", "zh"}),
        ("sts12", {"en"}),
        ("bucc2018_sample", {"de", "en", "fr", "ru", "zh"}),
        ("sts17_mteb", {"ar", "de", "en", "es", "fr", "it", "ko", "nl", "tr"}),
        ("flores200_all", set()),
    ],
)
def test_languages_of_a_text_set_are_those_that_its_entry_names(loaded, corpus, langs):
    assert text_languages(loaded, corpus) == langs


def test_a_union_whose_parts_do_not_all_name_theirs_names_none(loaded):
    union = {"kind": "evaluation", "langs": [], "of": ["sts12", "bucc2018_sample_zh"]}
    project = replace(loaded, corpora={**loaded.corpora, "u": union, "v": {**union, "of": ["sts12", "flores200_all"]}})
    assert text_languages(project, "u") == {"en", "zh"}
    assert text_languages(project, "v") == set()


@pytest.mark.parametrize(
    ("task", "more", "reason"),
    [
        ("bucc", {"subset": "avg", "metric": "f1", "protocol": "xtreme"}, OWN + "de, fr, ru"),
        ("sts17_mteb", {"subset": "all", "metric": "spearman"}, OWN + "ar, de, es, fr, it and 3 more"),
        ("tatoeba", {"subset": "all", "metric": "accuracy", "direction": "xx2en"}, OWN + "the other languages of tatoeba"),
        ("tatoeba_zh", {"subset": "cmn", "metric": "accuracy", "direction": "xx2en"}, ""),
        ("sts12", {"subset": "all", "metric": "spearman"}, ""),
    ],
)
def test_a_cell_in_a_language_without_member_is_a_reason_and_drops_its_system_alone(loaded, task, more, reason):
    column = {"label": "x", "task": task, **more}
    rows = [{"label": "ours", "system": "MB-main"}, {"label": "LaBSE", "system": "labse"}]
    project = replace(
        loaded, tables={"t": {"title": "T", "columns": [column], "rows": rows}}, paper_of={**loaded.paper_of, "t": "moco_bert"}
    )
    [own], [other] = resolve_table(project, "t")["cells"]
    assert own.get("reason", "") == reason
    assert ("scores" in own) == (not reason)
    assert "scores" in other


def test_an_average_over_one_is_told_the_same_part_by_part(loaded):
    parts = [{"task": task, "subset": "all", "metric": "spearman"} for task in ("sts12", "sts17_mteb")]
    table = {"title": "T", "columns": [{"label": "x", "mean_of": parts}], "rows": [{"label": "ours", "system": "MB-main"}]}
    project = replace(loaded, tables={"t": table}, paper_of={**loaded.paper_of, "t": "moco_bert"})
    [[cell]] = resolve_table(project, "t")["cells"]
    assert ["scores" in part for part in cell["parts"]] == [True, False]


def test_a_figure_is_drawn_without_a_system_that_cannot_read_its_text(loaded):
    figure = {"kind": "tsne", "title": "F", "from": ["MB-main", "labse"], "text_set": "xnli_translations"}
    project = replace(loaded, figures={"f": figure}, paper_of={**loaded.paper_of, "f": "moco_bert"})
    own, other = figure_inputs(project, "f")["inputs"]["panels"]
    assert own["reason"] == OWN + "de, es, fr, ru"
    assert "matrix" in other


def test_a_selection_that_no_look_could_make_is_refused(loaded):
    select = {"best": {"task": "bucc_sample", "subset": "avg", "metric": "f1", "protocol": "sample_oracle", "every": 4}}
    systems = {**loaded.systems, "X": {"like": "MB-main", "select": select}}
    project = replace(loaded, systems=systems, paper_of={**loaded.paper_of, "X": "moco_bert"})
    with pytest.raises(InputError, match=r"systems\.X\.select\.best\.task: X .*bucc_sample.*en, zh.*de, fr, ru"):
        check_checkpoints(project, {})


def test_scores_that_are_there_are_shown(loaded, tmp_path):
    project = load_project(ROOT, {"scale": "quick", "papers": ["moco_bert"], "results": str(tmp_path)})
    column = {"label": "x", "task": "bucc", "subset": "zh-en", "metric": "f1", "protocol": "xtreme"}
    table = {"title": "T", "columns": [column], "rows": [{"label": "ours", "system": "MB-main"}]}
    project = replace(project, tables={"t": table}, paper_of={**project.paper_of, "t": "moco_bert"})
    assert why_unread(project, "MB-main", ["bucc2018_sample"])
    for seed in (42, 43):
        path = project.paths.score(f"MB-main-s{seed}", "last", "mean_t128", "bucc")
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    assert "scores" in resolve_table(project, "t")["cells"][0][0]
