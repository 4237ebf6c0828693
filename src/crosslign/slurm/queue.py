"""Where the jobs of a run stand: in the queue, on nodes, or ended wrongly, as Slurm says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from crosslign.console import duration, number_of
from crosslign.errors import InputError
from crosslign.files.text import read_text
from crosslign.slurm.commands import ask, queued

RECORD = Path(".snakemake", "slurm_run")
"""Keeps the names of the last runs on Slurm, below the folder that they were started in."""
RUNS = re.compile(r"[\w-]+(\s+[\w-]+)*|")
WRONG = ("BOOT_FAIL", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT")
"""States of jobs that have ended wrongly; Snakemake tries most of them again."""
SINCE = "now-7days"
SHOWN = 20
"""Jobs on nodes that are listed one by one."""


def recorded(record: Path) -> list[str]:
    """Return the names of the last runs on Slurm that a record keeps; none where there is no record.

    Raises:
        InputError: it is damaged, or cannot be read.
    """
    text = read_text(record).strip() if record.exists() else ""
    if not RUNS.fullmatch(text):
        what, why = "not a record of runs", "it must contain names of runs on Slurm"
        raise InputError(what, where=str(record), why=why, do="Check with squeue that none of your jobs is left, then delete it")
    return text.split()


def _seconds(since: str, now: datetime) -> float:
    """Return how long ago a time of Slurm was; 0 where it says none."""
    try:
        return max(0.0, (now - datetime.fromisoformat(since)).total_seconds())
    except ValueError:
        return 0.0


def _own(said: str, runs: Sequence[str], fields: int) -> list[list[str]]:
    """Return the fields of each line whose second one, a job's name, ends with the name of a run, which is cut off."""
    rows = [row for line in said.splitlines() if len(row := line.strip().split("|")) == fields and row[1].endswith(tuple(runs))]
    return [[row[0], row[1].rpartition(".")[0] or row[1], *row[2:]] for row in rows]


def queue_lines(runs: Sequence[str], now: datetime) -> list[str]:
    """Return lines for people on the jobs of runs: how many wait, for what and how long; which run, since when; how many ended wrongly.

    Args:
        runs: their names, with which the names of their jobs end.
        now: the time, as Slurm tells it (local, without a zone).
    """
    said, complaint = queued("%i|%j|%T|%r|%V|%S")
    if complaint:
        return [f"the state of Slurm's queue is unknown: {complaint}"]
    waiting, running = defaultdict[str, list[float]](list), list[tuple[float, str]]()
    for _, name, state, reason, submitted, started in _own(said, runs, 6):
        if state == "PENDING":
            waiting[reason].append(_seconds(submitted, now))
        else:
            running.append((_seconds(started, now), name))
    lines = [f"Slurm: {number_of(len(running), 'job')} running, {sum(map(len, waiting.values()))} waiting"]
    lines += [f"  runs   {name}, for {duration(seconds)}" for seconds, name in sorted(running, reverse=True)[:SHOWN]]
    lines += [
        f"  waits  {number_of(len(times), 'job')} ({why}), the first for {duration(max(times))}" for why, times in sorted(waiting.items())
    ]
    ended, complaint = ask(["sacct", "--allocations", "--noheader", "--parsable2", f"--starttime={SINCE}", "--format=JobID,JobName,State"])
    if complaint:  # no accounting: the queue itself knows those that ended within MinJobAge
        ended = queued("%i|%j|%T", f"--states={','.join(WRONG)}")[0]
    wrong = [row for row in _own(ended, runs, 3) if row[2].partition(" ")[0] in WRONG]
    return [*lines, *(f"  ended  {name}: {state} (job {number})" for number, name, state in wrong[-SHOWN:])]
