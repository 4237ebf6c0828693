"""A scheduler that refuses; what a real Slurm does is in tests/cluster."""

from __future__ import annotations

import importlib.util
import shutil

import pytest
from mini_project import ROOT, Mini
from ruamel.yaml import YAML


def test_f29_only_jobs_that_may_end_better_are_tried_again():
    profile = YAML(typ="safe").load((ROOT / "slurm" / "config.yaml").read_text(encoding="utf-8"))
    assert 1 <= profile["retries"] <= 3
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    assert "retries:" not in rules


@pytest.mark.workflow
@pytest.mark.skipif(importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="the Slurm plugin is not installed")
def test_f29_a_submission_that_is_refused_is_said_and_leaves_nothing(tmp_path):
    mini = Mini(tmp_path / "mini")
    shutil.copytree(ROOT / "slurm", mini.folder / "slurm")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sbatch", "squeue", "sacct", "scancel", "sinfo"):
        (programs / name).write_text("#!/bin/sh\necho 'sbatch: error: Batch job submission failed: Invalid account' >&2\nexit 1\n")
        (programs / name).chmod(0o755)
    import os

    command = ["--profile", "slurm", "--executor", "slurm", "--configfile", "config/config.yaml", "--retries", "0"]
    done = mini.run(*command, check=False, PATH=f"{programs}:{os.environ['PATH']}")
    assert done.returncode != 0
    assert "Invalid account" in done.stdout
    assert not (mini.results / "tables").exists()
    assert mini.leftovers() == []
