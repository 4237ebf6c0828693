"""Slurm's commands, asked as a person would: any of them may be absent, fail or hang."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence

SECONDS = 60.0
"""How long a command is waited for where nobody says."""
QUEUE_FULL = re.compile(r"(?:Assoc|QOS)(?:Max|Grp)Submit\w+|Resource temporarily unavailable")
"""Slurm's words for as many jobs in the queue as a user or account may have there, or as its controller remembers (`MaxJobCount`)."""

UNUSUAL = re.compile(r"[^\w.+@=-]")
"""What no name of a job holds: a comma parts names on command lines."""
MOST_SHOWN = 100
"""Letters of rule and wildcards in a job's name."""
OWN_HABITS = ("SACCT_", "SCANCEL_", "SINFO_", "SQUEUE_")
"""How the names of variables begin by which a person has these commands hide jobs, or ask back; those of `sbatch` say where jobs go."""


def ask(command: Sequence[str], seconds: float | None = None) -> tuple[str, str]:
    """Run a command that may be absent, fail or hang; return what it printed, and a complaint for people, empty where it did well.

    Args:
        command: with its options.
        seconds: how long it is waited for.
    """
    limit = seconds or SECONDS
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OWN_HABITS)}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=limit,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
    except FileNotFoundError:
        return "", f"{command[0]} is not available here: start the run on a login node"
    except OSError as error:
        return "", f"{command[0]} cannot be run here: {error.strerror}"
    except subprocess.TimeoutExpired:
        return "", f"no answer within {limit:g} s"
    # Some clusters greet first: Slurm's own words come last.
    return done.stdout, (done.stderr.strip() or f"exit code {done.returncode}")[-400:] if done.returncode else ""


def job_name(rule: str, wildcards: Iterable[str], run: str) -> str:
    """Return the name of a job in Slurm's lists: rule and wildcards, cut where they are long, and the run's name at its end.

    Args:
        rule: name of the rule, or of a group of jobs.
        wildcards: their values.
        run: name of the run.
    """
    shown = UNUSUAL.sub("-", ".".join([rule, *wildcards]))[:MOST_SHOWN]
    return f"{shown}.{run}"


def queued(fields: str, *options: str) -> tuple[str, str]:
    """Return a line for each of this user's jobs in the queue, those of arrays one by one, and a complaint where Slurm does not say.

    Args:
        fields: what is told of a job, as `squeue --format` takes it.
        options: further ones of `squeue`.
    """
    return ask(["squeue", "--noheader", f"--user={os.getuid()}", "--array", f"--format={fields}", *options])


def numbers_of(run: str, *options: str) -> tuple[list[str], str]:
    """Return the numbers of the jobs of a run that are in the queue, and a complaint where Slurm does not say.

    Args:
        run: name of the run, with which the names of its jobs end.
        options: further ones of `squeue`.
    """
    said, complaint = queued("%i %j", *options)
    return [number for number, _, name in (line.partition(" ") for line in said.splitlines()) if name.strip().endswith(run)], complaint


def ending(run: str) -> str:
    """Return the command with which a person ends all jobs of a run."""
    return f"squeue --me --noheader --format='%A %j' | awk '/{run}/ {{print $1}}' | xargs scancel"


def accounting_complaint() -> str:
    """Return the last line of what `sacct` says where there is no accounting; empty where there is."""
    return ask(["sacct", "--noheader", "--starttime=now"])[1].rpartition("\n")[2]
