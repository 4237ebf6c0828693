"""Stage corpora: the shards of a large source that one of several jobs filters."""

from __future__ import annotations

from crosslign.corpora.build import filter_shards as filtered
from crosslign.jobs.job import Job
from crosslign.stages import STAGES
from crosslign.stages.build_corpus import kept_shards, own_files


@STAGES.register(version=1)
def filter_shards(job: Job) -> None:
    """Read a source and filter this job's share of it; goes on where an interrupted job stopped."""
    recipe = job.params["recipe"]
    folder = job.outputs["folder"]
    shards = kept_shards(job, folder, recipe["part"], recipe["parts"])
    with job.publish("shards of a corpus") as (out, counts):
        counts.update(
            filtered(
                recipe["corpus"],
                recipe["entry"],
                own_files(job),
                job.inputs.get("references", {}),
                out["folder"],
                recipe["limit"],
                shards,
                threads=job.threads,
            )
        )
