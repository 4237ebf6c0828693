"""The smallest whole workflow of the tests of faults is used here, too; packages that no user has every day get folders of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))


@pytest.fixture(scope="session")
def installed():
    """Installs packages into a folder of their own, from the index that pip knows, and returns it; skips where that cannot be."""

    def install(folder, *words):
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(folder), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{words[-1]} cannot be installed here: {done.stderr.strip()[-200:]}")
        return str(folder)

    return install
