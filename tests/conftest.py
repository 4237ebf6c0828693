"""Shared by all tests: one thread a process, processes that cost no imports, commands of the tests' own, and the folder of real data."""

import gc
import os
from pathlib import Path

import pytest
from forks import Forks

from crosslign.collector import collect_rarely
from crosslign.threads import limit_threads

pytest_plugins = ("failed_once", "ordered", "small_data", "file_server", "trainings", "gpus")

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # the tests of tests/gpu run without it, on machines with a GPU and little else
    pass
else:
    settings.register_profile(
        "repeatable",
        derandomize=True,  # one commit, one answer
        deadline=None,  # a busy machine is no failure
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    settings.load_profile("repeatable")

os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Where several tests run side by side, the threads of tiny products wait for each other: ten times the processor's time.
limit_threads(1)

collect_rarely()  # a tenth of what the tests cost

os.fsync = lambda descriptor: None  # thousands of small files, of which none is to outlive the machine; other processes have the real one


@pytest.fixture(scope="module", autouse=True)
def settled():
    """Leave what is there before a file's tests out of their collections: one that a batch without memory asks for took two seconds."""
    gc.collect()
    gc.freeze()


BESIDE = Path(__file__).parents[2] / "shared" / "mirror"


@pytest.fixture(scope="session")
def mirror():
    """The folder of real data: what CROSSLIGN_MIRROR names, else `shared/mirror` beside the checkout; without one the test is skipped."""
    folder = Path(os.environ.get("CROSSLIGN_MIRROR") or BESIDE)
    if not (folder / "MANIFEST.csv").is_file():
        pytest.skip(f"no real data at {folder}: set CROSSLIGN_MIRROR to a folder with MANIFEST.csv")
    return folder


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Puts a command before all others of its name; it does what a script of the shell says."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def put(name, script=""):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return put


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    """Run programs in processes of their own that need not load torch and transformers first."""
    made = Forks(tmp_path_factory.mktemp("forks"))
    yield made
    made.stop()
