"""Stage sources: a file of a source as published."""

from __future__ import annotations

import os
from pathlib import Path

from crosslign.config.catalog import with_hints
from crosslign.corpora.fetch import alone_with, fetch_file
from crosslign.jobs.job import Job
from crosslign.stages import STAGES


@STAGES.register(version=1)
def fetch(job: Job) -> None:
    """Fetch one file, from a mirror first, verified by its checksum."""
    recipe = job.params["recipe"]
    mirrors = [Path(folder) for folder in job.resources["mirrors"].split(os.pathsep) if folder]
    source, file = with_hints(recipe["entry"], recipe["file"], job.resources["hints"])
    facts = fetch_file(recipe["source"], source, file, job.outputs["file"], mirrors)
    job.lineage.licences = [recipe["entry"]["licence"]]
    with alone_with(job.outputs["file"]):
        job.write_lineage("download", [job.outputs["file"]], facts)
