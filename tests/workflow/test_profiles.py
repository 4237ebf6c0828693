"""Profiles resolve from the root and plan the same jobs; the plan of a run opens it."""

import os
import re
import shutil
import subprocess

import pytest
from project_copy import ROOT
from ruamel.yaml import YAML

SMALL = ["scale=quick", "papers=[moco_bert]", "targets=[moco_bert_table5]"]


@pytest.mark.parametrize("profile", ["slurm", "profiles/workstation", "profiles/ci"])
def test_a_profile_resolves_from_the_root(untouched, profile):
    shutil.copytree(ROOT / "slurm", untouched.folder / "slurm")
    command = [untouched.python, "-m", "snakemake", "-n", "--cores", "all", "--profile", profile, "--config", *SMALL]
    done = subprocess.run(command, cwd=untouched.folder, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    assert said.count(": Training MB-") == 2


def test_a_plan_is_not_of_the_profile_that_the_shell_names(untouched):
    (untouched.folder / "mine").mkdir()
    (untouched.folder / "mine" / "config.yaml").write_text("configfile: mine/other.yaml\n")
    (untouched.folder / "mine" / "other.yaml").write_text("targets: [no_such_target]\n")
    command = [untouched.python, "-c", "import sys; from crosslign.cli.main import main; sys.exit(main())", "plan", "--config", SMALL[0]]
    environment = {**os.environ, "SNAKEMAKE_PROFILE": "mine"}
    done = subprocess.run(command, cwd=untouched.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "train_system" in done.stdout


@pytest.fixture(scope="module")
def slurm():
    return YAML(typ="safe").load((ROOT / "slurm" / "config.yaml").read_text(encoding="utf-8"))


def test_the_gpus_of_a_job_are_those_of_one_node(slurm):
    assert slurm["default-resources"]["nodes"] == 1


def test_scores_trainings_and_what_they_wait_for_have_priorities():
    rules = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")))
    assert set(re.findall(r'(?m)^    priority: priority_of\("(\w+)"\)$', rules)) == {
        "score", "train_system", "tokenise", "build_examples", "build_view",
    }  # fmt: skip
