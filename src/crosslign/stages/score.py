"""Stage scores: one JSON per run, checkpoint, readout and task."""

from __future__ import annotations

from crosslign.files import sha256_text
from crosslign.files.lineage import lineage_path
from crosslign.files.records import read_json
from crosslign.paths import EVALUATION_FILES
from crosslign.stages.job import Job
from crosslign.tasks.write import score_run


def score(job: Job) -> None:
    """Score the matrices of one task."""
    recipe = job.params["recipe"]
    roles = list(recipe["task_entry"]["texts"])
    matrices = job.by_name(roles, job.inputs["matrices"])
    tables = iter(job.inputs["sets"])
    sets = {role: {part: next(tables) for part in EVALUATION_FILES} for role in roles}
    sidecars = [read_json(lineage_path(matrices[role])) for role in roles]
    manifest = "".join(f"{item['path']} {item['sha256']}\n" for sidecar in sidecars for item in sidecar["inputs"])
    context = {
        **{key: recipe[key] for key in ("run_id", "system", "seed", "checkpoint", "readout", "profile")},
        **{key: recipe["readout_entry"][key] for key in ("pooling", "layer", "max_length", "precision")},
        "score_change": recipe["readout_entry"].get("score_change", ""),
        "checkpoint_sha": sha256_text("".join(sidecar["artefact"]["sha256"] for sidecar in sidecars)),
        "code_version": job.params["code"],
        "data_manifest_sha": sha256_text(manifest),
        "collapsed": next((found for sidecar in sidecars if (found := sidecar["counts"].get("collapsed"))), ""),
    }
    with job.publish("scores") as (out, counts):
        counts["records"] = len(score_run(recipe["task"], recipe["task_entry"], matrices, sets, out["scores"], context, out["resamples"]))
