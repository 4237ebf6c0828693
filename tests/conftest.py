"""Shared by all tests: the folder of real data."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def mirror():
    """The folder of real data that CROSSLIGN_MIRROR names; without it the test is skipped."""
    folder = Path(os.environ.get("CROSSLIGN_MIRROR", ""))
    if not (folder / "MANIFEST.csv").is_file():
        pytest.skip("no real data: set CROSSLIGN_MIRROR to a folder with MANIFEST.csv")
    return folder
