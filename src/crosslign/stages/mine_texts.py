"""A user's own mining: the sentences of one side."""

from __future__ import annotations

from crosslign.jobs.job import Job
from crosslign.mining.texts import read_sentences
from crosslign.stages import STAGES


@STAGES.register(version=1)
def mine_texts(job: Job) -> None:
    """Read one side's file."""
    recipe = job.params["recipe"]
    job.lineage.licences = [recipe["licence"]]
    with job.publish("sentences") as (out, counts):
        counts.update(read_sentences(job.inputs["file"], recipe["lang"], out["rows"], recipe["dedup"], recipe["limit"]))
