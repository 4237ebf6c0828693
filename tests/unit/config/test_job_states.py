"""Jobs are asked after through an outage; real processes stand for Slurm's commands, the query is the executor's own."""

import asyncio
import logging
import os

import pytest

from crosslign.config.job_states import JobStates

plugin = pytest.importorskip("snakemake_executor_plugin_slurm.job_status_query")


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A `squeue` that answers what stands in a file, and fails while there is none."""
    (tmp_path / "squeue").write_text(f'#!/bin/sh\ncase "$*" in *%r*) echo "7 Resources"; exit 0;; esac\nexec cat {tmp_path}/answer\n')
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def answers(jobs):
        if jobs is None:
            (tmp_path / "answer").unlink(missing_ok=True)
        else:
            (tmp_path / "answer").write_text("".join(f"{job}|{state}\n" for job, state in jobs.items()))

    return answers


@pytest.fixture
def told():
    return []


@pytest.fixture
def states(slurm, told):
    """Gives answers one after another, and returns what the executor is told of each."""

    def asked(*answers, **options):
        query = JobStates(plugin.query_job_status, told.append, **options)
        found = []
        for answer in answers:
            slurm(answer)
            found.append(asyncio.run(query(plugin.query_job_status_squeue("run"), logging.getLogger("test")))[0])
        return found

    return asked


def test_an_outage_loses_no_job_and_is_told_once(states, told):
    found = states({"7": "RUNNING"}, *[None] * 8, {"7": "COMPLETED"})
    assert found == [{"7": "RUNNING"}, *[{}] * 8, {"7": "COMPLETED"}]
    assert len(told) == 1
    assert "does not answer" in told[0]


def test_a_job_that_slurm_has_forgotten_ends(states):
    both = {"7": "RUNNING", "8_1": "RUNNING"}
    found = states(both, {"8_1": "RUNNING"}, both, {"8_1": "RUNNING"}, None, {"8_1": "COMPLETED"})
    assert [answer.get("7") for answer in found] == ["RUNNING", None, "RUNNING", None, None, "UNKNOWN"]
    assert found[-1]["8_1"] == "COMPLETED"


def test_the_reason_of_a_job_that_waits_long_is_told_once(states, told):
    states({"7": "PENDING"}, {"7": "PENDING"}, pending_seconds=3600.0)
    assert told == []
    states(*[{"7": "PENDING"}] * 3, pending_seconds=0.0)
    assert len(told) == 1
    assert "7 Resources" in told[0]
