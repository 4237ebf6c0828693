"""A base encoder as ordinary transformers folders, one per member."""

from __future__ import annotations

from crosslign.encoders.prepare import prepare_encoder as prepare
from crosslign.jobs.job import Job
from crosslign.stages import STAGES


@STAGES.register(version=1)
def prepare_encoder(job: Job) -> None:
    """Unpack, download, copy or construct one base encoder."""
    recipe = job.params["recipe"]
    files = {path.name: path for path in job.inputs.get("files", [])}
    job.lineage.licences = [recipe["entry"]["licence"]]
    with job.publish("encoder") as (out, counts):
        counts.update(prepare(recipe["encoder"], recipe["entry"], files, out["folder"], job.inputs.get("corpora", [])))
