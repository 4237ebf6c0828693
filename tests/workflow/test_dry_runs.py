"""Every target, every scale and both entries resolve; the rules are lint-free."""

import gzip
import subprocess
from pathlib import Path

import pytest

from crosslign.config.load import load_project
from crosslign.config.targets import target_files

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("scale", ["quick", "laptop", "paper"])
def test_the_default_target_has_jobs_at_every_scale(pristine, scale):
    jobs = pristine.planned(scale=scale)
    assert {"train_system", "embed", "score", "make_table", "draw_figure"} <= {rule for rule, _ in jobs}


def test_names_and_files_are_targets(pristine):
    wanted = {
        "mpcl_table1": ("make_table", "table=mpcl_table1"),
        "results/quick/tables/quickstart.md": ("make_table", "table=quickstart"),
        "results/quick/figures/quickstart_tsne.svg": ("draw_figure", "figure=quickstart_tsne"),
        "results/quick/report.html": ("write_report", "report="),
    }
    assert set(wanted.values()) <= set(pristine.planned(*wanted))


def test_a_corpus_has_no_file_of_one_of_its_languages(pristine):
    assert ("build_corpus", "corpus=bible_test") in pristine.planned("results/quick/corpora/bible_test/all.parquet")
    done = pristine.run("-n", "results/quick/corpora/bible_test/de.parquet", check=False)
    assert done.returncode == 1
    assert "MissingRuleException" in done.stdout + done.stderr


PRINTED = {
    "msimcse": (range(1, 9), [1]),
    "moco_bert": (range(1, 11), [2, 3]),
    "scl": (range(1, 8), []),
    "mpcl": ([1, 2, 5, 6, 7, 8], [1, 3, 4, 5]),
    "emma_x": ([*range(1, 13), *range(14, 20)], [2]),
}
"""Tables and figures that each paper printed; the others are diagrams, examples and prompts."""
TABLES = [f"{paper}_table{number}" for paper, (tables, _) in PRINTED.items() for number in tables]
FIGURES = [f"{paper}_figure{number}" for paper, (_, figures) in PRINTED.items() for number in figures]


def test_every_table_and_figure_of_the_five_papers_has_its_job(pristine):
    made = {name for rule, name in pristine.planned("all_tables", "all_figures") if rule in ("make_table", "draw_figure")}
    assert {f"table={table}" for table in TABLES} | {f"figure={figure}" for figure in FIGURES} <= made


@pytest.mark.parametrize("scale", ["quick", "laptop", "paper"])
def test_every_table_and_figure_of_the_five_papers_is_a_target_by_its_name(scale):
    project = load_project(ROOT, {"scale": scale, "papers": [*PRINTED], "targets": ["all"]})
    for names, folder, form in ((TABLES, "tables", "md"), (FIGURES, "figures", "png")):
        for name in names:
            assert project.paths.results / folder / f"{name}.{form}" in target_files(project, [name]), name


@pytest.mark.long
def test_a_paper_a_table_and_a_figure_are_targets_by_name(pristine):
    made = [
        {name for rule, name in pristine.planned(target) if rule in ("make_table", "draw_figure")} for target in ("mpcl", "mpcl_figure4")
    ]
    assert {"table=mpcl_table1", "figure=mpcl_figure4"} <= made[0]
    assert not any("msimcse" in name for name in made[0])
    assert made[1] == {"figure=mpcl_figure4"}


def test_the_default_run_builds_the_quick_start_alone(pristine):
    tables = {name for rule, name in pristine.planned() if rule == "make_table"}
    assert tables == {"table=quickstart", "table=quickstart_retrieval"}


METHODS = ("papers=[quickstart,five_methods]", "targets=[methods]")


@pytest.mark.parametrize("scale", ["quick", "laptop"])
def test_all_five_methods_are_one_target(pristine, scale):
    trained = {name for rule, name in pristine.planned(scale=scale, config=METHODS) if rule == "train_system"}
    assert {f"run=QM-{name}-s42" for name in ("MS-P", "MB", "SCL-t01", "CL-t01", "MVA-cos", "MP-multi", "EX-p1", "EX-p2")} <= trained
    assert not any("QS-" in name for name in trained)


def test_seeds_are_set_for_all_systems_at_once(pristine):
    jobs = pristine.planned(config=(*METHODS, "seeds=[7,8]"))
    phases = {name for rule, name in jobs if rule == "train_system" and "EX" in name}
    assert phases == {f"run=QM-EX-p{phase}-s{seed}" for phase in (1, 2) for seed in (7, 8)}


def test_the_demo_builds_none_of_them(pristine):
    assert not [name for _, name in pristine.planned(scale="laptop") if "QM-" in name or "qm_" in name]


@pytest.mark.long
def test_another_mirror_fetches_nothing_anew(untouched, tmp_path):
    mirrors = [tmp_path / "a mirror", tmp_path / "another"]
    for mirror in mirrors:
        (mirror / "news_commentary_v15").mkdir(parents=True)
        (mirror / "news_commentary_v15" / "news-commentary-v15.en-zh.tsv.gz").write_bytes(gzip.compress(mirror.name.encode()))
    target = "results/downloads/news_commentary_v15/news-commentary-v15.en-zh.tsv.gz"
    untouched.edit("config/corpora.yaml", "en-zh.tsv.gz, about_bytes: 37000000}", "en-zh.tsv.gz}")  # the size of a real one
    untouched.run(target, scale="laptop", config=[f"mirror={mirrors[0]}"])
    assert gzip.decompress((untouched.folder / target).read_bytes()) == b"a mirror"
    more = [f"mirror={[str(mirror) for mirror in reversed(mirrors)]}"]
    assert untouched.planned(target, scale="laptop", config=more) == []
    assert untouched.planned("--force", target, scale="laptop", config=more) == [("fetch", "file=news-commentary-v15.en-zh.tsv.gz")]


def test_the_catalogue_entry_has_the_same_jobs(pristine):
    assert sorted(pristine.planned("--snakefile", "workflow/Snakefile")) == sorted(pristine.planned())


def test_rules_are_lint_free(pristine):
    done = subprocess.run([pristine.python, "-m", "snakemake", "--lint"], cwd=pristine.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_scores_of_another_group_are_not_computed_anew_though_all_that_they_hang_on_is_built_here(untouched):
    """One system of the quick start is theirs, the others are trained: the corpora and encoders of all are new."""
    theirs = untouched.results / "scores" / "QS-PN-s42"
    for task in ("bucc_bible", "tatoeba_bible", "tatoeba_written", "sts_written"):
        score = theirs / "last" / "mean_t64_bf16" / f"{task}.json"
        score.parent.mkdir(parents=True, exist_ok=True)
        score.write_text("{}")
    (theirs / "origin.txt").write_text("Another group\n")
    made = {name for rule, name in untouched.planned("results/quick/tables/quickstart.md") if rule in ("train_system", "embed", "score")}
    assert "run=QS-P-s42" in made
    assert "run=QS-PN-s42" not in made


def test_a_tuned_system_is_trained_after_its_trials_which_are_jobs_of_their_own(pristine):
    jobs = pristine.planned(config=("papers=[contest]", "targets=[contest_tuned]"))
    trials = {f"run=CT-MB-tuned-t{number}-s1" for number in range(1, 7)}
    trained = {name for rule, name in jobs if rule == "train_system"}
    assert trials | {"run=CT-MB-tuned-s42", "run=CT-MB-tuned-s43"} <= trained
    assert ("choose", "system=CT-MB-tuned") in jobs
    assert not {name for rule, name in jobs if rule == "embed"} & trials  # no table shows them
