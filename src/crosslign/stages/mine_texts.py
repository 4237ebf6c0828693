"""A user's own mining: the sentences of one side."""

from __future__ import annotations

from crosslign.jobs.job import Job, all_paths
from crosslign.mining.texts import read_sentences
from crosslign.stages import STAGES


@STAGES.register(version=2)
def mine_texts(job: Job) -> None:
    """Read one side's files."""
    recipe = job.params["recipe"]
    job.lineage.licences = [recipe["licence"]]
    with job.publish("sentences") as (out, counts):
        form = {key: recipe[key] for key in ("column", "split") if key in recipe}
        files = all_paths(job.inputs["file"])
        counts.update(read_sentences(files, recipe["lang"], out["rows"], recipe["dedup"], recipe["limit"], **form))
