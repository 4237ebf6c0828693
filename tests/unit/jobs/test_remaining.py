"""Time left: from what is expected, from what was measured, and from the engine's events."""

import logging

import pytest

from crosslign.jobs.remaining import Remaining, RemainingHandler


def test_work_is_shared_by_the_jobs_that_run_at_once():
    remaining = Remaining({"score": 10.0}, lambda: 2)
    remaining.plan({"score": 4})
    assert remaining.seconds(0.0) == 20.0


def test_no_run_ends_before_its_longest_job():
    remaining = Remaining({"train": 100.0, "score": 1.0}, lambda: 4)
    remaining.plan({"train": 1, "score": 4})
    assert remaining.seconds(0.0) == 100.0


def test_running_jobs_count_with_what_they_still_need():
    remaining = Remaining({"train": 100.0}, lambda: 1)
    remaining.plan({"train": 2})
    remaining.start(1, "train", 0.0)
    assert remaining.seconds(30.0) == 170.0
    assert remaining.seconds(150.0) == 100.0


def test_finished_jobs_correct_the_expectation():
    remaining = Remaining({"train": 100.0}, lambda: 1)
    remaining.plan({"train": 3})
    remaining.start(1, "train", 0.0)
    remaining.finish(1, 200.0)
    assert remaining.seconds(200.0) == pytest.approx(2 * 150.0)


def test_events_become_one_line_a_finished_job(capsys):
    log = logging.getLogger("engine of a test")
    log.setLevel(logging.INFO)
    log.propagate = False  # this handler alone is looked at, whoever else listens
    handler = RemainingHandler(Remaining({"score": 60.0}, lambda: 1))
    log.addHandler(handler)
    log.info(None, extra={"event": "run_info", "stats": {"score": 2, "total": 2}})
    log.info("no event")
    log.info(None, extra={"event": "job_info", "jobid": 7, "rule_name": "score"})
    log.info(None, extra={"event": "job_finished", "job_id": 7})
    log.removeHandler(handler)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "[2 jobs, about 2 min 00 s in all]"
    assert second.startswith("[1 of 2 jobs done, about 3")


def test_kinds_of_jobs_that_have_not_run_make_it_a_least_time_or_none():
    remaining = Remaining({}, lambda: 1)
    remaining.plan({"score": 2, "train": 1})
    assert remaining.text(0.0) == ""
    remaining.start(1, "score", 0.0)
    remaining.finish(1, 60.0)
    assert remaining.text(60.0) == ", at least 1 min 01 s"
    remaining.start(2, "train", 60.0)
    remaining.finish(2, 100.0)
    assert remaining.text(100.0) == ", about 1 min 00 s"
