"""Shared by all tests: the folder of real data."""

import os
from pathlib import Path

import pytest

from crosslign.collector import collect_rarely

collect_rarely()  # a tenth of what the tests cost

BESIDE = Path(__file__).parents[2] / "shared" / "mirror"


@pytest.fixture(scope="session")
def mirror():
    """The folder of real data: what CROSSLIGN_MIRROR names, else `shared/mirror` beside the checkout; without one the test is skipped."""
    folder = Path(os.environ.get("CROSSLIGN_MIRROR") or BESIDE)
    if not (folder / "MANIFEST.csv").is_file():
        pytest.skip(f"no real data at {folder}: set CROSSLIGN_MIRROR to a folder with MANIFEST.csv")
    return folder
