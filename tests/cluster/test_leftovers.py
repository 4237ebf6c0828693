"""What killed tests leave, daemons, links and a folder, goes before the next begin; what others use stays."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import slurm_by_hand


@pytest.mark.parametrize("killed", [True, False])
def test_the_slurm_of_killed_tests_is_ended_and_that_of_others_stays(tmp_path, monkeypatch, killed):
    monkeypatch.setattr(slurm_by_hand, "CONFIGURED", tmp_path)
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    ended = subprocess.Popen(["true"])
    ended.wait()
    (folder / "owner").write_text(str(ended.pid if killed else os.getpid()))
    shutil.copy(shutil.which("sleep"), folder / "slurmd")  # a daemon is known by the name of its program
    daemons = [subprocess.Popen([program, "100"]) for program in (folder / "slurmd", "sleep")]
    for name, daemon in zip(("slurmd", "other"), daemons, strict=True):
        (folder / f"{name}.pid").write_text(f"{daemon.pid}\n")
    link = tmp_path / "slurm.conf"
    link.symlink_to(folder / "slurm.conf")
    try:
        slurm_by_hand.tidy()
        assert link.is_symlink() is not killed
        assert folder.exists() is not killed
        if killed:
            assert daemons[0].wait(timeout=10) == -9
        assert daemons[1].poll() is None
    finally:
        for daemon in daemons:
            daemon.kill()
            daemon.wait()
        shutil.rmtree(folder, ignore_errors=True)
