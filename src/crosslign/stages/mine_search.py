"""A user's own mining: nearest neighbours of one range of the sources, in both directions."""

from __future__ import annotations

from pathlib import Path

from crosslign.devices import all_devices
from crosslign.jobs.job import Job
from crosslign.mining.backends import BACKENDS
from crosslign.mining.lines import with_line
from crosslign.mining.lists import State
from crosslign.mining.neighbour_files import FOUND, write_neighbours
from crosslign.stages import STAGES
from crosslign.vectors import VectorError


@STAGES.register(version=1)
def mine_search(job: Job) -> None:
    """Search one range of the sources in all targets, on every GPU of the job; goes on where an interrupted job stopped."""
    recipe = job.params["recipe"]
    devices = all_devices()
    job.lineage.device = ", ".join(devices)
    with job.publish("neighbours of a range") as (out, counts):
        search = BACKENDS.get(recipe["backend"])
        state, options = State(Path(job.params["work"]), version=job.lineage.version), recipe["search_options"]
        if recipe["parts"] > 1:  # which the exact search alone takes
            options = {"part": recipe["part"], "parts": recipe["parts"]}
        try:
            near = search(job.inputs["source"], job.inputs["target"], recipe["k"], devices=devices, state=state, **options)
        except VectorError as error:
            raise with_line(error, {job.inputs[side]: job.inputs[f"{side}_texts"] for side in ("source", "target")}) from error
        out["folder"].mkdir(parents=True)
        write_neighbours(out["folder"] / FOUND, near)
        counts.update(
            sources=len(near.forward_indices), targets=len(near.backward_indices), k=near.forward_indices.shape[1], recall=near.recall
        )
