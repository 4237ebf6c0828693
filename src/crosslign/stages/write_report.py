"""Stage report: every table and figure of a scale on one page."""

from __future__ import annotations

from pathlib import Path

from crosslign.jobs.job import Job
from crosslign.reporting.report import build_report
from crosslign.reporting.run_records import read_lineages
from crosslign.stages import STAGES


@STAGES.register(version=6)
def write_report(job: Job) -> None:
    """Write the report."""
    with job.publish("report") as (out, counts):
        counts.update(
            build_report(
                job.params["recipe"],
                Path(job.params["root"]),
                Path(job.params["published"]),
                job.inputs["figures"],
                read_lineages(job.inputs["lineages"]),
                out["page"],
                job.inputs["overlap"],
            )
        )
