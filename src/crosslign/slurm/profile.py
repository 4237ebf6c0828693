"""The user's own slurm/local.yaml, which is laid over the Slurm profile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.config.resources import RULES, STAND_IN_RULE
from crosslign.config.yaml_files import load_yaml
from crosslign.errors import InputError
from crosslign.registry import nearest

OWN_PROFILE = Path("slurm/local.yaml")
RESOURCES = "default-resources"
BY_RULE = "set-resources"
NAMES = ("slurm_account", "slurm_partition", "clusters", "constraint", "gpu_model", "gres", "qos", "reservation")
"""Resources whose texts are a cluster's own words."""
WORDS = ("account", "partition", "time", "mem", "gpu", "gpus", "nodes", "runtime", *(name for name in NAMES if "_" not in name))
"""What people write beside `default-resources`, and Snakemake knows no option for."""
PER_CPU = "mem_mb_per_cpu"
ASKED = (*NAMES, "mem_mb", "runtime", "gpu", "nodes", "cpus_per_task")
"""What of a rule's entry is asked of Slurm by `crosslign doctor`."""
ON_GPUS = ("train_system", "embed", "embed_large", "mine_embed", "mine_search")
"""Rules all of whose jobs ask for a GPU, where the configuration has any."""


def own_settings() -> dict[str, Any]:
    """Return what the user's own file lays over the Slurm profile, as it stands there; nothing where there is none.

    Raises:
        InputError: it is not a mapping, or gives resources elsewhere than below `default-resources`, or not as a mapping, or memory by CPU.
    """
    if not OWN_PROFILE.exists():
        return {}
    file = load_yaml(OWN_PROFILE)
    do = f"Write `key: value` lines, and resources under `{RESOURCES}` (docs/cluster.md)"
    if not isinstance(file.content, Mapping):
        raise InputError("the file must be a mapping of keys", where=str(OWN_PROFILE), do=do)
    for key in file.content:
        if "_" in key or key in WORDS:
            raise InputError(f"{key!r} is a resource, not an option of Snakemake", where=file.where([key]), do=do)
    for rule, given in _by_rule(file).items():
        where = file.where([BY_RULE, rule])
        if not any(rule == name or rule.endswith(f"_{name}") for name in RULES) and not rule.startswith(STAND_IN_RULE):
            raise InputError(
                f"unknown rule {rule!r}", where=where, why=nearest(rule, list(RULES)), do="Correct the name: Snakemake ignores it"
            )
        if not isinstance(given, Mapping):
            raise InputError("resources must be a mapping", where=where, why=f"found {given!r}", do=do)
    resources = file.content.get(RESOURCES) or {}
    if not isinstance(resources, Mapping):
        raise InputError("resources must be a mapping", where=file.where([RESOURCES]), why=f"found {resources!r}", do=do)
    if PER_CPU in resources:
        why = "it would override the memory that each rule declares, and retries would get no more"
        do = "Remove it: if Slurm limits memory per CPU, it gives a job the CPUs that its memory needs"
        raise InputError(f"{PER_CPU} cannot be set for all rules", where=file.where([RESOURCES, PER_CPU]), why=why, do=do)
    return {**file.content, RESOURCES: resources}


def _by_rule(file: Any) -> Mapping[str, Any]:
    """Return what a file gives single rules."""
    given = file.content.get(BY_RULE) or {}
    if not isinstance(given, Mapping):
        raise InputError("this must be a mapping of rules", where=file.where([BY_RULE]), do="Write one rule per line (docs/cluster.md)")
    return {str(rule): resources for rule, resources in given.items()}


def places() -> dict[str, dict[str, Any]]:
    """Return what the user's own file asks Slurm for: for all jobs, and for each rule that it names; expressions left out.

    Raises:
        InputError: as `own_settings`.
    """
    own = own_settings()
    for_all = own.get(RESOURCES, {})
    given = {"all jobs": for_all, **{rule: {**for_all, **more} for rule, more in (own.get(BY_RULE) or {}).items()}}
    asked = {rule: {key: one[key] for key in ASKED if key in one and not set("'\"") & set(str(one[key]))} for rule, one in given.items()}
    return {rule: {**one, **({"gpu": 1} if rule in ON_GPUS and "gpu" not in one else {})} for rule, one in asked.items()}


def own_profile() -> dict[str, Any]:
    """Return the user's own settings as Snakemake must get them: it takes the text of a resource for Python, so names are quoted.

    A partition `all` would be a function, an account `2021-5-12` a number. A text with quotes in it is an expression, and stays.
    """
    settings = own_settings()
    rules = settings.get(BY_RULE)
    if isinstance(rules, Mapping):
        settings[BY_RULE] = {rule: _quoted(given) if isinstance(given, Mapping) else given for rule, given in rules.items()}
    return {**settings, RESOURCES: _quoted(settings[RESOURCES])} if settings else {}


def _quoted(resources: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name for name, value in resources.items() if name in NAMES and isinstance(value, str) and not set("'\"") & set(value)}
    return {name: repr(value) if name in plain else value for name, value in resources.items()}
