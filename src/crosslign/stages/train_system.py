"""Stage systems: one trained run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from crosslign.config.entry_keys import KERNELS, PACE
from crosslign.config.resolve import put
from crosslign.entries.resolved import RunRecipe
from crosslign.files.text import read_json
from crosslign.jobs.job import DERIVED, Job
from crosslign.reporting.card import write_cards
from crosslign.stages import STAGES
from crosslign.training.launch import train_on
from crosslign.training.run import train_run


@STAGES.register(version=1)
def train_system(job: Job) -> None:
    """Train one run, or go on where a stopped one left off; one of a tuned system with the values that were chosen."""
    chosen = read_json(job.inputs["choice"])["chosen"] if "choice" in job.inputs else {}
    recipe = cast(RunRecipe, put(job.params["recipe"], chosen))
    paced = cast(RunRecipe, {**recipe, "train": {**recipe["train"], **{key: job.resources[key] for key in (*PACE, KERNELS)}}})
    base = {name: Path(folder) for name, folder in job.params["members"].items()}
    examples, tokenised, sets = job.inputs["examples"], job.inputs[DERIVED], job.inputs.get("selection", {})
    checkpoints, context = Path(job.params["checkpoints"]), {"version": job.lineage.version}
    with job.publish("system") as (out, counts):
        ranks = _ranks(job.resources.get("gpu", 0))
        if ranks > 1:
            arguments = {"examples": tokenised, "base": base, "sets": sets, "out": out["folder"], "checkpoints": checkpoints}
            plain = {"recipe": paced, "tasks": job.params["tasks"], "context": context}
            counts.update(train_on(ranks, {**_as_text(arguments), **plain}))
        else:
            counts.update(train_run(paced, tokenised, base, sets, job.params["tasks"], out["folder"], checkpoints, context))
        job.lineage.device, job.lineage.devices = counts.pop("device", "cpu"), ranks
        job.lineage.earlier_s, job.lineage.working_bytes = counts.pop("earlier_s"), counts.pop("working_bytes")
        counts.update({"chosen": chosen} if chosen else {})
        job.lineage.inherit()
        known = {"licences": job.lineage.licences, "stand_in": job.lineage.stand_in, "counts": counts}
        write_cards(recipe, out["folder"], known, examples)


def _ranks(gpus: int) -> int:
    """Return the number of processes: one a device that the job asked for and sees."""
    if gpus < 2:
        return 1
    import torch

    return max(1, min(gpus, torch.cuda.device_count()))


def _as_text(value: Any) -> Any:
    """Return nested mappings with their paths as text."""
    return {name: _as_text(inner) for name, inner in value.items()} if isinstance(value, Mapping) else str(value)
