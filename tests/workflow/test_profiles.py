"""`--profile slurm` resolves from the root and plans the same jobs."""

import shutil
import subprocess
import sys

from project_copy import ROOT


def test_the_slurm_profile_resolves_from_the_root(untouched):
    shutil.copytree(ROOT / "slurm", untouched.folder / "slurm")
    command = [sys.executable, "-m", "snakemake", "-n", "--cores", "all", "--profile", "slurm", "--config", "scale=quick"]
    done = subprocess.run(command, cwd=untouched.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "train_system" in done.stdout + done.stderr
