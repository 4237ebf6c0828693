"""A copy of the project that a test may change and run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("Snakefile", "config", "workflow", "resources", "profiles")


def copy_project(target):
    target.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name)
        else:
            shutil.copy(source, target / name)
    return target


class Workflow:
    """Runs Snakemake in a copy of the project."""

    def __init__(self, folder):
        self.folder = folder
        self.results = folder / "results" / "quick"

    def run(self, *arguments, scale="quick", check=True, environment=None):
        command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments, "--config", f"scale={scale}"]
        settings = {**os.environ, "CROSSLIGN_OFFLINE": "1", "HF_HUB_OFFLINE": "1", **(environment or {})}
        settings.pop("CROSSLIGN_MIRROR", None)
        done = subprocess.run(command, cwd=self.folder, env=settings, capture_output=True, text=True, check=False)
        if check:
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-6000:]
        return done

    def planned(self, *arguments, scale="quick"):
        """Return (rule, name) of every job that a dry run would start."""
        done = self.run("-n", *arguments, scale=scale)
        jobs, rule = [], ""
        for line in (done.stdout + done.stderr).splitlines():
            words = line.split()
            if len(words) >= 2 and words[0] in ("rule", "localrule") and words[1].endswith(":"):
                rule = words[1].rstrip(":")
            elif line.startswith("    wildcards:"):
                jobs.append((rule, line.split(":", 1)[1].strip()))
        return jobs

    def edit(self, file, old, new):
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
