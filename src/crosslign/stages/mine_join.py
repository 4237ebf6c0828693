"""A user's own mining: the ranges of the search, joined."""

from __future__ import annotations

from crosslign.jobs.job import DERIVED, Job
from crosslign.mining.lists import FOUND, joined, read_neighbours, write_neighbours
from crosslign.stages import STAGES


@STAGES.register(version=1)
def mine_join(job: Job) -> None:
    """Join what was found in the ranges of the sources; the bytes are those of one search, however many ranges there were."""
    with job.publish("neighbours") as (out, counts):
        near = joined((read_neighbours(folder / FOUND) for folder in job.inputs[DERIVED]), job.params["recipe"]["k"])
        write_neighbours(out["neighbours"], near)
        counts.update(
            sources=len(near.forward_indices), targets=len(near.backward_indices), k=near.forward_indices.shape[1], recall=near.recall
        )
