"""The log of a long search: rows done, and the time that is left by the speed of this run alone."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from crosslign.mining import progress


def test_rows_of_an_earlier_run_say_nothing_of_the_speed(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    told = progress.Progress(1000)
    with caplog.at_level(logging.INFO):
        told.skip(0)
        told.skip(600)
        now[0] = 4.0
        told.add(50)  # not five seconds yet
        now[0] = 10.0
        told.add(50)
    assert [record.getMessage() for record in caplog.records] == [
        "going on behind 600 rows that were searched before",
        "searched 700 of 1000 rows, 30 s left",  # 100 rows in 10 s, and 300 to go
    ]
