"""Every test of sources may fetch."""

import pytest


@pytest.fixture(autouse=True)
def _online(online):
    """Takes effect for all tests of this folder."""
