"""Stage corpora: clean rows."""

from __future__ import annotations

from crosslign.corpora.build import build_corpus as build
from crosslign.jobs.job import Job
from crosslign.stages import STAGES


@STAGES.register(version=2)
def build_corpus(job: Job) -> None:
    """Read, filter and write one corpus."""
    recipe = job.params["recipe"]
    files = {path.name: path for path in job.inputs.get("files", [])}
    processes = int(job.resources.get("processes", job.threads))
    job.lineage.licences = [recipe["entry"]["licence"]]
    with job.publish("corpus") as (out, counts):
        counts.update(
            build(
                recipe["corpus"],
                recipe["entry"],
                files,
                job.inputs.get("references", {}),
                out["rows"],
                recipe["limit"],
                threads=processes,
            )
        )
