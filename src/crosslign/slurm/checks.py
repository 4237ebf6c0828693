"""Checks before a run that Slurm accepts its jobs: one test submission for each kind of resources."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crosslign.errors import InputError, ResourceError
from crosslign.files.atomic import write_text
from crosslign.slurm.commands import QUEUE_FULL, accounting_complaint, ask
from crosslign.slurm.profile import PER_CPU

CLUSTER = ("cluster", "clusters", "slurm_cluster")
"""Resources that name another cluster than the one here, as the executor reads them."""


def account_of(resources: Mapping[str, Any]) -> str:
    """Return the account that a job is submitted for, of several the first; empty where none is given."""
    return re.split(r"[,\s]+", str(resources.get("slurm_account") or "").strip())[0]


def _words(options: Any) -> list[str]:
    """Return the options of a `slurm_extra`, one by one."""
    try:
        return shlex.split(str(options))
    except ValueError as error:
        raise InputError("slurm_extra is no list of options", where=str(options), why=str(error), do="close its quotes") from error


def asked_of(resources: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the options that a job of these resources is submitted with, as the executor (2.8) names them.

    Args:
        resources: of one job, by Snakemake's names; None and 0 ask for nothing.

    Raises:
        InputError: the quotes of `slurm_extra` do not close.
    """
    given = {name: value for name, value in resources.items() if value not in (None, "", 0)}
    gpus = given.get("gpu")
    if model := given.get("gpu_model"):
        gpus = f"{model}:{gpus or 1}"
    cpus = given.get("cpus_per_task", given.get("threads"))
    options = {
        "clusters": next((given[name] for name in CLUSTER if name in given), None),
        "account": account_of(given),
        "partition": given.get("slurm_partition"),
        "time": given.get("runtime"),
        "constraint": given.get("constraint"),
        "qos": given.get("qos"),
        "reservation": given.get("reservation"),
        "mem-per-cpu": given.get(PER_CPU),
        "mem": None if PER_CPU in given else given.get("mem_mb"),
        "nodes": given.get("nodes"),
        "gres": given.get("gres"),
        "gpus": gpus,
        "cpus-per-task": cpus if isinstance(cpus, int) and cpus > 0 else None,  # a negative number asks for none
    }
    return (*(f"--{name}={value}" for name, value in options.items() if value), *_words(given.get("slurm_extra", "")))


def _number(value: Any) -> int:
    """Return a number as it is, and 0 for what is not known yet."""
    return value if isinstance(value, int) else 0


def most(jobs: Iterable[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return for each rule the resources of one job, with the most memory, time and devices that any of its jobs asks for.

    Args:
        jobs: name of the rule and resources of every job.
    """
    found: dict[str, dict[str, Any]] = {}
    for rule, resources in jobs:
        kept = found.setdefault(rule, dict(resources))
        kept |= {name: max(_number(kept.get(name)), _number(resources.get(name))) for name in ("mem_mb", "runtime", "gpu")}
    return list(found.values())


def require_status(asked: Iterable[Mapping[str, Any]], command: str) -> None:
    """Refuse a run whose jobs nobody could be asked after.

    Args:
        asked: resources of the jobs to come.
        command: `squeue`, which sees the jobs of its own cluster alone, or `sacct`, which wants accounting.

    Raises:
        InputError: jobs go to another cluster and `squeue` is asked, or `sacct` does not answer.
    """
    what, why, better = "", "", "squeue"
    if command == "sacct":
        what, why = "there is no accounting", accounting_complaint()
    elif any(given.get(name) for given in asked for name in CLUSTER):
        what, why, better = "jobs are to go to another cluster", "squeue knows those of this one alone", "sacct"
    if why:
        raise InputError(what, why=why, do=f"write `slurm-status-command: {better}` into slurm/local.yaml")


def require_alone(run: str, record: Path) -> None:
    """Refuse a run beside the jobs that a killed one has left in the queue: both would make the same files.

    Args:
        run: name of the run that starts.
        record: file that keeps it, as that of an earlier run, for the next start.

    Raises:
        ResourceError: there are such jobs; with the command that ends them.
    """
    earlier = record.read_text(encoding="utf-8").split() if record.exists() else []
    command = ["squeue", "--noheader", "--array", "--states=PENDING,CONFIGURING,RUNNING,SUSPENDED", "--format=%j"]
    said, complaint = ask([*command, f"--name={','.join(earlier)}"]) if earlier else ("", "")
    if left := Counter(name for name in said.split() if name in earlier):
        end = " && ".join(f"scancel --name={name}" for name in left)
        what, why = f"{left.total()} jobs of a run that was killed are still there", "both runs would make the same files"
        raise ResourceError(what, why=why, do=f"wait for them, or end them: {end}")
    write_text(record, "\n".join([*(earlier if complaint else []), run]))


def require_scheduler(asked: Iterable[Mapping[str, Any]]) -> None:
    """Refuse a run whose jobs Slurm would refuse one by one, hours of local jobs later.

    Nothing is submitted: `sbatch --test-only` checks a job with the options that each kind of job will have. A full queue is no refusal:
    room in it is waited for.

    Args:
        asked: resources of the jobs to come; the same may come again.

    Raises:
        InputError: Slurm does not answer, or refuses; with its own words.
    """
    commands = [["sinfo", "--noheader", "--format=%P"]]
    commands += [["sbatch", "--test-only", *options, "--wrap=true"] for options in dict.fromkeys(map(asked_of, asked))]
    for command in commands:
        complaint = ask(command)[1]
        if complaint and not QUEUE_FULL.search(complaint):
            limits = "its limits into `max_mem_mb` and `max_runtime`"
            later = "nodes that are down or drained (sinfo --list-reasons) count as none"
            do = f"put your cluster's names into slurm/local.yaml, {limits} (docs/cluster.md), or try again later: {later}"
            raise InputError("Slurm takes no jobs of this run", where=" ".join(command), why=complaint, do=do)
