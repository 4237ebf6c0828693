"""Stage sources: a file of a source as published, or all files of a source written as stand-ins."""

from __future__ import annotations

import os
from pathlib import Path

from crosslign.stages.job import Job


def fetch(job: Job) -> None:
    """Fetch one file, from a mirror first, verified by its checksum."""
    from crosslign.corpora.fetch import fetch_file

    recipe = job.params["recipe"]
    mirrors = [Path(folder) for folder in job.resources["mirrors"].split(os.pathsep) if folder]
    facts = fetch_file(recipe["source"], recipe["entry"], recipe["file"], job.outputs["file"], mirrors)
    job.lineage.licences = [recipe["entry"]["licence"]]
    job.write_lineage("download", [job.outputs["file"]], facts)


def write_stand_in(job: Job) -> None:
    """Write all files of a source in their official format from the project's own sentences."""
    from crosslign.corpora.stand_ins._file import write_file
    from crosslign.corpora.stand_ins._sentences import load_sentences

    recipe = job.params["recipe"]
    sentences = load_sentences(job.inputs["sentences"][0].parent)
    job.lineage.stand_in = True
    with job.publish("stand_in") as (out, counts):
        for file in recipe["files"]:
            write_file(out[file["name"]], recipe["entry"]["stand_in"], file["name"], sentences)
        counts["sentences"] = len(sentences)
