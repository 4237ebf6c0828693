"""Whether Slurm takes jobs at all: asked once, before a run starts, in the words that its jobs will use."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence

from crosslign.errors import InputError

SECONDS = 60.0


def require_scheduler(asked: Iterable[tuple[str | None, str | None]]) -> None:
    """Refuse a run whose jobs Slurm would refuse one by one, hours of local jobs later.

    Nothing is submitted: `sbatch --test-only` checks a job of one minute with each account and partition.

    Args:
        asked: account and partition of the jobs to come, as far as given; the same may come again.

    Raises:
        InputError: Slurm does not answer, or refuses; with its own words.
    """
    commands = [["sinfo", "--noheader", "--format=%P"]]
    for account, partition in dict.fromkeys(asked):
        own = [f"--account={account}"] * bool(account) + [f"--partition={partition}"] * bool(partition)
        commands.append(["sbatch", "--test-only", "--time=1", *own, "--wrap=true"])
    for command in commands:
        if complaint := ask(command)[1]:
            raise InputError(
                "Slurm takes no jobs of this run",
                where=" ".join(command),
                why=complaint,
                do="put your account and partition into slurm/local.yaml (docs/cluster.md), or try again when Slurm answers",
            )


def ask(command: Sequence[str]) -> tuple[str, str]:
    """Run a command that may be absent, fail or hang; return what it printed, and a complaint for people, empty where it did well."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        return "", f"there is no {command[0]} here: start the run on a login node"
    except subprocess.TimeoutExpired:
        return "", f"no answer within {SECONDS:g} s"
    return done.stdout, (done.stderr.strip() or f"exit code {done.returncode}")[:400] if done.returncode else ""
