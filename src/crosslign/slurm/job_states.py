"""States of Slurm jobs, also during an outage of the controller and after it has forgotten them."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable

from crosslign.slurm.commands import SECONDS, ask

PENDING_SECONDS = 1800.0
"""How long a job waits before its reason is told, and reasons are asked for again."""
LONGEST_ANSWER = 240.0
"""Seconds that an answer is waited for, at most: accounting of years takes its time on a busy day."""
FORGOTTEN = "UNKNOWN"
"""Slurm no longer knows the job: it has ended, and its files tell how."""
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
            "squeue": [f"--user={os.getuid()}", "--array", "--states=all", "--format=%i|%T"],  # of one user: Slurm then sends no others
            "sacct": ["--allocations", "--parsable2", "--clusters=all", f"--starttime={began}", "--format=JobID,State"],
        }
        self._twice: Counter[tuple[str, str]] = Counter()
        self._since: dict[str, float] = {}
        self._told: set[str] = set()
        self._due = float("-inf")
        self._answers, self._seconds = True, SECONDS

    def ended(self, run: str, jobs: Collection[str], command: str) -> dict[str, str]:
        """Return the last state of those jobs that have ended; none while Slurm does not answer.

        Args:
            run: name of the run, which all its jobs bear.
            jobs: numbers of the jobs, those of an array as `8_1`.
            command: `squeue`, or `sacct`, which may know a job later, and remembers it.
        """
        said, complaint = ask([command, "--noheader", f"--name={run}", *self._options[command]], self._seconds)
        if complaint and self._answers:
            self._tell(f"Slurm does not answer ({complaint}): its jobs run on, and are asked after until it does")
        self._answers = not complaint
        if complaint:
            self._seconds = min(2 * self._seconds, LONGEST_ANSWER)
            return {}
        states = {job: state.split()[0] for job, _, state in (line.partition("|") for line in said.splitlines()) if state.strip()}
        self._explain(job for job, state in states.items() if state == "PENDING")
        found = {job: states.get(job, FORGOTTEN if command == "squeue" else "") for job in jobs}
        self._twice = Counter({key: self._twice[key] + 1 for key in found.items() if key[1] in TWICE})
        return {job: state for job, state in found.items() if state in (*DONE[:1], *FAILED) or self._twice[job, state] > 1}

    def _explain(self, pending: Iterable[str]) -> None:
        """Tell why jobs wait that have waited for long: each of Slurm's reasons once."""
        now = time.monotonic()
        self._since = {job: self._since.get(job, now) for job in pending}
        waiting = sorted(job for job, since in self._since.items() if now - since >= self._patience)
        if not waiting or now < self._due:
            return
        self._due = now + self._patience
        said, complaint = ask(["squeue", "--noheader", "--array", "--states=PENDING", "--format=%i %r", f"--jobs={','.join(waiting)}"])
        reasons = defaultdict(list, {complaint: waiting} if complaint else {})
        for job, _, reason in (line.partition(" ") for line in said.splitlines()):
            reasons[reason.partition("UnavailableNodes")[0].strip(", ")].append(job)  # which are others each time
        new = {reason: jobs for reason, jobs in reasons.items() if reason not in self._told}
        self._told.update(new)
        for reason, jobs in new.items():
            named = ", ".join(jobs[:5]) + (", ..." if len(jobs) > 5 else "")
            self._tell(f"{len(jobs)} jobs have been pending for {self._patience / 60:.0f} minutes ({reason}): {named}")
