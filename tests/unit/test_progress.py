"""Speed and the time that is left, from a clock that the test turns."""

import pytest

from crosslign import progress
from crosslign.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_every_five_seconds_with_the_time_that_is_left(clock, caplog):
    caplog.set_level("INFO")
    counted = Progress(1000, "searched", "rows")
    for _ in range(4):
        clock[0] += 2
        counted.add(50)
    assert [record.message for record in caplog.records] == ["searched 150 of 1000 rows, 25/s, 34 s left"]


def test_what_an_earlier_run_did_says_nothing_of_the_speed(clock, caplog):
    caplog.set_level("INFO")
    counted = Progress(1000, "encoded", "texts")
    clock[0] += 60  # a model is loaded
    counted.skip(500)
    clock[0] += 10
    counted.add(100)
    assert [record.message for record in caplog.records] == [
        "going on behind 500 texts that were encoded before",
        "encoded 600 of 1000 texts, 10/s, 40 s left",
    ]


def test_nothing_to_go_on_behind_is_not_spoken_of(clock, caplog):
    caplog.set_level("INFO")
    Progress(10, "searched", "rows").skip(0)
    assert not caplog.records
