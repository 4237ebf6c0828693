"""A user's own mining: scored pairs of sentences."""

from __future__ import annotations

from crosslign.files.text import read_json
from crosslign.jobs.job import Job
from crosslign.mining.calibration import asked_threshold
from crosslign.mining.lists import read_neighbours
from crosslign.mining.pairs import write_pairs
from crosslign.stages import STAGES


@STAGES.register(version=1)
def mine_pairs(job: Job) -> None:
    """Choose pairs and write them with their sentences."""
    recipe = job.params["recipe"]
    threshold = recipe["threshold"]
    if "calibration" in job.inputs and (recipe.get("precision") or recipe.get("recall")):
        threshold = asked_threshold(
            read_json(job.inputs["calibration"]), recipe.get("precision"), recipe.get("recall"), job.inputs["calibration"]
        )
    with job.publish("mined pairs") as (out, counts):
        counts.update(
            write_pairs(
                read_neighbours(job.inputs["neighbours"]),
                (job.inputs["source"], job.inputs["target"]),
                out,
                margin=recipe["margin"],
                retrieval=recipe["retrieval"],
                threshold=threshold,
                only_above=recipe["output"] == "above_threshold",
                encoders=recipe["encoders"],
            )
        )
