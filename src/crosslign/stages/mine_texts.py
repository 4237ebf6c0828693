"""A user's own mining: the sentences of one side."""

from __future__ import annotations

from crosslign.jobs.job import Job
from crosslign.mining.texts import read_sentences


def mine_texts(job: Job) -> None:
    """Read one side's file."""
    recipe = job.params["recipe"]
    job.lineage.licences = [recipe["licence"]]
    with job.publish("sentences") as (out, counts):
        counts.update(read_sentences(job.inputs["file"], recipe["lang"], out["rows"], recipe["dedup"], recipe["limit"]))
