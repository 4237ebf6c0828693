"""Fixtures of the corpora tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def mirror():
    """The folder of real data, where this machine has it."""
    folder = Path(os.environ.get("CROSSLIGN_MIRROR") or Path(__file__).parents[4] / "shared" / "mirror")
    if not (folder / "MANIFEST.csv").is_file():
        pytest.skip(f"no mirror of real data at {folder}; set CROSSLIGN_MIRROR")
    return folder
