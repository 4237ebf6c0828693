"""A run is refused before it starts where Slurm would refuse its jobs; real processes stand for Slurm's commands."""

import os

import pytest

from crosslign.config.scheduler import require_scheduler
from crosslign.errors import InputError


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Commands that write down how they were called; `sbatch` refuses the account `closed`."""
    for name, body in {"sinfo": "", "sbatch": 'case "$*" in *--account=closed*) echo "Invalid account" >&2; exit 1;; esac'}.items():
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/calls\n{body}\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_each_account_and_partition_is_asked_for_once_and_nothing_is_submitted(slurm):
    require_scheduler([("open", "main"), ("open", "main"), (None, "gpu"), (None, None)])
    calls = (slurm / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls] == ["sinfo", "sbatch", "sbatch", "sbatch"]
    assert all("--test-only" in call for call in calls[1:])
    assert "--account=open --partition=main" in calls[1]
    assert "--account" not in calls[2]


def test_a_refusal_is_said_in_slurms_words_with_what_to_do(slurm):
    with pytest.raises(InputError, match=r"takes no jobs.*Invalid account.*slurm/local\.yaml"):
        require_scheduler([("closed", None)])


def test_a_machine_without_slurm_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="no sinfo here: start the run on a login node"):
        require_scheduler([])
