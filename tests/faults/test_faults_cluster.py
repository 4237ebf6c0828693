"""A scheduler that refuses; what a real Slurm does is in tests/cluster."""

from __future__ import annotations

import importlib.util
import os
import shutil

import pytest
from mini_project import ROOT, Mini
from ruamel.yaml import YAML


def test_f29_only_jobs_that_may_end_better_are_tried_again():
    profile = YAML(typ="safe").load((ROOT / "slurm" / "config.yaml").read_text(encoding="utf-8"))
    assert 1 <= profile["retries"] <= 3
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    assert "retries:" not in rules


def slurm_of_scripts(folder, refusing):
    """Write Slurm's commands as scripts; those in `refusing` refuse, the others say nothing and succeed."""
    folder.mkdir()
    for name in ("sbatch", "squeue", "sacct", "scancel", "sinfo"):
        refuse = "echo 'sbatch: error: Batch job submission failed: Invalid account' >&2\nexit 1\n"
        (folder / name).write_text("#!/bin/sh\n" + refusing.get(name, "").replace("REFUSE", refuse))
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def submitted(tmp_path, refusing):
    mini = Mini(tmp_path / "mini")
    shutil.copytree(ROOT / "slurm", mini.folder / "slurm")
    command = ["--profile", "slurm", "--executor", "slurm", "--configfile", "config/config.yaml", "--retries", "0", "--latency-wait", "2"]
    done = mini.run(*command, check=False, PATH=slurm_of_scripts(tmp_path / "bin", refusing))
    assert done.returncode != 0
    assert "Invalid account" in done.stdout
    assert not (mini.results / "tables").exists()
    assert mini.leftovers() == []
    return done.stdout


@pytest.mark.workflow
@pytest.mark.skipif(importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="the Slurm plugin is not installed")
@pytest.mark.parametrize("refuser", ["sinfo", "sbatch"])
def test_f29_a_scheduler_that_takes_no_jobs_is_said_before_the_first(tmp_path, refuser):
    said = submitted(tmp_path, {refuser: "REFUSE"})
    assert "Slurm takes no jobs of this run" in said
    assert "slurm/local.yaml" in said
    assert "Finished jobid" not in said


@pytest.mark.workflow
@pytest.mark.skipif(importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="the Slurm plugin is not installed")
def test_f29_submissions_that_are_refused_later_are_said_and_leave_nothing(tmp_path):
    later = 'case "$*" in *--test-only*) exit 0;; esac\nREFUSE'
    said = submitted(tmp_path, {"sbatch": later, "sinfo": 'case "$*" in *noheader*) exit 0;; esac\nREFUSE'})
    assert "Slurm takes no jobs of this run" not in said
    assert "Finished jobid" in said
