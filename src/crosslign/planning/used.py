"""What finished jobs used beside what their rules asked for, and how time grows with size: read from lineage."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression
from typing import Any

from crosslign.config.resources import stage_of
from crosslign.console import as_columns, bytes_text
from crosslign.errors import InputError
from crosslign.files.lineage import read_sidecar, sidecars_of, wall_seconds

SPAN = 3.0
"""Ratio of the largest to the smallest size from which on a slope is fitted."""
SHORTEST = 0.05
"""Seconds: a job below has no time of its own to fit."""
HEADS = ("rule", "jobs", "longest", "of asked", "largest memory", "of asked", "most disk", "of asked", "time grows as")


@dataclass(frozen=True)
class Use:
    """One finished job.

    Attributes:
        rule: of the job; one name for rules that share a stage.
        seconds: wall time, all parts of a job that went on.
        memory_mb: largest memory of its processes (MB).
        disk: bytes of its artefacts, and of what it gave back when it ended.
        read: bytes of its inputs.
        asked: `mem_mb`, `runtime` (minutes), `disk_mb` that it asked for; empty where lineage does not tell.
    """

    rule: str
    seconds: float
    memory_mb: float
    disk: int
    read: int
    asked: Mapping[str, float]

    @property
    def used(self) -> dict[str, float]:
        """What it used, under the names and in the units of `asked`."""
        return {"runtime": self.seconds / 60, "mem_mb": self.memory_mb, "disk_mb": self.disk / 1e6}

    def share(self, name: str) -> float | None:
        """Return which share of a request it used; None where it is not known to have asked."""
        return self.used[name] / self.asked[name] if self.asked.get(name) else None


def uses(results: Path) -> list[Use]:
    """Return the finished jobs of a results folder, each once; lineage that cannot be read is passed over."""
    jobs: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for path in sidecars_of(results):
        with suppress(InputError):
            content = read_sidecar(path)
            jobs[content.get("rule", ""), str(content.get("run", {}).get("started")), str(content.get("recipe"))].append(content)
    found = []
    for (rule, _, _), written in sorted(jobs.items()):
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            found.append(_use(rule, written))
    return found


def _use(rule: str, written: Sequence[Mapping[str, Any]]) -> Use:
    runs = [content["run"] for content in written]
    asked = {name: float(value) for name, value in runs[0].get("asked", {}).items()}
    size = sum(int(content["artefact"]["bytes"]) for content in written) + max(int(run.get("working_bytes", 0)) for run in runs)
    seconds, memory = max(map(wall_seconds, runs)), max(float(run["peak_mb"]) for run in runs)
    return Use(stage_of(rule), seconds, memory, size, int(runs[0].get("read_bytes", 0)), asked)


def exponent(jobs: Sequence[Use]) -> float | None:
    """Return the least-squares slope of log time over log bytes read: 1 is linear, 2 quadratic.

    Returns:
        None with fewer than three sizes, or where they span less than a factor of `SPAN`.
    """
    points = [(math.log(job.read), math.log(job.seconds)) for job in jobs if job.read > 0 and job.seconds > SHORTEST]
    if len({size for size, _ in points}) < 3 or max(points)[0] - min(points)[0] < math.log(SPAN):
        return None
    return linear_regression(*zip(*points, strict=True)).slope


def used_lines(jobs: Sequence[Use]) -> list[str]:
    """Return a table, a rule a line: the most that a job used, which share of its request that was, and the exponent of its time.

    The job that is shown in each column is the one whose share of its own request is largest.
    """
    by_rule: dict[str, list[Use]] = defaultdict(list)
    for job in jobs:
        by_rule[job.rule].append(job)
    rows: list[Sequence[str]] = [HEADS]
    for rule, found in sorted(by_rule.items()):
        cells = [rule, str(len(found))]
        for name in ("runtime", "mem_mb", "disk_mb"):
            share, used = max((job.share(name) or 0.0, job.used[name]) for job in found)
            text = f"{used:.1f} min" if name == "runtime" else bytes_text(used * 1e6)
            cells += [text, f"{share:.0%}" if any(job.asked.get(name) for job in found) else "-"]
        slope = exponent(found)
        rows.append([*cells, "-" if slope is None else f"size^{slope:.2f}"])
    return as_columns(rows, right=range(1, len(HEADS)))
