"""Stage corpora: the three tables of an evaluation corpus."""

from __future__ import annotations

from crosslign.corpora.build_evaluation import build_evaluation as build
from crosslign.jobs.job import Job
from crosslign.paths import EVALUATION_FILES
from crosslign.stages import STAGES


@STAGES.register(version=1)
def build_evaluation(job: Job) -> None:
    """Read or derive one evaluation corpus."""
    recipe = job.params["recipe"]
    files = {path.name: path for path in job.inputs.get("files", [])}
    corpora, parts = job.inputs.get("references", {}), job.inputs.get("parts", {})
    if "licence" in recipe["entry"]:  # a set made of others has theirs
        job.lineage.licences = [recipe["entry"]["licence"]]
    with job.publish("evaluation") as (out, counts):
        tables = {part: out[f"{part}_rows"] for part in EVALUATION_FILES}
        counts.update(build(recipe["corpus"], recipe["entry"], files, corpora, parts, tables, recipe["limit"]))
