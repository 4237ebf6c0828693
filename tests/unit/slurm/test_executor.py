"""What is laid over the Slurm executor, on a small one in its place; real processes stand for Slurm's commands.

That the plugin calls it so, whole runs tell: tests/faults/test_faults_cluster.py.
"""

import asyncio
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
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
WITHOUT_WORDS = "Job submission failed with exception: [Errno 5] Input/output error"
OF_AN_ARRAY = "Part of failed array sbatch submission (tasks 1-2); see log for details."


class Plugin:
    """What the plugin's executor has; each submission fails with the next of these messages, and then is taken."""

    run_uuid = "run-17"

    def __init__(self, workflow, logger):
        self.workflow, self.wait = workflow, True
        self.messages, self.taken, self.reported, self.done = [], [], [], []
        self.alone, self.together = [], []
        self._submit_job, self._submit_array_jobs = self.alone.append, self.together.append
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

    def report_job_success(self, job):
        self.done.append(job.external_jobid)

    def report_job_error(self, job, msg, aux_logs, said):
        self.reported.append((job.external_jobid, msg))
        self.logs = aux_logs


def job(rule, *wildcards, **resources):
    """Return what a job is to the plugin."""
    return SimpleNamespace(rule=SimpleNamespace(name=rule), wildcards=wildcards, resources=resources, is_group=lambda: False)


class Executor(PatientExecutor, Plugin):
    pause = 0.05


@pytest.fixture
def told():
    return []


def ping(*states):
    return "".join(f"Slurmctld(primary) at node is {state}\n" for state in states)


@pytest.fixture
def executor(slurm, told):
    slurm.answers("scontrol", ping("UP"))
    slurm.answers("squeue", "")
    slurm.answers("scancel", "")
    settings = SimpleNamespace(init_seconds_before_status_checks=20, status_command="squeue", keep_successful_logs=False)
    return Executor(SimpleNamespace(executor_settings=settings), SimpleNamespace(warning=told.append))


class Single(str):
    """A job that is no group, by its name."""

    def is_group(self):
        return False


class Group(str):
    groupid = "scores-8"

    def is_group(self):
        return True


def submitted(executor, *messages, kind=Single):
    """Let an executor submit a job until it is taken or given up."""
    executor.messages = list(messages)
    executor._job_submission_executor.submit(executor.run_job, kind("a")).result()
    while not (executor.taken or executor.reported):
        time.sleep(0.01)


@pytest.mark.parametrize("words", LATER)
def test_what_passes_is_waited_for_in_the_same_try_and_told_once(executor, told, words):
    submitted(executor, *[FAILED.format(words)] * 3)
    assert (executor.taken, executor.reported) == (["a"], [])
    assert len(told) == 1
    assert told[0].startswith("Slurm accepts no jobs at present (")


@pytest.mark.parametrize("words", NEVER)
def test_a_refusal_is_reported(executor, told, words):
    submitted(executor, FAILED.format(words))
    assert executor.reported == [("a", FAILED.format(words))]
    assert told == []


def test_what_a_group_is_refused_for_is_told_since_snakemake_does_not(executor, told):
    submitted(executor, FAILED.format(NEVER[0]), kind=Group)
    assert executor.reported == [("a", FAILED.format(NEVER[0]))]
    assert told == [f"group scores-8: {FAILED.format(NEVER[0])}"]


def test_a_group_on_whose_report_the_plugin_stumbles_is_reported(executor, told, monkeypatch):
    def stumble(self, job):
        try:
            raise ValueError("no partitions")
        except ValueError:
            job.rule  # noqa: B018  # a group has none

    monkeypatch.setattr(Plugin, "run_job", stumble)
    submitted(executor, kind=Group)
    assert executor.reported == [("a", "Job submission failed with exception: no partitions")]
    assert told == ["group scores-8: Job submission failed with exception: no partitions"]


def test_without_slurms_words_the_controllers_are_asked(executor, slurm, told):
    slurm.answers("scontrol", ping("DOWN", "DOWN"))
    submitted(executor, WITHOUT_WORDS)
    assert executor.taken == ["a"]
    assert "no controller answers" in told[0]


def test_a_job_of_an_array_that_was_refused_is_submitted_alone(executor, told):
    submitted(executor, OF_AN_ARRAY)
    assert (executor.taken, executor.reported, told) == (["a"], [], [])


def test_further_refusals_are_waited_for_longer_and_no_longer_than_a_look(executor, monkeypatch):
    pauses = []
    monkeypatch.setattr("threading.Timer", lambda pause, function, args: pauses.append(pause) or SimpleNamespace(start=lambda: None))
    executor.pause = 15.0
    for _ in range(6):
        executor._report_job_error_threadsafe(SimpleNamespace(job="a"), FAILED.format(LATER[0]))
    executor._report_job_error_threadsafe(SimpleNamespace(job="b"), FAILED.format(LATER[0]))
    assert pauses == [15, 30, 60, 120, 180, 180, 15]


QUEUED = (
    "17|embed.a.run-17|rule_embed_wildcards_a\n16|embed.a.run-16|rule_embed_wildcards_a\n"
    "18|score.run-17|rule_score\n19_1|e.run-17|rule_embed_wildcards_a\n"
)


@pytest.mark.parametrize(("words", "cancelled"), [(LATER[0], []), (LATER[1], ["17"])])
def test_a_job_that_slurm_took_although_its_answer_was_lost_is_cancelled_before_the_next(executor, slurm, words, cancelled):
    slurm.answers("squeue", QUEUED)
    submitted(executor, FAILED.format(words).replace("--wrap", "--comment rule_embed_wildcards_a --wrap"))
    assert executor.taken == ["a"]
    assert slurm.calls("scancel") == cancelled


class Ready:
    """A job that is ready, of a rule, or of several."""

    def __init__(self, rule, group=False, **resources):
        self.threads, self.resources = 1, resources
        self.is_group = lambda: group
        if not group:
            self.rule = SimpleNamespace(name=rule)


def test_of_a_rule_that_goes_as_arrays_those_go_together_that_ask_for_the_same(executor):
    small, other, large = Ready("embed", mem_mb=3000), Ready("embed", mem_mb=3000), Ready("embed", mem_mb=9000)
    scores, group = [Ready("score"), Ready("score")], Ready("embed", group=True)
    executor.array_jobs = {"embed"}
    executor.run_jobs([small, scores[0], large, group, other, scores[1]])
    assert executor.together == [[small, other]]
    assert executor.alone == [scores[0], large, group, scores[1]]


@pytest.mark.parametrize(("rules", "together"), [({"all"}, 2), (set(), 0)])
def test_all_rules_can_go_as_arrays(executor, rules, together):
    executor.array_jobs = rules
    executor.run_jobs([Ready("embed"), Ready("score"), Ready("embed"), Ready("score")])
    assert (len(executor.together), len(executor.alone)) == (together, 4 - 2 * together)


@pytest.mark.parametrize("states", [["UP"], ["DOWN", "UP"], []])
def test_a_controller_that_answers_has_refused(executor, slurm, states):
    slurm.answers("scontrol", ping(*states))
    submitted(executor, WITHOUT_WORDS)
    assert executor.reported == [("a", WITHOUT_WORDS)]


def test_a_run_that_is_told_to_end_submits_nothing_more_and_leaves_nothing(executor, told, slurm):
    executor.pause = 0.5
    executor.messages = [FAILED.format(LATER[0])]
    executor._job_submission_executor.submit(executor.run_job, "a").result()
    slurm.answers("squeue", "17 embed.a.run-17\n18_1 embed.b.run-17\n", "17 embed.a.run-17\n16 embed.a.run-16\n", "16 embed.a.run-16\n")
    executor.cancel_jobs(["what the plugin knows of its jobs"])
    assert (executor.taken, executor.reported) == ([], [])
    assert slurm.calls("scancel") == ["17 18_1"]
    assert len(slurm.calls("squeue")) == 3  # it was waited for
    assert len(told) == 1


def test_jobs_that_cannot_be_cancelled_are_told_with_the_command(executor, told, slurm):
    slurm.fails("scancel", "no contact")
    executor._submitted_job_clusters.add("elsewhere")
    next(executor.get_account_arg(job("score")))
    executor.cancel_jobs([])
    assert slurm.calls("scancel") == ["--clusters=all --name=score.run-17"]
    (text,) = told
    assert text.startswith("jobs of this run may still run (no contact): end them with `squeue --me ")
    assert "/run-17/" in text


class Scheduler:
    """Notes the jobs that are no longer waited for."""

    def __init__(self):
        self.given_up = []
        self.error_callback = self.given_up.append


def test_a_run_that_is_told_to_end_cancels_what_only_waits_and_looks_after_the_rest(executor, told, slurm):
    executor.workflow.scheduler = Scheduler()
    executor.pause = 3600.0
    executor.messages = [FAILED.format(LATER[0])]
    executor._job_submission_executor.submit(executor.run_job, "a").result()  # is to be submitted again in an hour
    next(executor.get_account_arg(job("embed", "b")))
    slurm.answers("squeue", "7 embed.b.run-17\n")
    executor.cancel_pending()
    executor.run_job("c")
    assert executor.workflow.scheduler.given_up == ["a", "c"]
    assert slurm.calls("scancel") == ["7"]
    assert slurm.calls("squeue")[0].endswith("--states=PENDING")
    assert told[-1].startswith("stopping: waiting jobs are cancelled, the run waits for 1 running ones")
    slurm.answers("squeue", "7|COMPLETED\n8|CANCELLED\n9|RUNNING\n")
    jobs = [SimpleNamespace(external_jobid=number, job=number, aux={"slurm_logfile": Path(f"/none/{number}.log")}) for number in "789"]
    assert looked(executor, *jobs) == ["9"]
    assert (executor.done, executor.workflow.scheduler.given_up[2:], executor.reported) == (["7"], ["8"], [])


def test_a_further_interrupt_while_jobs_are_cancelled_is_answered_in_a_line(executor, told, slurm):
    before = signal.getsignal(signal.SIGINT)
    slurm.does("squeue", f"kill -INT {os.getpid()}; sleep 0.2; echo 7 embed.a.run-17", "true")
    try:
        executor.cancel_jobs([])
    finally:
        signal.signal(signal.SIGINT, before)
    assert told == ["already stopping: jobs are cancelled, and the run waits until they have saved their state"]


def looked(executor, *jobs):
    async def left():
        return [job.external_jobid async for job in executor.check_active_jobs(jobs)]

    return asyncio.run(left())


def test_jobs_that_ended_are_reported_and_looked_after_less_often_while_none_ends(executor, slurm, tmp_path):
    jobs = [SimpleNamespace(external_jobid=number, aux={"slurm_logfile": tmp_path / f"{number}.log"}) for number in "789"]
    for job in jobs:
        job.aux["slurm_logfile"].touch()
    slurm.answers("squeue", "7|RUNNING\n8|RUNNING\n9|PENDING\n")
    assert looked(executor, *jobs) == ["7", "8", "9"]
    assert executor.next_seconds_between_status_checks == 30
    slurm.answers("squeue", "7|COMPLETED\n8|OUT_OF_MEMORY\n9|PENDING\n")
    assert looked(executor, *jobs) == ["9"]
    assert executor.next_seconds_between_status_checks == 20
    assert executor.done == ["7"]
    assert executor.reported == [("8", "SLURM-job '8' failed, SLURM status is: 'OUT_OF_MEMORY'. ")]
    assert [job.aux["slurm_logfile"].exists() for job in jobs] == [False, True, True]
    executor.next_seconds_between_status_checks = 175
    slurm.answers("squeue", "9|RUNNING\n")
    assert looked(executor, jobs[2]) == ["9"]
    assert executor.next_seconds_between_status_checks == 180


def test_the_jobs_of_a_run_that_ends_are_not_told_as_failures(executor, slurm):
    executor.cancel_jobs([])
    slurm.answers("squeue", "7|CANCELLED\n")
    assert looked(executor, SimpleNamespace(external_jobid="7")) == ["7"]
    assert executor.reported == []


def test_nobody_sleeps_on_when_the_run_has_ended(executor):
    executor.next_seconds_between_status_checks, executor.wait = 3600, False
    asyncio.run(asyncio.wait_for(executor.sleep(), 60))


@pytest.mark.parametrize(("given", "option"), [(None, ""), ("", ""), ("open", " -A open"), ("a$b, open", " -A 'a$b'"), (2021, " -A 2021")])
def test_an_account_reaches_slurm_as_it_was_given(executor, given, option):
    assert list(executor.get_account_arg(job("embed", "a", slurm_account=given))) == [f"{option} --job-name embed.a.run-17"]


def test_a_group_of_jobs_bears_its_name_and_how_many_they_are(executor):
    class Group(list):
        groupid, resources, is_group = "scores-8", {}, lambda self: True

    assert list(executor.get_account_arg(Group("abc"))) == [" --job-name scores-8.3-jobs.run-17"]
    assert list(executor.get_account_arg(Group([job("score", "a")]))) == [" --job-name score.a.run-17"]


def test_the_log_of_an_array_lies_above_the_folder_that_the_plugin_names(executor, slurm, tmp_path):
    jobs = [SimpleNamespace(external_jobid=f"8_{task}", aux={"slurm_logfile": tmp_path / "a_b" / f"8_{task}.log"}) for task in (1, 2)]
    logs = [tmp_path / f"8_{task}.log" for task in (1, 2)]
    for log in logs:
        log.touch()
    slurm.answers("squeue", "8_1|COMPLETED\n8_2|FAILED\n")
    assert looked(executor, *jobs) == []
    assert [log.exists() for log in logs] == [False, True]
    assert executor.logs == [str(logs[1])]


def test_the_log_of_a_job_that_slurm_forgot_stays(executor, slurm, tmp_path):
    log = tmp_path / "7.log"
    log.touch()
    job = SimpleNamespace(external_jobid="7", aux={"slurm_logfile": log})
    assert [looked(executor, job) for _ in range(2)] == [["7"], []]
    assert executor.done == ["7"]
    assert log.exists()
