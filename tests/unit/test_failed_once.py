"""A failed fixture of many tests is one failure."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest

@pytest.fixture(scope="session")
def shared():
    raise OSError("no room for the run")

@pytest.fixture(scope="session")
def ended():
    raise SystemExit(3)

@pytest.fixture
def own():
    raise ValueError("each its own")

@pytest.mark.parametrize("number", range(5))
def test_shared(shared, number): ...

@pytest.mark.parametrize("number", range(5))
def test_ended(ended, number): ...

@pytest.mark.parametrize("number", range(2))
def test_own(own, number): ...
"""


def test_a_failed_fixture_fails_once_with_its_reason(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "failed_once", "--rootdir", str(tmp_path), str(tmp_path)]
    settings = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    assert "8 skipped, 4 errors" in done.stdout
    assert done.stdout.count("ERROR at setup of test_shared") == 1
    assert "a fixture failed, see test_it.py::test_shared[0]: no room for the run" in done.stdout
    assert "see test_it.py::test_ended[0]: the fixture ended asked the process to end (3)" in done.stdout
