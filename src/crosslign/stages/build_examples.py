"""Stage examples: a training set in one of the four shapes."""

from __future__ import annotations

from crosslign.examples import build
from crosslign.jobs.job import Job
from crosslign.stages import STAGES


@STAGES.register(version=1)
def build_examples(job: Job) -> None:
    """Build one training set and keep evaluation texts out of it."""
    recipe = job.params["recipe"]
    corpora, evaluations, others = (job.inputs.get(kind, {}) for kind in ("corpora", "evaluations", "others"))
    with job.publish("examples") as (out, counts):
        counts.update(build.build_examples(recipe["examples"], recipe["entry"], corpora, evaluations, others, out["rows"], recipe["limit"]))
