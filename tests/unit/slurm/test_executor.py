"""What is laid over the Slurm executor, on a small one in its place; real processes stand for Slurm's commands.

That the plugin calls it so, whole runs tell: tests/faults/test_faults_cluster.py.
"""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from crosslign.slurm.executor import PatientExecutor

FAILED = "SLURM sbatch failed. The error message was 'sbatch: error: {}'.\n    sbatch call:\n        sbatch --wrap='Socket timed out'\n"
LATER = [
    "Batch job submission failed: Unable to contact slurm controller (connect failure)",
    "Batch job submission failed: Socket timed out on send/recv operation",
    "QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy",
    "AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy",
    "Batch job submission failed: Required partition not available (inactive or drain)",
]
NEVER = [
    "Batch job submission failed: Invalid account or account/partition combination specified",
    "QOSMaxWallDurationPerJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy",
]
WITHOUT_WORDS = "Part of failed array sbatch submission"


class Plugin:
    """What the plugin's executor has; each submission fails with the next of these messages, and then is taken."""

    run_uuid = "run-17"

    def __init__(self, workflow, logger):
        self.workflow, self.wait = workflow, True
        self.messages, self.taken, self.reported, self.done = [], [], [], []
        self.next_seconds_between_status_checks = 20
        self._submitted_job_clusters = set()
        self._job_submission_executor = ThreadPoolExecutor(2)

    def run_job(self, job):
        if self.messages:
            self._report_job_error_threadsafe(SimpleNamespace(job=job), self.messages.pop(0))
        else:
            self.taken.append(job)

    def _report_job_error_threadsafe(self, submitted, message):
        self.reported.append((submitted.job, message))

    def get_account_arg(self, job):
        yield f" -A {job.resources['slurm_account']}"

    def report_job_success(self, job):
        self.done.append(job.external_jobid)

    def report_job_error(self, job, msg, aux_logs):
        self.reported.append((job.external_jobid, msg))


class Executor(PatientExecutor, Plugin):
    pause = 0.05


@pytest.fixture
def slurm(tmp_path, command):
    """Commands that answer what stands in a file; `scancel` writes down how it was called, and fails where a file says so."""
    fails = f"[ ! -e {tmp_path}/fails ] || {{ echo no contact >&2; exit 1; }}"
    scripts = {"scontrol": f"cat {tmp_path}/ping", "squeue": f"cat {tmp_path}/queue; : > {tmp_path}/queue"}
    for name, script in {**scripts, "scancel": f'echo "$*" >> {tmp_path}/cancelled\n{fails}'}.items():
        command(name, script)
    (tmp_path / "queue").touch()

    def ping(*states):
        (tmp_path / "ping").write_text("".join(f"Slurmctld(primary) at node is {state}\n" for state in states))

    ping("UP")
    return ping


@pytest.fixture
def told():
    return []


@pytest.fixture
def executor(slurm, told):
    settings = SimpleNamespace(init_seconds_before_status_checks=20, status_command="squeue", keep_successful_logs=False)
    return Executor(SimpleNamespace(executor_settings=settings), SimpleNamespace(warning=told.append))


def submitted(executor, *messages):
    """Let an executor submit a job until it is taken or given up."""
    executor.messages = list(messages)
    executor._job_submission_executor.submit(executor.run_job, "a").result()
    while not (executor.taken or executor.reported):
        time.sleep(0.01)


@pytest.mark.parametrize("words", LATER)
def test_what_passes_is_waited_for_in_the_same_try_and_told_once(executor, told, words):
    submitted(executor, *[FAILED.format(words)] * 3)
    assert (executor.taken, executor.reported) == (["a"], [])
    assert len(told) == 1
    assert told[0].startswith("Slurm takes no jobs just now (")


@pytest.mark.parametrize("words", NEVER)
def test_a_refusal_is_reported(executor, told, words):
    submitted(executor, FAILED.format(words))
    assert executor.reported == [("a", FAILED.format(words))]
    assert told == []


def test_without_slurms_words_the_controllers_are_asked(executor, slurm, told):
    slurm("DOWN", "DOWN")
    submitted(executor, WITHOUT_WORDS)
    assert executor.taken == ["a"]
    assert "no controller answers" in told[0]


@pytest.mark.parametrize("states", [["UP"], ["DOWN", "UP"], []])
def test_a_controller_that_answers_has_refused(executor, slurm, states):
    slurm(*states)
    submitted(executor, WITHOUT_WORDS)
    assert executor.reported == [("a", WITHOUT_WORDS)]


def test_a_run_that_is_told_to_end_submits_nothing_more_and_leaves_nothing(executor, told, tmp_path):
    executor.pause = 600.0
    executor.messages = [FAILED.format(LATER[0])]
    executor._job_submission_executor.submit(executor.run_job, "a").result()
    (tmp_path / "queue").write_text("17 COMPLETING\n")
    executor.cancel_jobs(["what the plugin knows of its jobs"])
    assert (executor.taken, executor.reported) == ([], [])
    assert (tmp_path / "cancelled").read_text() == "--name=run-17\n"
    assert (tmp_path / "queue").read_text() == ""  # it was waited for
    assert len(told) == 1


def test_jobs_that_cannot_be_cancelled_are_told_with_the_command(executor, told, tmp_path):
    (tmp_path / "fails").touch()
    executor._submitted_job_clusters.add("elsewhere")
    executor.cancel_jobs([])
    assert told == ["jobs of this run may go on (no contact): end them with `scancel --name=run-17 --clusters=all`"]


def looked(executor, *jobs):
    async def left():
        return [job.external_jobid async for job in executor.check_active_jobs(jobs)]

    return asyncio.run(left())


def test_jobs_that_ended_are_reported_and_looked_after_less_often_while_none_ends(executor, tmp_path):
    jobs = [SimpleNamespace(external_jobid=number, aux={"slurm_logfile": tmp_path / f"{number}.log"}) for number in "789"]
    for job in jobs:
        job.aux["slurm_logfile"].touch()
    (tmp_path / "queue").write_text("7|RUNNING\n8|RUNNING\n9|PENDING\n")
    assert looked(executor, *jobs) == ["7", "8", "9"]
    assert executor.next_seconds_between_status_checks == 30
    (tmp_path / "queue").write_text("7|COMPLETED\n8|OUT_OF_MEMORY\n9|PENDING\n")
    assert looked(executor, *jobs) == ["9"]
    assert executor.next_seconds_between_status_checks == 20
    assert executor.done == ["7"]
    assert executor.reported == [("8", "SLURM-job '8' failed, SLURM status is: 'OUT_OF_MEMORY'. ")]
    assert [job.aux["slurm_logfile"].exists() for job in jobs] == [False, True, True]
    executor.next_seconds_between_status_checks = 175
    (tmp_path / "queue").write_text("9|RUNNING\n")
    assert looked(executor, jobs[2]) == ["9"]
    assert executor.next_seconds_between_status_checks == 180


def test_the_jobs_of_a_run_that_ends_are_not_told_as_failures(executor, tmp_path):
    executor.cancel_jobs([])
    (tmp_path / "queue").write_text("7|CANCELLED\n")
    assert looked(executor, SimpleNamespace(external_jobid="7")) == ["7"]
    assert executor.reported == []


def test_nobody_sleeps_on_when_the_run_has_ended(executor):
    executor.next_seconds_between_status_checks, executor.wait = 3600, False
    asyncio.run(asyncio.wait_for(executor.sleep(), 60))


def test_only_an_account_that_is_given_is_looked_up(executor):
    assert list(executor.get_account_arg(SimpleNamespace(resources={}))) == [""]
    assert list(executor.get_account_arg(SimpleNamespace(resources={"slurm_account": "open"}))) == [" -A open"]
