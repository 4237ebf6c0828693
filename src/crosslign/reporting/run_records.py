"""What the runs of a results folder cost, from lineage alone."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosslign.config.resources import stage_of
from crosslign.console import duration, number_of
from crosslign.files.lineage import gpu_hours, read_sidecar, wall_seconds
from crosslign.planning.plan import Measured

Lineages = Sequence[Mapping[str, Any]]
SEED = re.compile(r"-s\d+$")
TOLD = ("python", "torch", "transformers", "numpy")
"""Packages whose versions the head of a report names; lineage has more."""
SECONDS = {"train_system": "train_s", "embed": "encode_s", "score": "score_s"}
"""What the time of each stage of a system is counted as."""


def read_lineages(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Return what lineage files hold, in the order of their paths."""
    return [read_sidecar(path) for path in sorted(paths)]


def of_kind(lineages: Lineages, kind: str) -> list[Mapping[str, Any]]:
    """Return the lineages of artefacts of one kind."""
    return [lineage for lineage in lineages if lineage["artefact"]["kind"] == kind]


def jobs_of(lineages: Lineages) -> list[Mapping[str, Any]]:
    """Return one lineage of each job: that of its artefact which was written last."""
    found: dict[str, Mapping[str, Any]] = {}
    for lineage in sorted(lineages, key=lambda lineage: wall_seconds(lineage["run"])):
        same = [lineage[key] for key in ("rule", "recipe", "inputs")] + [lineage.get("seed"), lineage["run"]["started"]]
        found[json.dumps(same, sort_keys=True)] = lineage
    return list(found.values())


def stage_times(lineages: Lineages) -> dict[str, Measured]:
    """Return what the jobs of each stage took."""
    jobs = defaultdict(list)
    for lineage in jobs_of(lineages):
        jobs[stage_of(lineage["rule"])].append((wall_seconds(lineage["run"]), float(lineage["run"]["peak_mb"])))
    return {stage: Measured(len(r), sum(s for s, _ in r), max(m for _, m in r)) for stage, r in sorted(jobs.items())}


def run_facts(lineages: Lineages) -> dict[str, str]:
    """Return what the head of a report says of the jobs behind it: when they ran, at which commits, with which seeds, on what."""
    runs = [lineage["run"] for lineage in jobs_of(lineages)]
    started = sorted(str(run["started"])[:16].replace("T", " ") for run in runs)
    versions = [lineage["versions"] for lineage in lineages if lineage["versions"]]
    facts = {
        "Jobs": f"{number_of(len(runs), 'job')}, {duration(sum(map(wall_seconds, runs)))} of wall time",
        "Started": " to ".join(dict.fromkeys((started[0], started[-1]))) if started else "",
        "Commit": _listed(str(run.get("commit") or "")[:12] for run in runs),
        "Seeds": _listed(lineage["seed"] for lineage in lineages if stage_of(lineage["rule"]) == "train_system"),
        "Machine": _listed(run.get("machine") for run in runs),
        "Computed on": _listed(
            f"{run['device']}{f', {run_count} devices' if (run_count := run.get('devices', 1)) > 1 else ''}" for run in runs
        ),
        "Versions": "; ".join(f"{name} {_listed(found.get(name, '') for found in versions)}" for name in TOLD if versions),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(sorted({str(value) for value in values} - {"", "None"}))


@dataclass
class SystemCost:
    """What one system cost, all its seeds together.

    Attributes:
        system: its id; a base encoder's, where nothing was trained.
        seeds: trained runs.
        train_s, encode_s, score_s: wall time, seconds.
        gpu_hours: hours of those jobs that computed on GPUs, times their devices.
        peak_mb: largest memory of any process of its jobs, MB; that of devices is not measured.
        devices: what its jobs computed on.
    """

    system: str
    seeds: int = 0
    train_s: float = 0.0
    encode_s: float = 0.0
    score_s: float = 0.0
    gpu_hours: float = 0.0
    peak_mb: float = 0.0
    devices: set[str] = field(default_factory=set)

    def add(self, rule: str, run: Mapping[str, Any]) -> None:
        """Count one finished job of a stage."""
        wall = wall_seconds(run)
        attribute = SECONDS[rule]
        setattr(self, attribute, getattr(self, attribute) + wall)
        self.seeds += rule == "train_system"
        self.gpu_hours += gpu_hours(run)
        self.peak_mb = max(self.peak_mb, float(run["peak_mb"]))
        self.devices.add(str(run["device"]))


def _run_of(lineage: Mapping[str, Any]) -> str:
    recipe = lineage["recipe"]
    return str(recipe.get("run_id") or recipe["run"])


def system_costs(lineages: Lineages) -> list[SystemCost]:
    """Return what each system cost, dearest first; seeds of a system are added up."""
    costs: dict[str, SystemCost] = {}
    for lineage in jobs_of(lineages):
        if (stage := stage_of(lineage["rule"])) in SECONDS:
            system = SEED.sub("", _run_of(lineage))
            costs.setdefault(system, SystemCost(system)).add(stage, lineage["run"])
    return sorted(costs.values(), key=lambda cost: (-(cost.train_s + cost.encode_s + cost.score_s), cost.system))
