"""Checks before a run that Slurm accepts its jobs: one test submission for each kind of resources."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.console import number_of
from crosslign.errors import InputError, ResourceError
from crosslign.files.atomic import write_text
from crosslign.slurm.commands import QUEUE_FULL, accounting_complaint, ask, ending, numbers_of
from crosslign.slurm.limits import Limits
from crosslign.slurm.profile import PER_CPU
from crosslign.slurm.queue import recorded

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
        raise InputError("slurm_extra is not a list of options", where=str(options), why=str(error), do="Close its quotes") from error


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


def most(jobs: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return for each rule, by its name, the resources of one job, with the most memory, time, devices and CPUs that any of them asks for.

    Args:
        jobs: name of the rule and resources of every job.
    """
    found: dict[str, dict[str, Any]] = {}
    for rule, resources in jobs:
        kept = found.setdefault(rule, dict(resources))
        kept |= {name: max(_number(kept.get(name)), _number(resources.get(name))) for name in ("mem_mb", "runtime", "gpu", "threads")}
    return found


def require_status(asked: Iterable[Mapping[str, Any]], command: str) -> None:
    """Refuse a run if Slurm cannot report the states of its jobs.

    Args:
        asked: resources of the jobs to come.
        command: `squeue`, which sees the jobs of its own cluster alone, or `sacct`, which wants accounting.

    Raises:
        InputError: jobs go to another cluster and `squeue` is asked, or `sacct` does not answer.
    """
    what, why, better = "", "", "squeue"
    if command == "sacct":
        what, why = "Slurm accounting is not available", accounting_complaint()
    elif any(given.get(name) for given in asked for name in CLUSTER):
        what, why, better = "jobs go to another cluster", "squeue shows only jobs of this cluster", "sacct"
    if why:
        raise InputError(what, why=why, do=f"Write `slurm-status-command: {better}` into slurm/local.yaml")


def require_alone(run: str, record: Path) -> None:
    """Refuse a run beside the jobs that a killed one has left in the queue: both would make the same files.

    Args:
        run: name of the run that starts.
        record: file that keeps it, as that of an earlier run, for the next start.

    Raises:
        ResourceError: there are such jobs; with the command that ends them.
    """
    earlier = recorded(record)
    asked = [numbers_of(name, "--states=PENDING,CONFIGURING,RUNNING,SUSPENDED") for name in earlier]
    if left := {name: len(jobs) for name, (jobs, _) in zip(earlier, asked, strict=True) if jobs}:
        what = f"{number_of(sum(left.values()), 'job')} of a killed run {'is' if sum(left.values()) == 1 else 'are'} still in the queue"
        why = "both runs would write the same files"
        raise ResourceError(what, why=why, do=f"Wait for them, or end them: {' && '.join(map(ending, left))}")
    silent = any(complaint for _, complaint in asked)
    write_text(record, "\n".join([*(earlier if silent else []), run]))


def require_scheduler(asked: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a run whose jobs Slurm would refuse one by one, hours of local jobs later, or let wait for ever.

    Nothing is submitted: `sbatch --test-only` checks a job with the options that each kind of job will have. A full queue is not a refusal:
    room in it is waited for. It takes a job that asks for more time than it can ever have; that is compared here.

    Args:
        asked: resources of the jobs to come, by the rule, or what else is to be named to people.

    Raises:
        InputError: Slurm does not answer, or refuses; with its own words, and the first rule that it refuses.
    """
    _require_answer(["sinfo", "--noheader", "--format=%P"], "")
    rules: dict[tuple[str, ...], str] = {}
    for rule, resources in asked.items():
        rules.setdefault(asked_of(resources), rule)
    for options, rule in rules.items():
        _require_answer(["sbatch", "--test-only", *options, "--wrap=true"], rule)
    limits = Limits()
    for rule, resources in asked.items():
        minutes, limit = limits.longest(resources, account_of(resources))
        if _number(resources.get("runtime")) > minutes:
            why = f"{rule} asks for {resources['runtime']} minutes, but {limit} allows at most {minutes:.0f}"
            do = f"Write `max_runtime: {minutes:.0f}` into the configuration (a training continues in more jobs), or name another partition"
            raise InputError("Slurm would accept these jobs, but never start them", why=why, do=f"{do} in slurm/local.yaml")


def too_long(asked: Mapping[str, Mapping[str, Any]], most_minutes: int) -> str:
    """Return what is to be said where further tries, which ask for more time, may ask for more than Slurm ever gives.

    Args:
        asked: resources of the first tries, by rule.
        most_minutes: that any try of any rule asks for (`max_runtime`).
    """
    limits = Limits()
    found = {
        limit: minutes for minutes, limit in (limits.longest(one, account_of(one)) for one in asked.values()) if most_minutes > minutes
    }
    if not found:
        return ""
    given = ", ".join(f"{limit} allows {minutes:.0f} minutes" for limit, minutes in sorted(found.items()))
    return f"retries may ask for up to {most_minutes} minutes, but {given}: set `max_runtime: {min(found.values()):.0f}`"


def _require_answer(command: Sequence[str], rule: str) -> None:
    """Refuse a run where a command of Slurm fails, but for a full queue."""
    complaint = ask(command)[1]
    if not complaint or QUEUE_FULL.search(complaint):
        return
    settings = "its limits into `max_mem_mb` and `max_runtime`"
    later = "nodes that are down or drained (sinfo --list-reasons) do not count"
    do = f"Put your cluster's names into slurm/local.yaml, {settings} (docs/cluster.md), or try again later: {later}"
    if any(word.startswith("--gpus") for word in command):
        block = "the block `where GPUs have a partition of their own` of docs/cluster.md"
        do = f"Name the GPU partition for rules like {rule} ({block}). Otherwise: {do}"
    raise InputError(
        "Slurm rejects jobs of this run" + (f": those of {rule}" if rule else ""), where=" ".join(command), why=complaint, do=do
    )
