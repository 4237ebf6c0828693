"""Stage overview: one page that links all tables and figures."""

from __future__ import annotations

from pathlib import Path

from crosslign.jobs.job import Job
from crosslign.reporting.overview import build_overview
from crosslign.stages import STAGES


@STAGES.register(version=4)
def write_overview(job: Job) -> None:
    """Write the overview."""
    with job.publish("overview") as (out, counts):
        counts.update(build_overview(job.params["recipe"], Path(job.params["root"]), Path(job.params["published"]), out))
