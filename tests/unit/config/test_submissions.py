"""Submissions wait for a controller, and end with the run; real processes stand for Slurm's commands, the rest is the executor's own."""

import logging
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from crosslign.config.submissions import Submissions

PARAMS = {"run_uuid": "run-17"}


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A `scontrol` that says what stands in a file, and a `scancel` that writes down how it was called."""
    (tmp_path / "scontrol").write_text(f"#!/bin/sh\nexec cat {tmp_path}/answer\n")
    (tmp_path / "scancel").write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/cancelled\n')
    for name in ("scontrol", "scancel"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def answers(*states):
        (tmp_path / "answer").write_text("".join(f"Slurmctld(primary) at node is {state}\n" for state in states))

    return answers


@pytest.fixture
def told():
    return []


@pytest.fixture
def submit(told):
    return Submissions(lambda job, params, **_: f"sbatch {params['run_uuid']} {job}", told.append, pause=0.05)


def test_a_controller_that_answers_is_not_waited_for(slurm, submit, told):
    for states in (["UP"], ["DOWN", "UP"], []):
        slurm(*states)
        assert submit("a", PARAMS, settings=None) == "sbatch run-17 a"
    assert told == []


def test_without_the_command_nothing_is_waited_for(tmp_path, monkeypatch, submit):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert submit("a", PARAMS) == "sbatch run-17 a"


def test_jobs_wait_until_the_controller_is_back_and_it_is_told_once(slurm, submit, told):
    slurm("DOWN")
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(submit, job, PARAMS) for job in "ab"]
        while not told:
            assert not any(future.done() for future in waiting)
        slurm("UP")
        assert [future.result(timeout=60) for future in waiting] == ["sbatch run-17 a", "sbatch run-17 b"]
    assert set(told) == {"Slurm does not answer: no jobs are submitted until it does"}


def test_a_run_that_is_told_to_end_submits_nothing_more_and_leaves_nothing(slurm, submit, told, tmp_path):
    slurm("UP")
    cancelled = []
    submit("a", PARAMS)
    slurm("DOWN")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(submit, "b", PARAMS)
        while not told:
            assert not waiting.done()
        submit.ending(lambda *given: cancelled.append(given), lambda: pool.shutdown(wait=True))(["job"], set(), logging.getLogger("test"))
    assert isinstance(waiting.exception(), SystemExit)
    assert cancelled[0][0] == ["job"]
    assert (tmp_path / "cancelled").read_text() == "--name=run-17\n"
    slurm("UP")
    with pytest.raises(SystemExit):
        submit("c", PARAMS)
