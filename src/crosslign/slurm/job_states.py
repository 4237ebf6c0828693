"""States of Slurm jobs, also during an outage of the controller and after it has forgotten them."""

from __future__ import annotations

import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence

from crosslign.console import duration, number_of
from crosslign.slurm.commands import SECONDS, ask

PENDING_SECONDS = 1800.0
"""How long a job waits before its reason is told, and reasons are asked for again."""
LONGEST_ANSWER = 240.0
"""Seconds that an answer is waited for, at most: accounting of years takes its time on a busy day."""
TOO_LONG = re.compile(r"PartitionTimeLimit|MaxWallDurationPerJobLimit|TimeLimit\b")
"""Slurm's words where a job asks for more time than its partition, QOS or account ever gives."""
NEVER = re.compile(
    rf"{TOO_LONG.pattern}|PartitionNodeLimit|PartitionConfig|BadConstraints|InvalidAccount|InvalidQOS|AccountNotAllowed|QOSNotAllowed"
    r"|(?:QOS|Assoc)Max\w+PerJob\w*|MaxMemPerLimit|DependencyNeverSatisfied|requeued (?:in )?(?:held|special exit)|JobHeldAdmin"
)
"""Slurm's reasons that waiting does not end: it takes such jobs unless its administrator says otherwise (`EnforcePartLimits`)."""
FORGOTTEN = "UNKNOWN"
"""Slurm no longer knows the job: it has ended, and its files tell how."""
WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")
"""States of jobs that wait: accounting tells of those that were put back by other words than `squeue`."""
DONE = ("COMPLETED", FORGOTTEN)
FAILED = ("BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "TIMEOUT")
TWICE = ("NODE_FAIL", "PREEMPTED", FORGOTTEN)
"""States that count when two answers in a row have them: Slurm puts such a job back into the queue at once, or never."""


class JobStates:
    """Asks after the jobs of one run.

    Args:
        tell: where warnings go.
        pending_seconds: how long a job waits before its reason is told.
    """

    def __init__(self, tell: Callable[[str], object], pending_seconds: float = PENDING_SECONDS) -> None:
        self._tell, self._patience = tell, pending_seconds
        began = time.strftime("%Y-%m-%dT%H:%M", time.localtime(time.time() - 3600))  # the default is midnight
        self._options = {
            "squeue": ["--array", "--states=all", "--format=%i|%T"],
            "sacct": ["--allocations", "--parsable2", "--clusters=all", f"--starttime={began}", "--format=JobID,State"],
        }
        self._twice: Counter[tuple[str, str]] = Counter()
        self._since: dict[str, float] = {}
        self._told: set[str] = set()
        self._due = float("-inf")
        self._answers, self._seconds = True, SECONDS

    def ended(self, jobs: Collection[str], command: str) -> dict[str, str]:
        """Return the last state of those jobs that have ended; none while Slurm does not answer.

        Args:
            jobs: numbers of the jobs, those of an array as `8_1`.
            command: `squeue`, or `sacct`, which may know a job later, and remembers it.
        """
        of_one = f"--user={os.getuid()}"  # Slurm then sends no others
        said, complaint = ask([command, "--noheader", of_one, *self._options[command]], self._seconds)
        if complaint and self._answers:
            other = "; if accounting does not return, end the run, and start it again with `slurm-status-command: squeue`"
            more = other if command == "sacct" else ""
            self._tell(
                f"Slurm does not answer ({complaint.splitlines()[-1]}): jobs continue, and their states are requested until it does{more}"
            )
        self._answers = not complaint
        if complaint:
            self._seconds = min(2 * self._seconds, LONGEST_ANSWER)
            return {}
        states = {job: state.split()[0] for job, _, state in (line.partition("|") for line in said.splitlines()) if state.strip()}
        self._explain([job for job in jobs if states.get(job) in WAITING])
        found = {job: states.get(job, FORGOTTEN if command == "squeue" else "") for job in jobs}
        self._twice = Counter({key: self._twice[key] + 1 for key in found.items() if key[1] in TWICE})
        return {job: state for job, state in found.items() if state in (*DONE[:1], *FAILED) or self._twice[job, state] > 1}

    def _explain(self, pending: Sequence[str]) -> None:
        """Tell why jobs wait: at once where that never passes, and else where they have waited for long; each of Slurm's reasons once."""
        now = time.monotonic()
        new = [job for job in pending if job not in self._since]
        self._since = {job: self._since.get(job, now) for job in pending}
        waiting = sorted(job for job, since in self._since.items() if now - since >= self._patience) if now >= self._due else []
        if not waiting and not new:
            return
        self._due = now + self._patience if waiting else self._due
        asked = f"--jobs={','.join(sorted({*waiting, *new}))}"
        said, complaint = ask(["squeue", "--noheader", "--array", "--states=PENDING", "--format=%i %r", asked])
        reasons = defaultdict(list, {complaint: waiting} if complaint else {})
        for job, _, reason in (line.partition(" ") for line in said.splitlines()):
            if job in waiting or NEVER.search(reason):
                reasons[reason.partition("UnavailableNodes")[0].strip(", ")].append(job)  # which are others each time
        fresh = {reason: jobs for reason, jobs in reasons.items() if jobs and reason not in self._told}
        self._told.update(fresh)
        for reason, jobs in fresh.items():
            named = ", ".join(jobs[:5]) + (", ..." if len(jobs) > 5 else "")
            if NEVER.search(reason):
                self._tell(f"{number_of(len(jobs), 'job')} can never start as configured ({reason}): {named}; {remedy(reason)}")
            else:
                have = "has" if len(jobs) == 1 else "have"
                self._tell(f"{number_of(len(jobs), 'job')} {have} been pending for {duration(self._patience)} ({reason}): {named}")


def remedy(reason: str) -> str:
    """Return what to do about a reason that never passes."""
    if TOO_LONG.search(reason):
        return "end the run, write `max_runtime: <allowed minutes>` into the configuration, and start it again"
    if "held" in reason.lower():
        return "see its Slurm log, then run `scontrol release <job id>`"
    return "end the run, fix slurm/local.yaml or `max_mem_mb` of the configuration, and start it again"
