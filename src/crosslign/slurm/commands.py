"""Slurm's commands, asked as a person would: any of them may be absent, fail or hang."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

SECONDS = 60.0
QUEUE_FULL = re.compile(r"(?:Assoc|QOS)(?:Max|Grp)Submit\w+")
"""Slurm's words for as many jobs in the queue as a user or account may have there."""


def ask(command: Sequence[str]) -> tuple[str, str]:
    """Run a command that may be absent, fail or hang; return what it printed, and a complaint for people, empty where it did well."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        return "", f"there is no {command[0]} here: start the run on a login node"
    except subprocess.TimeoutExpired:
        return "", f"no answer within {SECONDS:g} s"
    return done.stdout, (done.stderr.strip() or f"exit code {done.returncode}")[:400] if done.returncode else ""


def accounting_complaint() -> str:
    """Return what `sacct` says where there is no accounting; empty where there is."""
    return ask(["sacct", "--noheader", "--starttime=now"])[1]
