"""A user's own mining: nearest neighbours of one range of the sources, in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from crosslign.devices import all_devices
from crosslign.errors import InputError
from crosslign.files import read_rows
from crosslign.jobs.job import Job
from crosslign.mining.backends import BACKENDS
from crosslign.mining.lists import FOUND, State, write_neighbours
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
            raise _with_line(error, {job.inputs[side]: job.inputs[f"{side}_texts"] for side in ("source", "target")}) from error
        out["folder"].mkdir(parents=True)
        write_neighbours(out["folder"] / FOUND, near)
        counts.update(
            sources=len(near.forward_indices), targets=len(near.backward_indices), k=near.forward_indices.shape[1], recall=near.recall
        )


def _with_line(error: VectorError, texts: Mapping[Path, Path]) -> InputError:
    """Return the error with the line of the user's file whose vector it is.

    Args:
        error: names a matrix and a row of it.
        texts: by matrix, the rows of kind `texts` that it was made of: `text_id` is the line number, the file is called as its side.
    """
    rows = next((rows for matrix, rows in texts.items() if matrix.resolve() == Path(error.matrix).resolve()), None)
    if rows is None:
        return error
    line = read_rows(rows)["text_id"][error.row].as_py()
    where = f"{error.matrix}, row {error.row} (line {line} of the {rows.stem} file)"
    return InputError(error.what, where=where, do="Remove that line, or encode with another precision")
