"""Stage systems: one trained run."""

from __future__ import annotations

from pathlib import Path

from crosslign.paths import EVALUATION_FILES
from crosslign.stages.job import Job
from crosslign.training.run import train_run


def train_system(job: Job) -> None:
    """Train one run, or go on where a stopped one left off."""
    recipe = job.params["recipe"]
    base = {name: Path(folder) for name, folder in job.params["members"].items()}
    examples = job.by_name(job.params["examples"], job.inputs["examples"])
    tables = iter(job.inputs.get("selection", []))
    sets = {corpus: {part: next(tables) for part in EVALUATION_FILES} for corpus in job.params["selection"]}
    with job.publish("system") as (out, counts):
        counts.update(
            train_run(
                recipe,
                examples,
                base,
                sets,
                job.params["tasks"],
                out["folder"],
                Path(job.params["checkpoints"]),
                {"code": job.params["code"]},
            )
        )
        job.lineage.device = counts.pop("device", "cpu")
