"""Slurm's commands, asked as a person would: any of them may be absent, fail or hang."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence

SECONDS = 60.0
"""How long a command is waited for where nobody says."""
QUEUE_FULL = re.compile(r"(?:Assoc|QOS)(?:Max|Grp)Submit\w+")
"""Slurm's words for as many jobs in the queue as a user or account may have there."""

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
        return "", f"there is no {command[0]} here: start the run on a login node"
    except OSError as error:
        return "", f"{command[0]} cannot be run here: {error.strerror}"
    except subprocess.TimeoutExpired:
        return "", f"no answer within {limit:g} s"
    # Some clusters greet first: Slurm's own words come last.
    return done.stdout, (done.stderr.strip() or f"exit code {done.returncode}")[-400:] if done.returncode else ""


def accounting_complaint() -> str:
    """Return what `sacct` says where there is no accounting; empty where there is."""
    return ask(["sacct", "--noheader", "--starttime=now"])[1]
