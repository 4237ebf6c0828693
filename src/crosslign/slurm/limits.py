"""How long Slurm lets a job run at most: by partition, QOS and association. `sbatch` takes longer ones, and they wait for ever."""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
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
        found = (dict(re.findall(r"(\w+)=(\S*)", line)) for line in ask(["scontrol", "show", "partition", "--oneliner"])[0].splitlines())
        self._partitions = {partition["PartitionName"]: partition for partition in found if "PartitionName" in partition}
        # Where they are not enforced, the limits of accounting stand there, and hold nobody.
        enforced = re.search(r"AccountingStorageEnforce\s*=.*\blimits\b", ask(["scontrol", "show", "config"])[0])
        own = ("user", getpass.getuser(), "withassoc", "format=Account,Partition,DefaultAccount,DefaultQOS,MaxWall")
        rows = _rows("qos", "format=Name,MaxWall,Flags") if enforced else []
        self._qos = {name: (minutes_of(wall), flags.split(",")) for name, wall, flags in rows}
        self._own = {(account, place): rest for account, place, *rest in _rows(*own)} if enforced else {}

    def longest(self, resources: Mapping[str, Any], account: str = "") -> tuple[float, str]:
        """Return the minutes that a job of these resources may ask for, and what limits it, in words; infinite where nothing does.

        Args:
            resources: of one job, by Snakemake's names.
            account: that it is submitted for; empty for the user's default one.
        """
        words = dict(WORD.findall(str(resources.get("slurm_extra") or "")))
        default = next((name for name, one in self._partitions.items() if one.get("Default") == "YES"), "")
        named = str(resources.get("slurm_partition") or words.get("partition") or default).split(",")
        qos = str(resources.get("qos") or words.get("qos") or "")
        return max(self._at(name, qos, account) for name in named)  # of several, one that takes the job is enough

    def _at(self, partition: str, qos: str, account: str) -> tuple[float, str]:
        """Return the least of what holds at one partition.

        Slurm takes the first limit that is set of the partition's QOS, the job's and the association, but for a job's QOS with the flag
        OverPartQOS, which comes before the partition's; the partition's own limit holds in any case, but for PartitionTimeLimit.
        """
        place = self._partitions.get(partition, {})
        account = account or next((by_default for by_default, *_ in self._own.values()), "")
        of_user = self._own.get((account, partition)) or self._own.get((account, ""))
        _, usual, wall = of_user or ("", "", "")
        qos = qos or usual or "normal"
        flags = self._qos.get(qos, (NO_LIMIT, []))[1]
        in_turn = [qos, place.get("QoS", "")] if "OverPartQOS" in flags else [place.get("QoS", ""), qos]
        walls = [(self._qos[name][0], f"QOS {name} (MaxWall)") for name in in_turn if name in self._qos]
        walls.append((minutes_of(wall), f"account {account} (MaxWall)"))
        found = [next((one for one in walls if one[0] != NO_LIMIT), (NO_LIMIT, ""))]
        if "PartitionTimeLimit" not in flags:
            found.append((minutes_of(place.get("MaxTime", "")), f"partition {partition} (MaxTime)"))
        return min(found)


def _rows(*asked: str) -> list[list[str]]:
    """Return the fields of each line that accounting answers with; none where it does not."""
    fields = asked[-1].count(",") + 1
    rows = (line.split("|") for line in ask([*ACCOUNTING, *asked])[0].splitlines())
    return [row for row in rows if len(row) == fields]
