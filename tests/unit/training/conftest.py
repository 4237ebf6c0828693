"""Every test of trainings may name the kinds of trial.py, and computes on one thread."""

import pytest


@pytest.fixture(autouse=True)
def _as_trainings_run(trial_kinds, one_thread):
    """Takes effect for all tests of this folder."""
