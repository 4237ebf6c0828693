"""Jobs are asked after through an outage, and beyond Slurm's memory; real processes stand for its commands."""

import pytest

from crosslign.slurm.job_states import JobStates


@pytest.fixture
def slurm(tmp_path, command):
    """A `squeue` and a `sacct` that answer what stands in a file each, and fail while there is none."""
    reason = 'case "$*" in *%r*) echo "7 Resources"; exit 0;; esac'
    for name in ("squeue", "sacct"):
        command(name, f'{reason}\necho "$*" >> {tmp_path}/{name}.asked\nexec cat {tmp_path}/{name}.answer')
    return tmp_path


@pytest.fixture
def told():
    return []


@pytest.fixture
def ended(slurm, told):
    """Gives answers one after another, and returns which jobs have ended by each."""
    states = JobStates(told.append)

    def asked(*answers, jobs=("7",), command="squeue"):
        found = []
        for answer in answers:
            path = slurm / f"{command}.answer"
            path.unlink(missing_ok=True)
            if answer is not None:
                path.write_text("".join(f"{job}|{state}\n" for job, state in answer.items()))
            found.append(states.ended("run-17", jobs, command))
        return found

    return asked


def test_an_outage_loses_no_job_and_is_told_once(ended, told):
    assert ended({"7": "RUNNING"}, *[None] * 8, {"7": "COMPLETED"}) == [{}] * 9 + [{"7": "COMPLETED"}]
    assert len(told) == 1
    assert "does not answer" in told[0]


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"])
def test_jobs_that_failed_have_ended_and_others_have_not(ended, state):
    alive = ["PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED"]
    answer = {str(number): state for number, state in enumerate(alive)} | {"8_1": state, "9": state}
    assert ended(answer, jobs=("0", "1", "2", "3", "4", "5", "8_1")) == [{"8_1": state}]


def test_a_job_that_slurm_has_forgotten_ends(ended):
    both = {"7": "RUNNING", "8_1": "RUNNING"}
    found = ended(both, {"8_1": "RUNNING"}, both, {"8_1": "RUNNING"}, None, {"8_1": "COMPLETED"}, jobs=("7", "8_1"))
    assert found == [{}] * 5 + [{"7": "UNKNOWN", "8_1": "COMPLETED"}]


def test_a_job_that_was_forgotten_before_anyone_asked_ends(ended):
    assert ended({"8": "RUNNING"}, {"8": "RUNNING"}, jobs=("7", "8")) == [{}, {"7": "UNKNOWN"}]


@pytest.mark.parametrize("state", ["PREEMPTED", "NODE_FAIL"])
def test_a_job_that_is_not_put_back_into_the_queue_ends(ended, state):
    assert ended({"7": state}, {"7": "PENDING"}, {"7": state}, {"7": "RUNNING"}) == [{}] * 4
    assert ended({"7": state}, {"7": state}) == [{}, {"7": state}]


def test_accounting_may_know_a_job_later_and_says_who_cancelled_it(ended, slurm):
    assert ended({}, {}, {"7": "RUNNING"}, {"7": "CANCELLED by 1000"}, command="sacct") == [{}] * 3 + [{"7": "CANCELLED"}]
    asked = (slurm / "sacct.asked").read_text()
    assert "--name=run-17" in asked
    assert "--clusters=all" in asked


def test_each_job_of_an_array_is_asked_for(ended, slurm):
    ended({})
    assert "--array" in (slurm / "squeue.asked").read_text()  # those that wait are one line otherwise, under another number


def test_the_reason_of_a_job_that_waits_long_is_told_once(slurm, told):
    (slurm / "squeue.answer").write_text("7|PENDING\n")
    for patience in (3600.0, 0.0):
        assert told == []
        states = JobStates(told.append, pending_seconds=patience)
        for _ in range(3):
            states.ended("run-17", ["7"], "squeue")
    assert len(told) == 1
    assert "7 Resources" in told[0]
