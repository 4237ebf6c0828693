"""Jobs are asked after through an outage, and beyond Slurm's memory; real processes stand for its commands."""

import os

import pytest

from crosslign.slurm.job_states import JobStates


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
            if answer is None:
                slurm.fails(command)
            else:
                slurm.answers(command, "".join(f"{job}|{state}\n" for job, state in answer.items()))
            found.append(states.ended(jobs, command))
        return found

    return asked


@pytest.mark.parametrize(("by", "end"), [("squeue", "until it does"), ("sacct", "start it again with `slurm-status-command: squeue`")])
def test_an_outage_loses_no_job_and_is_told_once(ended, told, by, end):
    found = ended({"7": "RUNNING"}, *[None] * 8, {"7": "COMPLETED"}, command=by)
    assert found == [{}] * 9 + [{"7": "COMPLETED"}]
    assert len(told) == 1
    assert "does not answer" in told[0]
    assert told[0].endswith(end)


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
    for asked in slurm.calls("sacct"):
        assert f"--user={os.getuid()}" in asked
        assert "--clusters=all" in asked


def test_each_job_of_an_array_is_asked_for(ended, slurm):
    ended({})
    (asked,) = slurm.calls("squeue")
    assert "--array" in asked  # those that wait are one line otherwise, under another number
    assert f"--user={os.getuid()}" in asked


def test_nobody_is_asked_why_jobs_wait_that_have_not_waited_long(slurm, told):
    slurm.answers("squeue", "7|PENDING\n", "7 Priority\n", "7|PENDING\n")
    states = JobStates(told.append, pending_seconds=3600.0)
    for _ in range(3):
        states.ended(["7"], "squeue")
    assert told == []
    assert len(slurm.calls("squeue")) == 4  # once for a reason that never passes


def test_each_reason_of_jobs_that_wait_long_is_told_once_with_its_jobs(slurm, told):
    queue = "7|PENDING\n8_1|PENDING\n9|RUNNING\n"
    slurm.answers(
        "squeue",
        queue,
        "7 ReqNodeNotAvail, UnavailableNodes:node1\n8_1 ReqNodeNotAvail, Reserved for maintenance\n",
        queue,
        "7 ReqNodeNotAvail, UnavailableNodes:node[1-2]\n8_1 Priority\n",
    )
    states = JobStates(told.append, pending_seconds=0.0)
    for _ in range(2):
        states.ended(["7", "8_1", "9"], "squeue")
    assert [text[text.index("(") :] for text in told] == [
        "(ReqNodeNotAvail): 7",
        "(ReqNodeNotAvail, Reserved for maintenance): 8_1",
        "(Priority): 8_1",
    ]
    assert slurm.calls("squeue")[1].endswith("--jobs=7,8_1")


def test_an_answer_that_is_late_is_waited_for_longer_next_time(monkeypatch, told):
    waited = []

    def ask(command, seconds):
        waited.append(seconds)
        return "", "no answer"

    monkeypatch.setattr("crosslign.slurm.job_states.ask", ask)
    states = JobStates(told.append)
    for _ in range(4):
        states.ended(["7"], "sacct")
    assert waited == [60, 120, 240, 240]


NEVER = {
    "PartitionTimeLimit": "`max_runtime: ",
    "QOSMaxWallDurationPerJobLimit": "`max_runtime: ",
    "AssocMaxWallDurationPerJobLimit": "`max_runtime: ",
    "QOSMaxMemoryPerJob": "`max_mem_mb`",
    "launch failed requeued held": "scontrol release",
    "job requeued in held state": "scontrol release",  # scontrol requeuehold
}


@pytest.mark.parametrize("reason", NEVER)
@pytest.mark.parametrize("status", ["squeue", "sacct"])
def test_a_reason_that_never_passes_is_told_at_the_first_look_with_what_to_do(slurm, told, reason, status):
    state = "PENDING" if status == "squeue" else "REQUEUED"
    answers = [f"7|{state}\n8|PENDING\n", f"7 {reason}\n8 Priority\n"]
    if status == "sacct":
        slurm.answers("sacct", answers.pop(0))
    slurm.answers("squeue", *answers)
    JobStates(told.append).ended(["7", "8"], status)
    (text,) = told
    assert text.startswith(f"1 job can never start as configured ({reason}): 7; ")
    assert NEVER[reason] in text
