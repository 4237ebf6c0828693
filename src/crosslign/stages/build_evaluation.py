"""Stage corpora: the three tables of an evaluation set."""

from __future__ import annotations

from crosslign.corpora.build_evaluation import build_evaluation as build
from crosslign.files.rows import EVALUATION_FILES
from crosslign.jobs.job import Job
from crosslign.stages import STAGES


@STAGES.register(version=1)
def build_evaluation(job: Job) -> None:
    """Read or derive one evaluation set."""
    recipe = job.params["recipe"]
    files = {path.name: path for path in job.inputs.get("files", [])}
    corpora = job.by_name(job.params["references"], job.inputs.get("references", []))
    made_of = iter(job.inputs.get("parts", []))
    parts = {corpus: {part: next(made_of) for part in EVALUATION_FILES} for corpus in recipe["entry"].get("of", [])}
    if "licence" in recipe["entry"]:  # a set made of others has theirs
        job.lineage.licences = [recipe["entry"]["licence"]]
    with job.publish("evaluation") as (out, counts):
        tables = {part: out[f"{part}_rows"] for part in EVALUATION_FILES}
        counts.update(build(recipe["corpus"], recipe["entry"], files, corpora, parts, tables, recipe["limit"]))
