"""Every target, every scale and both entries resolve; the rules are lint-free."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("scale", ["quick", "laptop", "paper"])
def test_the_default_target_has_jobs_at_every_scale(untouched, scale):
    jobs = untouched.planned(scale=scale)
    assert {"train_system", "embed", "score", "make_table", "draw_figure"} <= {rule for rule, _ in jobs}


@pytest.mark.parametrize(
    "target",
    [
        "all_tables",
        "all_figures",
        "results/quick/tables/quickstart.md",
        "results/quick/figures/quickstart_tsne.svg",
        "results/quick/report.html",
    ],
)
def test_named_targets_have_jobs(untouched, target):
    assert untouched.planned(target)


def test_the_catalogue_entry_has_the_same_jobs(untouched):
    assert sorted(untouched.planned("--snakefile", "workflow/Snakefile")) == sorted(untouched.planned())


def test_rules_are_lint_free(untouched):
    done = subprocess.run([sys.executable, "-m", "snakemake", "--lint"], cwd=untouched.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
