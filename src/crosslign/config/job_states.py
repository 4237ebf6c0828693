"""States of Slurm's jobs, asked for through an outage: the executor's own query loses every job when one round of it fails."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from crosslign.config.scheduler import ask

ABSENT = 2
"""Answers in a row without a job that an earlier one held, after which Slurm has forgotten it."""
PENDING_SECONDS = 1800.0
"""How long a job waits before its reason is told."""

States = dict[str, str]
Query = Callable[[str, Any], Awaitable[tuple[States | None, float | None]]]


class JobStates:
    """Stands in for `query_job_status` of the Slurm executor (2.8), which calls it with a command and a logger.

    - A query that fails is an answer without jobs: the executor then asks for all of them again, where it would drop them all and
      wait for ever.
    - A job that an earlier answer held and the last two lack is UNKNOWN: the executor takes it for ended, and the engine looks
      whether its outputs are there. Without that it is asked after for ever.
    - The reasons of jobs that have been pending for half an hour are told once.

    Args:
        query: the executor's own.
        tell: where warnings go.
        pending_seconds: how long a job waits before its reason is told.
    """

    def __init__(self, query: Query, tell: Callable[[str], object], pending_seconds: float = PENDING_SECONDS) -> None:
        self._query, self._tell, self._patience = query, tell, pending_seconds
        self._absent: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._since: dict[str, float] = {}
        self._answers, self._explained = True, False

    async def __call__(self, command: str, logger: Any) -> tuple[States, float]:
        """Return the states by job id, and the seconds that the answer took."""
        states, seconds = await self._query(command, logger)
        if states is None:
            if self._answers:
                self._tell("Slurm does not answer: its jobs run on, and are asked after until it does")
            self._answers = False
            return {}, 0.0
        self._answers = True
        self._seen |= states.keys()
        self._absent = Counter({job: self._absent[job] + 1 for job in self._seen - states.keys()})
        await self._explain(job for job, state in states.items() if state == "PENDING")
        return states | {job: "UNKNOWN" for job, times in self._absent.items() if times >= ABSENT}, seconds or 0.0

    async def _explain(self, pending: Iterable[str]) -> None:
        """Tell once why jobs wait that have waited for long."""
        now = time.monotonic()
        self._since = {job: self._since.get(job, now) for job in pending}
        waiting = [job for job, since in self._since.items() if now - since >= self._patience]
        if not waiting or self._explained:
            return
        self._explained = True
        jobs = ",".join(sorted(waiting))
        said, complaint = await asyncio.to_thread(ask, ["squeue", "--noheader", "--format=%i %r", f"--jobs={jobs}"])
        lines = "; ".join(said.split("\n")[:5]).strip("; ")
        self._tell(f"{len(waiting)} jobs have been pending for {self._patience / 60:.0f} minutes: {lines or complaint}")
