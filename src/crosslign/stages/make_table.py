"""Stage tables: one table in four formats."""

from __future__ import annotations

from pathlib import Path

from crosslign.jobs.job import Job
from crosslign.reporting.formats import build_table
from crosslign.stages import STAGES


@STAGES.register(version=8)
def make_table(job: Job) -> None:
    """Make one table from its score files."""
    with job.publish("table") as (out, counts):
        counts.update(build_table(job.params["recipe"], Path(job.params["root"]), Path(job.params["published"]), out))
