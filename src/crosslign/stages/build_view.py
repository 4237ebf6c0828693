"""Stage views: an augmented copy of a corpus."""

from __future__ import annotations

from pathlib import Path

from crosslign.jobs.job import Job
from crosslign.stages import STAGES
from crosslign.views import build


@STAGES.register(version=1)
def build_view(job: Job) -> None:
    """Build one view."""
    recipe = job.params["recipe"]
    corpora, models = job.inputs["corpora"], job.inputs.get("models", {})
    with job.publish("view") as (out, counts):
        counts.update(build.build_view(recipe["view"], recipe["entry"], corpora, out["rows"], Path(job.params["translations"]), models))
