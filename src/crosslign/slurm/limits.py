"""How long Slurm lets a job run at most: by partition, QOS and association. `sbatch` takes longer ones, and they wait for ever."""

from __future__ import annotations

import getpass
import re
from collections.abc import Iterator, Mapping
from typing import Any

from crosslign.slurm.commands import ask

NO_LIMIT = float("inf")
ACCOUNTING = ("sacctmgr", "--noheader", "--parsable2", "show")
WORD = re.compile(r"--(partition|qos)[= ]([\w,.-]+)")
"""Options of a `slurm_extra` that name a place."""


def minutes_of(text: str) -> float:
    """Return the minutes that Slurm's `days-hours:minutes:seconds` stands for; infinite for none and for what is no such text."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+)(?::(\d+))?", text.strip())
    if not match:
        return NO_LIMIT
    days, first, second, third = match.groups()
    # Two numbers are minutes and seconds, or hours and minutes behind days; one is minutes, or hours behind days.
    numbers = [int(number) for number in (first, second, third) if number is not None]
    if days is None and third is None:
        return float(numbers[0]) + (numbers[1] / 60 if len(numbers) > 1 else 0)
    hours, minutes, seconds = (*numbers, 0, 0)[:3]
    return int(days or 0) * 1440 + hours * 60 + minutes + seconds / 60


class Limits:
    """Longest times by partition, QOS and association, as Slurm tells them once; what it does not tell limits nothing."""

    def __init__(self) -> None:
        said = ask(["scontrol", "show", "partition", "--oneliner"])[0]
        found = (dict(re.findall(r"(\w+)=(\S*)", line)) for line in said.splitlines())
        self._partitions = {partition["PartitionName"]: partition for partition in found if "PartitionName" in partition}
        said = ask([*ACCOUNTING, "qos", "format=Name,MaxWall"])[0]
        self._qos = {name: minutes_of(wall) for name, _, wall in (line.partition("|") for line in said.splitlines())}
        said = ask([*ACCOUNTING, "user", getpass.getuser(), "withassoc", "format=Account,DefaultAccount,DefaultQOS,MaxWall"])[0]
        self._own = [line.split("|") for line in said.splitlines() if line.count("|") == 3]

    def longest(self, resources: Mapping[str, Any], account: str = "") -> tuple[float, str]:
        """Return the minutes that a job of these resources may ask for, and what limits it, in words; infinite where nothing does.

        Args:
            resources: of one job, by Snakemake's names.
            account: that it is submitted for; empty for the user's default one.
        """
        return min(self._found(resources, account), default=(NO_LIMIT, ""))

    def _found(self, resources: Mapping[str, Any], account: str) -> Iterator[tuple[float, str]]:
        words = dict(WORD.findall(str(resources.get("slurm_extra") or "")))
        default = next((name for name, one in self._partitions.items() if one.get("Default") == "YES"), "")
        named = str(resources.get("slurm_partition") or words.get("partition") or default).split(",")
        known = [self._partitions[name] for name in named if name in self._partitions]
        if known and len(known) == len(named):  # of several, one that takes the job is enough
            yield max((minutes_of(one.get("MaxTime", "")), f"partition {one['PartitionName']} (MaxTime)") for one in known)
        qos = str(resources.get("qos") or words.get("qos") or "")
        for own, by_default, usual, wall in self._own:
            if own == (account or by_default):
                yield minutes_of(wall), f"account {own} (MaxWall)"
                qos = qos or usual
        for name in {qos, *(one.get("QoS", "") for one in known[:1])} & self._qos.keys():
            yield self._qos[name], f"QOS {name} (MaxWall)"
