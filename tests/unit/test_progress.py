"""Speed and the time that is left, from a clock that the test turns."""

import pytest

from crosslign import progress
from crosslign.progress import Pace, Progress


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_after_twenty_seconds_with_the_time_that_is_left(clock, caplog):
    caplog.set_level("INFO")
    counted = Progress(1000, "searched", "rows")
    for _ in range(4):
        clock[0] += 8
        counted.add(50)
    assert [record.message for record in caplog.records] == ["searched 150 of 1000 rows, 6/s, 2 min 16 s left"]


def test_lines_come_at_growing_intervals_of_at_most_five_minutes(clock):
    pace, due = Pace(), []
    for second in range(1, 1801):
        clock[0] += 1
        if pace.due(clock[0]):
            due.append(second)
    assert due == [20, 40, 80, 160, 320, 620, 920, 1220, 1520]


def test_what_an_earlier_run_did_says_nothing_of_the_speed(clock, caplog):
    caplog.set_level("INFO")
    counted = Progress(1000, "encoded", "texts")
    clock[0] += 60  # a model is loaded
    counted.skip(500)
    clock[0] += 20
    counted.add(100)
    assert [record.message for record in caplog.records] == [
        "continuing after 500 texts that were encoded before",
        "encoded 600 of 1000 texts, 5/s, 1 min 20 s left",
    ]


def test_nothing_to_go_on_behind_is_not_spoken_of(clock, caplog):
    caplog.set_level("INFO")
    Progress(10, "searched", "rows").skip(0)
    assert not caplog.records
