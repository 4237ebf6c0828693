"""Whether Slurm takes jobs at all: asked once, before a run starts, in the words that its jobs will use."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.config.yaml_files import load_yaml
from crosslign.errors import InputError, ResourceError
from crosslign.files.atomic import write_text

SECONDS = 60.0
OWN_PROFILE = Path("slurm/local.yaml")
RESOURCES = "default-resources"
NAMES = ("slurm_account", "slurm_partition", "clusters", "constraint", "gpu_model", "gres", "qos", "reservation")
"""Resources whose texts are a cluster's own words."""
WORDS = ("account", "partition", "time", "mem", "gpu", "gpus", "nodes", "runtime", *(name for name in NAMES if "_" not in name))
"""What people write beside `default-resources`, and Snakemake knows no option for."""
CLUSTER = ("cluster", "clusters", "slurm_cluster")
"""Resources that name another cluster than the one here, as the executor reads them."""
PER_CPU = "mem_mb_per_cpu"
QUEUE_FULL = re.compile(r"(?:Assoc|QOS)(?:Max|Grp)Submit\w+")
"""Slurm's words for as many jobs in the queue as a user or account may have there."""


def own_settings() -> dict[str, Any]:
    """Return what the user's own file lays over the Slurm profile, as it stands there; nothing where there is none.

    Raises:
        InputError: it is no mapping, or gives resources elsewhere than below `default-resources`, or not as a mapping, or memory by CPU.
    """
    if not OWN_PROFILE.exists():
        return {}
    file = load_yaml(OWN_PROFILE)
    content = {} if file.content is None else file.content
    do = f"Write `key: value` lines, those of resources below `{RESOURCES}` (docs/cluster.md)"
    if not isinstance(content, Mapping):
        raise InputError("this is no mapping of keys", where=str(OWN_PROFILE), do=do)
    for key in content:
        if "_" in key or key in WORDS:
            raise InputError(f"{key!r} is a resource, no option of Snakemake", where=file.where([key]), do=do)
    resources = content.get(RESOURCES) or {}
    if not isinstance(resources, Mapping):
        raise InputError("resources are a mapping here", where=file.where([RESOURCES]), why=f"found {resources!r}", do=do)
    if PER_CPU in resources:
        why = "it would replace the memory that each rule declares, and no further try would get more"
        do = "Leave it out: where Slurm limits memory by CPU, it gives a job as many CPUs as its memory needs"
        raise InputError(f"no {PER_CPU} for all rules", where=file.where([RESOURCES, PER_CPU]), why=why, do=do)
    return {**content, RESOURCES: resources}


def own_profile() -> dict[str, Any]:
    """Return the user's own settings as Snakemake must get them: it takes the text of a resource for Python, so names are quoted.

    A partition `all` would be a function, an account `2021-5-12` a number. A text with quotes in it is an expression, and stays.
    """
    settings = own_settings()
    rules = settings.get("set-resources")
    if isinstance(rules, Mapping):
        settings["set-resources"] = {rule: _quoted(given) if isinstance(given, Mapping) else given for rule, given in rules.items()}
    return {**settings, RESOURCES: _quoted(settings[RESOURCES])} if settings else {}


def _quoted(resources: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name for name, value in resources.items() if name in NAMES and isinstance(value, str) and not set("'\"") & set(value)}
    return {name: repr(value) if name in plain else value for name, value in resources.items()}


def asked_of(resources: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the options that a job of these resources is submitted with, as the executor (2.8) names them.

    Args:
        resources: of one job, by Snakemake's names; None and 0 ask for nothing.
    """
    given = {name: value for name, value in resources.items() if value not in (None, "", 0)}
    accounts = re.split(r"[,\s]+", str(given.get("slurm_account", "")))
    gpus = given.get("gpu")
    if model := given.get("gpu_model"):
        gpus = f"{model}:{gpus or 1}"
    cpus = given.get("cpus_per_task", given.get("threads"))
    options = {
        "clusters": next((given[name] for name in CLUSTER if name in given), None),
        "account": accounts[0],
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
    return (*(f"--{name}={value}" for name, value in options.items() if value), *shlex.split(str(given.get("slurm_extra", ""))))


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


def accounting_complaint() -> str:
    """Return what `sacct` says where there is no accounting; empty where there is."""
    return ask(["sacct", "--noheader", "--starttime=now"])[1]


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
            do = f"put your cluster's names into slurm/local.yaml, {limits} (docs/cluster.md), or try again when Slurm answers"
            raise InputError("Slurm takes no jobs of this run", where=" ".join(command), why=complaint, do=do)


def ask(command: Sequence[str]) -> tuple[str, str]:
    """Run a command that may be absent, fail or hang; return what it printed, and a complaint for people, empty where it did well."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        return "", f"there is no {command[0]} here: start the run on a login node"
    except subprocess.TimeoutExpired:
        return "", f"no answer within {SECONDS:g} s"
    return done.stdout, (done.stderr.strip() or f"exit code {done.returncode}")[:400] if done.returncode else ""
