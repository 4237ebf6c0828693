"""Profiles resolve from the root and plan the same jobs; the plan of a run opens it."""

import shutil
import subprocess
import sys

import pytest
from project_copy import ROOT

SMALL = ["scale=quick", "papers=[moco_bert]", "targets=[moco_bert_table5]"]


@pytest.mark.parametrize("profile", ["slurm", "profiles/workstation", "profiles/ci"])
def test_a_profile_resolves_from_the_root(untouched, profile):
    shutil.copytree(ROOT / "slurm", untouched.folder / "slurm")
    command = [sys.executable, "-m", "snakemake", "-n", "--cores", "all", "--profile", profile, "--config", *SMALL]
    done = subprocess.run(command, cwd=untouched.folder, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    assert said.count(": Training MB-") == 2
