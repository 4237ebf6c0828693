"""Stage claims: what the papers claim, and what our scores say of it."""

from __future__ import annotations

from pathlib import Path

from crosslign.jobs.job import Job
from crosslign.reporting.claims import build_claims
from crosslign.stages import STAGES


@STAGES.register(version=5)
def write_claims(job: Job) -> None:
    """Write the ledger of claims."""
    with job.publish("claims") as (out, counts):
        counts.update(build_claims(job.params["recipe"], Path(job.params["root"]), Path(job.params["published"]), out))
