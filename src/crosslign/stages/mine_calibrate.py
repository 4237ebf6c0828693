"""A user's own mining: what planted pairs say of it."""

from __future__ import annotations

from crosslign.devices import all_devices
from crosslign.files.text import write_json
from crosslign.jobs.job import Job
from crosslign.mining.calibrate import calibrate
from crosslign.mining.lists import read_neighbours
from crosslign.paths import MINED_SIDES, PLANT_SIDES
from crosslign.stages import STAGES


@STAGES.register(version=4)
def mine_calibrate(job: Job) -> None:
    """Hide known pairs among the two sides and find them again."""
    recipe, near, devices = job.params["recipe"], read_neighbours(job.inputs["neighbours"]), all_devices()
    vectors, texts = ({side: job.inputs[f"{side}{of}"] for side in (*MINED_SIDES, *PLANT_SIDES)} for of in ("", "_texts"))
    job.lineage.device = ", ".join(devices)
    with job.publish("calibration") as (out, counts):
        found = calibrate(near, vectors, texts, recipe["margin"], recipe["retrieval"], device=devices)
        write_json(out["calibration"], found)
        counts.update(found["plants"])
