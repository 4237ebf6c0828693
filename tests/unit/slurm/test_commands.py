"""Slurm's commands are asked as a person would ask, and what goes wrong with that is a sentence."""

import pytest

from crosslign.slurm.commands import ask


def test_what_a_command_prints_comes_back_whatever_its_encoding(slurm):
    slurm.does("sinfo", r"printf 'main \351\n'; echo in the margin >&2")
    assert ask(["sinfo"]) == ("main \N{REPLACEMENT CHARACTER}\n", "")


def test_of_a_long_complaint_the_end_is_kept(slurm):
    slurm.fails("sbatch", "Welcome to the cluster. " * 40 + "sbatch: error: QOSMaxSubmitJobPerUserLimit")
    complaint = ask(["sbatch"])[1]
    assert complaint.endswith("QOSMaxSubmitJobPerUserLimit")
    assert len(complaint) == 400


def test_what_a_person_is_used_to_hides_no_jobs(slurm, monkeypatch):
    for name in ("SQUEUE_PARTITION", "SCANCEL_INTERACTIVE", "SBATCH_ACCOUNT"):
        monkeypatch.setenv(name, "mine")
    slurm.does("squeue", "printf '%s' \"$SQUEUE_PARTITION/$SCANCEL_INTERACTIVE/$SBATCH_ACCOUNT\"")
    assert ask(["squeue"]) == ("//mine", "")


@pytest.mark.parametrize("script", ["exit 3", "echo >&2; exit 3"])
def test_a_command_that_fails_in_silence_is_told_by_its_exit_code(slurm, script):
    slurm.does("sinfo", script)
    assert ask(["sinfo"]) == ("", "exit code 3")


def test_a_command_that_may_not_be_run_is_told(slurm, tmp_path):
    slurm.answers("sacct", "")
    (tmp_path / "sacct").chmod(0o644)
    assert ask([str(tmp_path / "sacct")]) == ("", f"{tmp_path}/sacct cannot be run here: Permission denied")


def test_a_command_that_hangs_is_given_up(slurm):
    slurm.does("squeue", "exec sleep 60")
    assert ask(["squeue"], 0.2) == ("", "no answer within 0.2 s")
