"""Additions to the public Slurm executor: retried submissions, states through outages, cancelled leftovers."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import threading
import time
from collections.abc import AsyncIterator, Hashable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from crosslign.slurm.checks import account_of, asked_of
from crosslign.slurm.commands import QUEUE_FULL, ask, ending, job_name, numbers_of
from crosslign.slurm.job_states import DONE, FORGOTTEN, JobStates

LONGEST_PAUSE = 180.0
"""Seconds between two queries of jobs, or two submissions of one, at most."""
ENDING_SECONDS = 60.0
"""How long jobs that were cancelled are waited for, at most; Slurm gives them 30 unless its KillWait says otherwise."""
NUMBERS_AT_ONCE = 200
"""Numbers of jobs on one command line."""
LATER = re.compile(
    rf"{QUEUE_FULL.pattern}|Unable to contact slurm controller|Slurm backup controller in standby mode|Socket timed out|Zero Bytes"
    r"|Unexpected message received|temporarily unable to accept job|Unable to create job record, try again"
    r"|Required partition not available|Connection (?:refused|timed out|reset)"
)
"""Slurm's words for what passes without us: a controller that is down or too busy, a full queue, a partition that is being drained."""
IN_DOUBT = re.compile(r"Socket timed out|Zero Bytes|Unexpected message received|\(receive failure\)")
"""Those after which the job may be in the queue all the same: the answer was lost, not the question."""
COMMENT = re.compile(r"--comment (\S+)")
"""What the plugin names a job by: its rule and wildcards."""
OF_AN_ARRAY = "Part of failed array sbatch submission"
"""How the plugin begins what it says of a job whose array was refused; Slurm's words are not in it."""


def is_down() -> bool:
    """Tell whether Slurm says of all its controllers that they are down; a command that is missing or hangs says nothing."""
    said = ask(["scontrol", "ping"])[0]
    return "DOWN" in said and "UP" not in said


def _log_of(job: Any) -> Path:
    """Return Slurm's log of a job: one of an array lies in the folder of its rule, where the plugin names that of its wildcards below."""
    named: Path = job.aux["slurm_logfile"]
    return next((path for path in (named, named.parents[1] / named.name) if path.exists()), named)


Executor: Any = object
"""Of the plugin; the workflow puts it behind `PatientExecutor` as its second base."""


class PatientExecutor(Executor):  # type: ignore[misc]
    """An executor on that of snakemake-executor-plugin-slurm (2.8), which submits the jobs.

    - A submission that fails of what passes is repeated, in the same try of the job. The plugin takes each for a failed try, and all
      tries of all jobs that are ready are used up within a minute.
    - Jobs go as arrays as they come, those together that ask for the same. The plugin drops jobs of a rule while more of it are ready,
      which nobody offers it again (its issue 473), and asks for all of an array what the first one wants.
    - Jobs are asked after through an outage, as `JobStates` does. The plugin loses all of them when one round of asking fails, and asks
      for ever after one that Slurm has forgotten or pre-empted for good, or where there is no accounting, although `squeue` would know.
    - A run that is interrupted submits nothing more, and all its jobs are cancelled, by their names; of one that is told to end (SIGTERM)
      those that only wait. The plugin submits what is ready, does not cancel what it is just submitting or asking after, waits for jobs
      that wait, and ends in the midst of it when it is interrupted again.
    - A group that cannot be submitted ends its try, and says why. The plugin reports the rule of a job, which a group lacks: it loses the
      group, and the run waits for ever.
    - Jobs bear rule and wildcards in their names, which end with that of the run. The plugin calls all jobs by the run.
    """

    pause = 15.0
    """Seconds before a submission is repeated; twice as many after each further refusal."""
    next_seconds_between_status_checks: float

    def __init__(self, workflow: Any, logger: Any) -> None:
        self._tell = logger.warning
        self._states = JobStates(logger.warning)
        self._ends = threading.Event()
        self._refused = float("-inf")
        self._pauses: dict[Hashable, float] = {}
        self._names: set[str] = set()
        self._timers: dict[Any, threading.Timer] = {}
        self._cancelled = False
        super().__init__(workflow, logger)

    def get_account_arg(self, job: Any) -> Iterator[str]:
        """Yield the account's option, none where none is given, and the job's name, instead of the run's, which the plugin gives before.

        `sbatch` knows which accounts are good: the plugin asks accounting, or guesses. Rule and wildcards stand in the name, which ends
        with the run's.
        """
        account = account_of(job.resources)
        members = list(job) if job.is_group() else [job]
        if len(members) > 1:
            name = job_name(job.groupid, [f"{len(members)}-jobs"], self.run_uuid)
        else:
            name = job_name(members[0].rule.name, map(str, members[0].wildcards), self.run_uuid)
        self._names.add(name)
        yield (f" -A {shlex.quote(account)}" if account else "") + f" --job-name {shlex.quote(name)}"

    def run_jobs(self, jobs: Sequence[Any]) -> None:
        """Submit jobs; those of a rule that goes as arrays (`slurm-array-jobs`) together where they ask for the same."""
        alike: dict[Hashable, list[Any]] = {}
        for job in jobs:
            in_array = not job.is_group() and not self.array_jobs.isdisjoint(("all", job.rule.name))
            asked = asked_of({**dict(job.resources.items()), "threads": job.threads}) if in_array else ()
            alike.setdefault((job.rule.name, asked) if in_array else job, []).append(job)
        for same in alike.values():
            if len(same) > 1:
                self._submit_array_jobs(same)
            else:
                self._submit_job(same[0])

    def _report_job_error_threadsafe(self, submitted: Any, message: str) -> None:
        """Have a job submitted again after a while, or report that it cannot be submitted; called in a thread that submits.

        Args:
            submitted: what the plugin knows of the job.
            message: why it was not submitted, in the plugin's words and Slurm's.
        """
        if self._ends.is_set():
            self._give_up(submitted.job)
            return
        if message.startswith(OF_AN_ARRAY):
            self._again(submitted.job, message)  # alone, it is told why
            return
        found = LATER.search(message.partition("sbatch call:")[0])
        if not found and not is_down():
            if submitted.job.is_group():
                self._tell(f"group {submitted.job.groupid}: {message}")  # Snakemake prints none of a group
            super()._report_job_error_threadsafe(submitted, message)
            return
        now = time.monotonic()
        if now - self._refused > 2 * LONGEST_PAUSE:
            self._tell(
                f"Slurm accepts no jobs at present ({found[0] if found else 'no controller answers'}): they are submitted when it does"
            )
        self._refused = now
        pause = self._pauses[submitted.job] = min(2 * self._pauses.get(submitted.job, self.pause / 2), LONGEST_PAUSE)
        timer = threading.Timer(pause, self._again, [submitted.job, message])
        timer.daemon = True  # no reason for a run that ends to wait
        self._timers[submitted.job] = timer
        timer.start()

    def run_job(self, job: Any) -> None:
        """Submit a job, unless the run was told to end meanwhile."""
        if self._ends.is_set():
            self._give_up(job)
            return
        try:
            super().run_job(job)
        except Exception as error:  # of a group: the plugin reports its rule, which it lacks, and the run would wait for it for ever
            submitted = SimpleNamespace(job=job, external_jobid=None, aux=None)
            self._report_job_error_threadsafe(submitted, f"Job submission failed with exception: {error.__context__ or error}")

    def _give_up(self, job: Any) -> None:
        """Have a job that was not submitted no longer waited for, where the others are."""
        if not self._cancelled:
            self.workflow.scheduler.error_callback(job)

    def _again(self, job: Any, message: str) -> None:
        """Have a job submitted once more, which failed with this message."""
        self._timers.pop(job, None)

        def submit() -> None:
            self._cancel_unheard(message)
            self.run_job(job)

        with suppress(RuntimeError):  # the run ends, and submits nothing more
            self._job_submission_executor.submit(submit)

    def _cancel_unheard(self, message: str) -> None:
        """Cancel a job that Slurm took although its answer was lost: it would make the same files as the one that is submitted next."""
        said, _, call = message.partition("sbatch call:")
        comment = COMMENT.search(call)
        if not comment or not IN_DOUBT.search(said):
            return
        queued = ask(["squeue", "--noheader", f"--user={os.getuid()}", "--format=%i|%j|%k"])[0]
        for number, name, own in (line.split("|", 2) for line in queued.splitlines() if line.count("|") >= 2):
            if (
                name.endswith(self.run_uuid) and own == comment[1].strip("'") and number.isdigit()
            ):  # of arrays, all bear the first's comment
                ask(["scancel", number])

    def cancel_jobs(self, active_jobs: Sequence[Any]) -> None:
        """Cancel all jobs of this run, those that are being submitted too.

        Args:
            active_jobs: those that the plugin knows; Slurm knows all by the name of the run.
        """
        self._cancelled = True
        self._ends.set()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._already_ending)
        self._job_submission_executor.shutdown(wait=True, cancel_futures=True)
        if complaint := self._cancel():
            self._tell(f"jobs of this run may still run ({complaint}): end them with `{ending(self.run_uuid)}`")
            return
        due = time.monotonic() + ENDING_SECONDS
        while numbers_of(self.run_uuid)[0] and time.monotonic() < due:
            time.sleep(1.0)  # trainings write a checkpoint, which the next run goes on from

    def cancel_pending(self) -> None:
        """Cancel those jobs of this run that only wait in the queue, submit no more, and say what is waited for."""
        self._ends.set()
        for timer in list(self._timers.values()):
            timer.cancel()
        for job in list(self._timers):
            self.workflow.scheduler.error_callback(job)
        self._job_submission_executor.shutdown(wait=True)
        complaint = self._cancel("--states=PENDING")
        running = len(numbers_of(self.run_uuid, "--states=CONFIGURING,RUNNING,COMPLETING,SUSPENDED")[0])
        if complaint:
            self._tell(f"jobs in the queue may still start ({complaint}): end all with `{ending(self.run_uuid)}`")
        end = "; Ctrl-C or SIGINT ends those, too, after they save their state" if running else ""
        self._tell(f"stopping: waiting jobs are cancelled, the run waits for {running} running ones{end}")
        self.next_seconds_between_status_checks = 1

    def _cancel(self, *options: str) -> str:
        """Cancel the jobs of this run, those alone that options of `squeue` leave; return Slurm's complaint, empty where it did well.

        `scancel` takes one name at a time, and a number may stand for jobs of several clusters.
        """
        if self._submitted_job_clusters:
            states = [option.replace("--states", "--state") for option in options]
            commands = [["--clusters=all", *states, f"--name={name}"] for name in sorted(self._names)]
            return next(filter(None, [ask(["scancel", *command])[1] for command in commands]), "")
        numbers, complaint = numbers_of(self.run_uuid, *options)
        for at in range(0, len(numbers), NUMBERS_AT_ONCE):
            complaint = ask(["scancel", *numbers[at : at + NUMBERS_AT_ONCE]])[1] or complaint
        return complaint

    def _already_ending(self, number: int, frame: object) -> None:
        """Answer a further Ctrl-C, which would leave jobs and a lock behind."""
        self._tell("already stopping: jobs are cancelled, and the run waits until they have saved their state")

    async def check_active_jobs(self, active_jobs: Sequence[Any]) -> AsyncIterator[Any]:
        """Report the jobs that have ended, and yield the others."""
        settings = self.workflow.executor_settings
        ended: dict[str, str] = {}
        if active_jobs and not self._cancelled:  # without jobs this is called before the plugin is ready
            numbers = [job.external_jobid for job in active_jobs]
            ended = await asyncio.to_thread(self._states.ended, numbers, settings.status_command)
        for job in active_jobs:
            state = ended.get(job.external_jobid)
            if state is None:
                yield job
            else:
                self._report(job, state)
        longer = min(self.next_seconds_between_status_checks + 10, LONGEST_PAUSE)
        self.next_seconds_between_status_checks = longer if active_jobs and not ended else settings.init_seconds_before_status_checks

    def _report(self, job: Any, state: str) -> None:
        """Report how a job ended; Slurm's log of one that is known to have done well goes."""
        log = _log_of(job)
        if self._ends.is_set() and state == "CANCELLED":  # by us
            self._give_up(job.job)
            return
        if state not in DONE:
            message = f"SLURM-job '{job.external_jobid}' failed, SLURM status is: '{state}'. "
            self.report_job_error(job, msg=message, aux_logs=[str(log)], said=message)  # of a group, Snakemake passes on the last alone
            return
        self.report_job_success(job)
        if state != FORGOTTEN and not self.workflow.executor_settings.keep_successful_logs:
            with suppress(OSError):
                log.unlink(missing_ok=True)

    async def sleep(self) -> None:
        """Wait until the next query of jobs, and no longer than the run goes on."""
        due = time.monotonic() + self.next_seconds_between_status_checks
        while self.wait and time.monotonic() < due:
            await asyncio.sleep(1.0)
