"""What tests of jobs share."""

import logging

import pytest


@pytest.fixture
def quiet_logging(monkeypatch):
    """Keep what a job does to its process within the test."""
    monkeypatch.setattr("crosslign.jobs.frame.limit_threads", lambda threads: None)
    monkeypatch.setattr("crosslign.jobs.frame.do_without_pandas", lambda: None)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in set(root.handlers) - set(handlers):
        handler.close()
    root.handlers[:], logging.raiseExceptions = handlers, True
    root.setLevel(level)
