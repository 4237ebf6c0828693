"""A scheduler that refuses; what a real Slurm does is in tests/cluster."""

from __future__ import annotations

import importlib.util
import os
import shutil

import pytest
from mini_project import ROOT, Mini
from ruamel.yaml import YAML


def test_f29_a_failed_job_is_tried_again_at_most_three_times():
    """Whatever it failed of: the engine knows no exit codes. A job that its input fails ends in seconds, each time."""
    profile = YAML(typ="safe").load((ROOT / "slurm" / "config.yaml").read_text(encoding="utf-8"))
    assert 1 <= profile["retries"] <= 3
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    assert "retries:" not in rules


def slurm_of_scripts(folder, refusing):
    """Write Slurm's commands as scripts; those in `refusing` refuse, the others say nothing and succeed."""
    folder.mkdir()
    for name in {"sbatch", "squeue", "sacct", "scancel", "sinfo", *refusing}:
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


SBATCH = """\
echo "$*" >> "$0.calls"
case "$*" in *--test-only*) exit 0;; esac
id=$(($(ls "$0".state.* 2>/dev/null | wc -l) + 1))
for word in "$@"; do case "$word" in --wrap=*) wrap=${word#--wrap=};; esac; done
echo RUNNING > "$0.state.$id"
(
    if SLURM_JOB_ID=$id sh -c "$wrap" > "$0.log.$id" 2>&1; then echo COMPLETED; else echo FAILED; fi > "$0.new.$id"
    mv "$0.new.$id" "$0.state.$id"
) > /dev/null 2>&1 &
echo $id
"""
SRUN = 'while case "$1" in -*) true;; *) false;; esac; do shift; done\nexec "$@"\n'
SQUEUE = """\
echo "$*" >> "$0.calls"
[ $(wc -l < "$0.calls") -gt 2 ] || exit 1
for file in "$(dirname "$0")"/sbatch.state.*; do echo "${file##*.}|$(cat "$file")"; done
"""


@pytest.mark.workflow
@pytest.mark.skipif(importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="the Slurm plugin is not installed")
def test_f29_jobs_are_asked_after_until_slurm_answers(tmp_path):
    mini = Mini(tmp_path / "mini")
    shutil.copytree(ROOT / "slurm", mini.folder / "slurm")
    (mini.folder / "slurm" / "local.yaml").write_text(
        "slurm-init-seconds-before-status-checks: 1\nslurm-status-attempts: 1\nlatency-wait: 2\n"
    )
    age = "echo 'MinJobAge = 7200 sec'\n"
    path = slurm_of_scripts(tmp_path / "bin", {"sbatch": SBATCH, "srun": SRUN, "squeue": SQUEUE, "scontrol": age})
    target = "results/mini/corpora/written_nli/all.parquet"
    done = mini.run(target, "--profile", "slurm", "--configfile", "config/config.yaml", PATH=path)
    assert (mini.folder / target).exists()
    assert "Slurm does not answer" in done.stdout
    asked = (tmp_path / "bin" / "sbatch.calls").read_text().splitlines()
    assert len(asked) == 2
    assert "--test-only" in asked[0]
    assert all("--nodes=1" in call for call in asked)
