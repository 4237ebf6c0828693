"""A scheduler that refuses; what a real Slurm does is in tests/cluster."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from pathlib import Path

import pytest
from mini_project import Mini
from project_copy import ROOT
from ruamel.yaml import YAML


def test_f29_failed_jobs_are_tried_again_by_the_profile_at_most_three_times():
    profile = YAML(typ="safe").load((ROOT / "slurm" / "config.yaml").read_text(encoding="utf-8"))
    assert 1 <= profile["retries"] <= 3
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    assert "retries:" not in rules


def slurm_of_scripts(folder, refusing, without=()):
    """Write Slurm's commands as scripts; those in `refusing` refuse, the others say nothing and succeed."""
    folder.mkdir()
    for name in {"sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", *refusing}.difference(without):
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
    assert "Slurm rejects jobs of this run" in said
    assert "slurm/local.yaml" in said
    assert "jobs done" not in said


@pytest.mark.workflow
@pytest.mark.skipif(importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="the Slurm plugin is not installed")
def test_f29_submissions_that_are_refused_later_are_said_and_leave_nothing(tmp_path):
    later = 'case "$*" in *--test-only*) exit 0;; esac\nREFUSE'
    said = submitted(tmp_path, {"sbatch": later, "sinfo": 'case "$*" in *noheader*) exit 0;; esac\nREFUSE'})
    assert "Slurm rejects jobs of this run" not in said
    assert re.search(r"\[[1-9]\d* of \d+ jobs done", said)


SBATCH = """\
echo "$*" >> "$0.calls"
case "$*" in *--test-only*) exit 0;; esac
[ $(wc -l < "$0.calls") -gt BUSY ] || { echo "sbatch: error: Batch job submission failed: WORDS" >&2; exit 1; }
id=$(($(ls "$0".state.* 2>/dev/null | wc -l) + 1))
for word in "$@"; do case "$word" in --wrap=*) wrap=${word#--wrap=};; esac; done
echo RUNNING > "$0.state.$id"
(
    if FATE && SLURM_JOB_ID=$id sh -c "$wrap" > "$0.log.$id" 2>&1; then echo COMPLETED; else echo FAILED; fi > "$0.new.$id"
    mv "$0.new.$id" "$0.state.$id"
) > /dev/null 2>&1 &
echo $id
"""
SRUN = 'while case "$1" in -*) true;; *) false;; esac; do shift; done\nexec "$@"\n'
SQUEUE = """\
echo "$*" >> "$0.calls"
[ $(wc -l < "$0.calls") -gt SILENT ] || exit 1
for file in "$(dirname "$0")"/sbatch.state.*; do echo "${file##*.}|$(cat "$file")"; done
"""
FORGETFUL = SQUEUE.replace("done", "done | grep RUNNING || true", 1)
SCONTROL = "echo 'MinJobAge = AGE sec'\n"
ACCOUNTING = ("sacct", "sacctmgr", "sshare")
CORPUS = "results/mini/corpora/written_nli/all.parquet"


@pytest.fixture
def mini(tmp_path):
    made = Mini(tmp_path / "mini")
    shutil.copytree(ROOT / "slurm", made.folder / "slurm")
    own = "slurm-init-seconds-before-status-checks: 1\nslurm-status-attempts: 1\nlatency-wait: 2\n"
    (made.folder / "slurm" / "local.yaml").write_text(own)
    return made


def corpus_by_slurm(mini, fate="true", silent=0, busy=0, words="", age=7200, path="", without=(), **scripts):
    """Build a corpus by a Slurm whose jobs meet a `fate` first; return what was said and asked.

    `squeue` is silent so many times; `sbatch` refuses so many jobs with these words; ended jobs are said to be forgotten at an `age` in
    seconds; `path` stands for the machine's own commands.
    """
    folder = mini.folder.parent / "bin"
    given = {"silent": silent, "busy": busy + 1, "words": words, "fate": fate, "age": age}
    scripts = {"sbatch": SBATCH, "squeue": SQUEUE, "srun": SRUN, "scontrol": SCONTROL, **scripts}
    for name, value in given.items():
        scripts = {command: script.replace(name.upper(), str(value)) for command, script in scripts.items()}
    found = slurm_of_scripts(folder, scripts, without)
    found = f"{folder}:{path}" if path else found
    done = mini.run(CORPUS, "--profile", "slurm", "--configfile", "config/config.yaml", check=False, PATH=found)
    first, *asked = (folder / "sbatch.calls").read_text().splitlines()
    assert "--test-only" in first
    return done, asked


@pytest.mark.workflow
@pytest.mark.skipif(importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="the Slurm plugin is not installed")
def test_f29_jobs_are_asked_after_until_slurm_answers(mini):
    done, asked = corpus_by_slurm(mini, silent=2)
    assert (mini.folder / CORPUS).exists()
    assert "Slurm does not answer" in done.stdout
    assert len(asked) == 1
    assert "--nodes=1" in asked[0]


@pytest.mark.workflow
@pytest.mark.skipif(importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="the Slurm plugin is not installed")
@pytest.mark.parametrize("words", ["Unable to contact slurm controller (connect failure)", "AssocMaxSubmitJobLimit"])
def test_f29_a_job_that_slurm_would_take_later_is_submitted_later_in_the_same_try(mini, words):
    done, asked = corpus_by_slurm(mini, busy=2, words=words)
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.count("Slurm accepts no jobs at present") == 1
    assert len(asked) == 3
    assert len({re.search(r"--mem[ =](\d+)", call)[1] for call in asked}) == 1


@pytest.mark.workflow
@pytest.mark.skipif(importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="the Slurm plugin is not installed")
def test_f29_a_slurm_without_accounting_that_soon_forgets_jobs_runs_them(mini):
    off = "echo 'Slurm accounting storage is disabled' >&2; exit 1\n"
    with open(mini.folder / "slurm" / "local.yaml", "a", encoding="utf-8") as file:
        file.write("default-resources: {slurm_account: mine}\n")
    done, asked = corpus_by_slurm(mini, age=1, squeue=FORGETFUL, sacct=off, sacctmgr=off, sshare=off)
    assert done.returncode == 0, done.stdout[-3000:]
    assert len(asked) == 1
    assert " -A mine " in asked[0]


@pytest.mark.workflow
@pytest.mark.skipif(importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="the Slurm plugin is not installed")
def test_f29_a_slurm_that_lacks_the_commands_of_accounting_runs_jobs(mini, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for folder in os.environ["PATH"].split(":"):
        for command in Path(folder).glob("*"):
            if command.name not in ACCOUNTING and not (bare / command.name).is_symlink():
                (bare / command.name).symlink_to(command)
    done, asked = corpus_by_slurm(mini, path=str(bare), without=ACCOUNTING)
    assert done.returncode == 0, done.stdout[-3000:]
    assert len(asked) == 1


@pytest.mark.workflow
@pytest.mark.skipif(importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="the Slurm plugin is not installed")
def test_f29_what_the_executor_refuses_is_said_before_the_first_job(mini):
    with open(mini.folder / "slurm" / "local.yaml", "a", encoding="utf-8") as file:
        file.write("default-resources: {slurm_extra: \"'--mem=9'\"}\n")
    done, asked = corpus_by_slurm(mini)
    assert done.returncode != 0
    told = done.stdout.split("error: the executor rejects jobs of build_corpus")[1]
    assert "memory" in told
    assert "slurm/local.yaml" in told
    assert "jobs done" not in done.stdout
    assert asked == []


@pytest.mark.workflow
@pytest.mark.skipif(importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="the Slurm plugin is not installed")
def test_f29_a_job_that_is_lost_is_tried_again_with_more(mini):
    done, asked = corpus_by_slurm(mini, fate="[ $id -gt 1 ]")
    assert done.returncode == 0, done.stdout[-3000:]
    assert len(asked) == 2
    first, second = (int(re.search(r"--mem[ =](\d+)", call)[1]) for call in asked)
    assert second > first


@pytest.mark.workflow
@pytest.mark.skipif(importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="the Slurm plugin is not installed")
def test_f29_a_job_whose_input_is_wrong_is_not_tried_again_and_its_log_is_named(mini):
    (mini.folder / "resources" / "written" / "nli_en.tsv").write_text("one column\n")
    done, asked = corpus_by_slurm(mini)
    assert done.returncode != 0
    assert len(asked) == 1
    said = done.stdout.split("failed: build_corpus ")[1]
    (log,) = re.findall(r"  log: (\S*logs/build_corpus/\S+)", said)
    assert "nli_en.tsv" in (mini.folder / log).read_text(encoding="utf-8")
