"""What the runs of a results folder cost, from lineage alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosslign.config.resources import stage_of
from crosslign.files.lineage import gpu_hours, read_sidecar, sidecars_of, wall_seconds

SEED = re.compile(r"-s\d+$")
SECONDS = {"train_system": "train_s", "embed": "encode_s", "score": "score_s"}
"""What the time of each stage of a system is counted as."""


def sidecars(folder: Path) -> list[dict[str, Any]]:
    """Return the lineage of every artefact below a folder, in path order."""
    return [read_sidecar(path) for path in sidecars_of(folder)]


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


def system_costs(results: Path) -> list[SystemCost]:
    """Return what each system cost, dearest first; seeds of a system are added up.

    Args:
        results: the `{results}` folder; its systems, embeddings and scores are read.
    """
    lineages = [lineage for stage in ("systems", "embeddings", "scores") for lineage in sidecars(results / stage)]
    costs: dict[str, SystemCost] = {}
    for lineage in lineages:
        if (stage := stage_of(lineage["rule"])) in SECONDS:
            system = SEED.sub("", _run_of(lineage))
            costs.setdefault(system, SystemCost(system)).add(stage, lineage["run"])
    return sorted(costs.values(), key=lambda cost: (-(cost.train_s + cost.encode_s + cost.score_s), cost.system))
