"""Stage sources: all files of a source, written as synthetic data."""

from __future__ import annotations

from crosslign.corpora.stand_ins._file import write_file
from crosslign.corpora.stand_ins._sentences import load_sentences
from crosslign.jobs.job import Job
from crosslign.stages import STAGES


@STAGES.register(version=1)
def write_stand_in(job: Job) -> None:
    """Write all files of a source in their official format from the project's own sentences."""
    recipe = job.params["recipe"]
    sentences = load_sentences(job.inputs["sentences"][0].parent)
    job.lineage.stand_in = True
    with job.publish("stand_in") as (out, counts):
        for file in recipe["files"]:
            write_file(out[file["name"]], recipe["entry"]["stand_in"], file["name"], sentences)
        counts["sentences"] = len(sentences)
