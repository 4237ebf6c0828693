"""What the screen says of a run: the jobs that start, and how long it will still take."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping

from crosslign.config.resources import stage_of
from crosslign.console import duration, number_of

UNKNOWN_SECONDS = 1.0
"""What a job counts of whose kind nothing is known and none has finished; the sum is then said to be a least one."""

SILENT_SECONDS = 60.0
"""After so long without a line a job that ends says so."""


class Remaining:
    """Expected seconds of the jobs that are left, from those that have finished.

    A rule's jobs are expected to take as long as its finished ones did on average; `expected` counts as one of them.

    Args:
        expected: seconds of a job, by rule, as measured before.
        at_once: gives the number of jobs that can run at once; asked when it is needed, since it may be known only then.
    """

    def __init__(self, expected: Mapping[str, float], at_once: Callable[[], int]) -> None:
        self._at_once = at_once
        self._known = {rule: [float(seconds)] for rule, seconds in expected.items()}
        self._left: Counter[str] = Counter()
        self._running: dict[int, tuple[str, float]] = {}

    def plan(self, counts: Mapping[str, int]) -> None:
        """Take note of the number of jobs of each rule."""
        self._left = Counter(counts)

    def start(self, job: int, rule: str, now: float) -> None:
        """Take note that a job began (again) at `now`, in seconds of any clock."""
        self._running[job] = (rule, now)

    def finish(self, job: int, now: float) -> None:
        """Take note that a job ended well."""
        if job in self._running:
            rule, start = self._running.pop(job)
            self._known.setdefault(rule, []).append(now - start)
            self._left[rule] -= 1

    def _mean(self, rule: str) -> float:
        known = self._known.get(rule)
        return sum(known) / len(known) if known else UNKNOWN_SECONDS

    def seconds(self, now: float) -> float:
        """Return the expected time until the last job ends: the work left, shared by those at once, but no less than the longest job."""
        rests = [max(0.0, self._mean(rule) - (now - start)) for rule, start in self._running.values()]
        waiting = self._left - Counter(rule for rule, _ in self._running.values())
        work = sum(rests) + sum(self._mean(rule) * count for rule, count in waiting.items())
        longest = max([*rests, *(self._mean(rule) for rule, count in waiting.items() if count)], default=0.0)
        return max(work / max(1, self._at_once()), longest)

    def text(self, now: float) -> str:
        """Return the expected time in words: at least so much where kinds of jobs are left that have not run; none where all are such."""
        left = {rule for rule, count in self._left.items() if count > 0}
        unknown = left - self._known.keys()
        if left and unknown == left:
            return ""
        return f", {'at least' if unknown else 'about'} {duration(self.seconds(now))}"


class RemainingHandler(logging.Handler):
    """Reads the events that the workflow engine logs (`event` of a record), and prints a line a job that starts on standard error.

    The line says how many jobs are done, and the time left; a job that ends says so where no line was written for a while.

    Args:
        remaining: the estimate.
        starts: gives whether jobs that start are named: in a dry run the engine does that itself.
    """

    def __init__(self, remaining: Remaining, starts: Callable[[], bool] = lambda: True) -> None:
        super().__init__(logging.INFO)
        self._remaining, self._starts = remaining, starts
        self._total = self._done = 0
        self._said = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Follow one event; records without one pass."""
        event, now = str(getattr(record, "event", "")), time.monotonic()
        if event == "run_info" and not self._total:
            counts: Counter[str] = Counter()
            for rule, jobs in record.__dict__["stats"].items():
                counts[stage_of(rule)] += jobs if rule != "total" else 0
            self._total = counts.total()
            self._remaining.plan(counts)
            time_in_all = self._remaining.text(now)
            self._print(f"[{number_of(self._total, 'job')}{time_in_all}{' in all' if time_in_all else ''}]", now)
        elif event == "job_info":
            job, rule = record.__dict__["jobid"], record.__dict__["rule_name"]
            self._remaining.start(job, stage_of(rule), now)
            message, makes = record.__dict__.get("rule_msg"), record.__dict__.get("output")
            if self._starts() and (message or makes):  # a target alone does nothing
                self._print(f"Job {job}: {message or f'rule {rule}'} {self._left(now)}", now)
        elif event == "job_finished":
            self._done += 1
            self._remaining.finish(record.__dict__["job_id"], now)
            if now - self._said > SILENT_SECONDS or self._done == self._total:
                self._print(self._left(now), now)

    def _left(self, now: float) -> str:
        time_left = self._remaining.text(now) if self._done < self._total else ""
        return f"[{self._done} of {number_of(self._total, 'job')} done{time_left}{' left' if time_left else ''}]"

    def _print(self, text: str, now: float) -> None:
        self._said = now
        print(text, file=sys.stderr, flush=True)


class BriefFilter(logging.Filter):
    """Keeps from the engine's own stream what `RemainingHandler` says shorter, and what is for the log file; errors and warnings pass.

    Args:
        whole: gives whether all is shown all the same: in a dry run, or where the user asks for more.
    """

    EVENTS = frozenset({"job_info", "job_started", "job_finished", "progress", "workflow_started"})

    def __init__(self, whole: Callable[[], bool]) -> None:
        super().__init__()
        self._whole = whole

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record is shown."""
        if record.levelno > logging.INFO or self._whole():
            return True
        told = str(getattr(record, "event", "")) in self.EVENTS or hasattr(record, "quietness")
        return not told and not str(record.msg).startswith("Select jobs to execute")
