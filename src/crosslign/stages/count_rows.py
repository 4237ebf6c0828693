"""Stage tables: what a table counts of corpora, evaluation corpora and training sets."""

from __future__ import annotations

from crosslign.jobs.job import Job
from crosslign.reporting.counts import write_counts
from crosslign.stages import STAGES


@STAGES.register(version=1)
def count_rows(job: Job) -> None:
    """Write the counts of one table."""
    with job.publish("counts") as (out, counts):
        counts["records"] = write_counts(job.inputs["rows"], out["counts"])
