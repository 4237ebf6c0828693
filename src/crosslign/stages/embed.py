"""Stage embeddings: one matrix per run, checkpoint, readout and text set."""

from __future__ import annotations

from pathlib import Path

from crosslign.encoders.encode import embed_text_set
from crosslign.stages.job import Job


def embed(job: Job) -> None:
    """Encode the distinct texts of one evaluation corpus."""
    recipe = job.params["recipe"]
    members = {name: Path(folder) for name, folder in job.params["members"].items()}
    with job.publish("embeddings") as (out, counts):
        counts.update(embed_text_set(members, job.inputs["texts"], recipe["readout_entry"], out["matrix"], job.threads))
        job.lineage.device = counts.pop("device", "cpu")
