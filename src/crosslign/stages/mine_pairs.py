"""A user's own mining: scored pairs of sentences."""

from __future__ import annotations

from crosslign.jobs.job import Job
from crosslign.mining.neighbour_files import read_neighbours
from crosslign.mining.pairs import write_pairs
from crosslign.stages import STAGES


@STAGES.register(version=1)
def mine_pairs(job: Job) -> None:
    """Choose pairs and write them with their sentences."""
    recipe = job.params["recipe"]
    with job.publish("mined pairs") as (out, counts):
        counts.update(
            write_pairs(
                read_neighbours(job.inputs["neighbours"]),
                (job.inputs["source"], job.inputs["target"]),
                out,
                margin=recipe["margin"],
                retrieval=recipe["retrieval"],
                threshold=recipe["threshold"],
                only_above=recipe["output"] == "above_threshold",
                encoders=recipe["encoders"],
            )
        )
