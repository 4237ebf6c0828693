"""Stage systems: the values of a tuned system, chosen among its trials."""

from __future__ import annotations

from crosslign.jobs.job import Job
from crosslign.stages import STAGES
from crosslign.training.choice import write_choice


@STAGES.register(version=1)
def choose(job: Job) -> None:
    """Choose among the trials of one system."""
    with job.publish("choice") as (out, counts):
        counts.update(write_choice(job.params["recipe"], job.inputs["trials"], out["choice"]))
