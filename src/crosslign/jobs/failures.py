"""What failed in a run: rule, wildcards, cause, last lines, where the logs are, and what to do next."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslign.console import printable

LAST_LINES = 6
LARGEST = 1 << 24
"""Bytes at the end of a log that are read: how the job ended stands there."""
CAUSE = re.compile(r"^\S+ \S+ (?P<level>ERROR|CRITICAL) [\w.]+: (?P<text>.*)$")
SLURM_ID = re.compile(r"SLURM-job '(?P<id>[\w]+)' failed, SLURM status is: '(?P<state>\w+)'")
REFUSED = re.compile(r"(?:SLURM sbatch failed|[Ss]ubmission failed)[^\n]*")
ADVICE = {
    "TIMEOUT": "it ran out of time: run again with more retries, or raise max_runtime (docs/cluster.md)",
    "OUT_OF_MEMORY": "it ran out of memory: raise max_mem_mb or retries (each retry asks for more), or --set-resources {rule}:mem_mb=...",
    "CANCELLED": "it was cancelled: run the same command again; it continues from the finished work",
    "NODE_FAIL": "its node failed: run the same command again; a training continues from its saved state",
    "PREEMPTED": "it was preempted by another job: run the same command again; a training continues from its saved state",
}

IN_LOG = {
    "OUT_OF_MEMORY": re.compile(r"exceeded (?:job )?memory limit|oom[-_ ]kill|Out Of Memory", flags=re.IGNORECASE),
    "TIMEOUT": re.compile(r"DUE TO TIME LIMIT"),
}
"""Words of Slurm's log of a job that it calls FAILED all the same: so it does where a step was ended, without cgroups also for memory."""


@dataclass(frozen=True)
class Failure:
    """One failed try of a job.

    Attributes:
        rule: name of the rule.
        wildcards: of the job.
        logs: the job's own log first, then those of the scheduler.
        message: what the executor said.
        silent: whether the job itself wrote nothing; a log that lies there is an earlier try's.
    """

    rule: str
    wildcards: Mapping[str, str]
    logs: tuple[Path, ...]
    message: str = ""
    silent: bool = False

    @property
    def name(self) -> str:
        """Rule and wildcards, as one word each."""
        return " ".join([self.rule, *(f"{key}={value}" for key, value in self.wildcards.items())])

    @property
    def own(self) -> list[str]:
        """Lines that the job itself wrote."""
        return _lines(self.logs[0]) if self.logs and not self.silent else []

    @property
    def reason(self) -> str:
        """Slurm's word for how the job ended; where that is FAILED, the word that fits what stands in its log of the job."""
        said = SLURM_ID.search(self.message)
        state = said["state"] if said else ""
        lines = "\n".join(line for path in self.logs[1:] for line in _lines(path)) if state == "FAILED" else ""
        return next((name for name, pattern in IN_LOG.items() if pattern.search(lines)), state)

    @property
    def hopeless(self) -> bool:
        """Whether the job's last error is one that no further try fixes: input that cannot be used stays so."""
        levels = [match["level"] for line in self.own if (match := CAUSE.match(line))]
        return levels[-1:] == ["CRITICAL"]


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LARGEST))
            return [line for line in file.read(LARGEST).decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return []


def _written(fields: Mapping[str, Any]) -> int | None:
    """Return when the log that an event names first was last written, by its file system's clock; None where there is none."""
    try:
        return Path(str(next(iter(fields.get("log") or [])))).stat().st_mtime_ns
    except (OSError, StopIteration):
        return None


def _is_whole(fields: Mapping[str, Any]) -> bool:
    """Tell whether all that a job makes is there: in a group that failed, it is one of those that ended well."""
    output = [Path(str(path)) for path in fields.get("output") or ()]
    return bool(output) and all(path.exists() for path in output)


def explain(failure: Failure) -> Iterator[str]:
    """Yield the lines that explain one failure."""
    yield f"failed: {failure.name}"
    own = failure.own
    causes = [match["text"] for line in own if (match := CAUSE.match(line))]
    slurm = SLURM_ID.search(failure.message)
    if slurm:
        yield f"  slurm job {slurm['id']}: {slurm['state']}"
    if causes:
        yield f"  cause: {causes[-1]}"
    elif failure.reason in ADVICE:
        yield f"  cause: {ADVICE[failure.reason].format(rule=failure.rule)}"
    elif refused := REFUSED.search(failure.message):
        yield f"  cause: {refused[0]}"
    elif not own:
        yield "  cause: the job wrote no log: it did not start, or its disk is full; see the scheduler's log"
    shown = own or next((lines for path in failure.logs[1:] if (lines := _lines(path))), [])
    for line in shown[-LAST_LINES:]:
        yield f"  | {line}"
    for path in failure.logs:
        yield f"  log: {path}"
    yield "  next: fix the cause and run the same command again; finished jobs do not rerun"


class FailuresHandler(logging.Handler):
    """Gathers the failed jobs of the events that the workflow engine logs; a job that a later try finished is forgotten."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._failed: dict[str, Failure] = {}
        self._wildcards: dict[str, Mapping[str, Any]] = {}
        self._before: dict[str, int | None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Follow one event; records without one pass."""
        event, fields = str(getattr(record, "event", "")), record.__dict__
        if event == "job_info":
            job = str(fields.get("jobid"))
            self._wildcards[job] = dict(fields.get("wildcards") or {})
            self._before[job] = _written(fields)
        elif event == "job_error" and not fields.get("indent"):  # jobs of a group come once more, each by itself
            self._take(fields, ())
        elif event == "group_error":
            jobs = fields.get("job_error_info", [])
            for job in [job for job in jobs if not _is_whole(job)] or jobs:
                self._take(job, fields.get("aux_logs") or (), str(fields.get("said") or ""))
        elif event == "job_finished":
            self._failed.pop(str(fields.get("job_id")), None)

    def _take(self, fields: Mapping[str, Any], more: Sequence[str], said: str = "") -> None:
        logs = [*(fields.get("log") or []), *(fields.get("aux_logs") or []), *more]
        rule, message = str(fields.get("rule_name", "?")), str(fields.get("rule_msg") or fields.get("msg") or said)
        job = str(fields.get("jobid"))
        wildcards = {key: str(value) for key, value in self._wildcards.get(job, {}).items()}
        silent = job in self._before and _written(fields) == self._before[job]
        self._failed[job] = Failure(rule, wildcards, tuple(Path(str(log)) for log in logs if log), message, silent)

    def hopeless(self, job: object) -> bool:
        """Tell whether the last try of a job, named by its number, failed of what no further try fixes."""
        failure = self._failed.get(str(job))
        return failure is not None and failure.hopeless

    def text(self) -> str:
        """Return what is to be said of all jobs that stayed failed; empty where there are none."""
        return printable("\n".join(line for failure in self._failed.values() for line in explain(failure)))
