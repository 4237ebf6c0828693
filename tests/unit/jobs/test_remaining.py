"""Time left: from what is expected, from what was measured, and from the engine's events."""

import io
import logging

import pytest

from crosslign.jobs.remaining import BriefFilter, Remaining, RemainingHandler


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


@pytest.fixture
def engine():
    """A log that this test alone listens to."""
    log = logging.getLogger("engine of a test")
    log.setLevel(logging.INFO)
    log.propagate = False
    yield log
    log.handlers.clear()


def run(log):
    """Log the events of a run of two jobs."""
    log.info(None, extra={"event": "run_info", "stats": {"score": 2, "total": 2}})
    log.info("no event")
    for job, message in ((7, "Scoring a set"), (8, None)):
        log.info(None, extra={"event": "job_info", "jobid": job, "rule_name": "score", "rule_msg": message, "output": ["a.json"]})
        log.info(None, extra={"event": "job_finished", "job_id": job})
    log.info(None, extra={"event": "job_info", "jobid": 0, "rule_name": "all", "rule_msg": None, "output": []})


def test_events_become_one_line_a_job_that_starts_and_a_last_one(engine, capsys):
    engine.addHandler(RemainingHandler(Remaining({"score": 60.0}, lambda: 1)))
    run(engine)
    in_all, first, second, last = capsys.readouterr().err.splitlines()
    assert in_all == "[2 jobs, about 2 min 00 s in all]"
    assert first == "Job 7: Scoring a set [0 of 2 jobs done, about 2 min 00 s left]"
    assert second.startswith("Job 8: rule score [1 of 2 jobs done, about 3")
    assert last == "[2 of 2 jobs done]"


def test_a_job_that_ends_after_a_long_silence_says_so(engine, capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("crosslign.jobs.remaining.time.monotonic", lambda: now[0])
    engine.addHandler(RemainingHandler(Remaining({}, lambda: 1), starts=lambda: False))
    engine.info(None, extra={"event": "run_info", "stats": {"score": 3, "total": 3}})
    for seconds in (30, 31):
        now[0] += seconds
        engine.info(None, extra={"event": "job_finished", "job_id": 1})
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == ["[3 jobs]", "[2 of 3 jobs done]"]


@pytest.mark.parametrize("whole", [False, True])
def test_the_engines_own_stream_keeps_errors_and_what_has_no_shorter_line(engine, whole):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(BriefFilter(lambda: whole))
    engine.addHandler(handler)
    spared = [("a job", {"event": "job_info"}), ("a step", {"event": "progress"}), ("removed", {"quietness": "rules"})]
    spared += [("Select jobs to execute...", {}), ("Execute 2 jobs...", {"event": "job_started"}), ("ended", {"event": "job_finished"})]
    for text, extra in spared:
        engine.info(text, extra=extra)
    engine.info("Job stats", extra={"event": "run_info"})
    engine.error("a job failed", extra={"event": "job_error"})
    shown = stream.getvalue().splitlines()
    assert shown[-2:] == ["Job stats", "a job failed"]
    assert shown[:-2] == ([text for text, _ in spared] if whole else [])


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
