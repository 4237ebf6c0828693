"""Stage examples: a training set in one of the four shapes."""

from __future__ import annotations

from pathlib import Path

from crosslign.entries.catalog import Readout
from crosslign.examples import Teach, build
from crosslign.jobs.job import Job
from crosslign.stages import STAGES


@STAGES.register(version=1)
def build_examples(job: Job) -> None:
    """Build one training set and keep evaluation texts out of it."""
    recipe = job.params["recipe"]
    corpora, evaluations, others = (job.inputs.get(kind, {}) for kind in ("corpora", "evaluations", "others"))
    teach = next((teacher_of(folder, recipe["readout"]) for folder in job.inputs.get("teacher", {}).values()), None)
    with job.publish("examples") as (out, counts):
        name, entry, limit = (recipe[key] for key in ("examples", "entry", "limit"))
        counts.update(build.build_examples(name, entry, corpora, evaluations, others, out["rows"], limit, teach))


def teacher_of(folder: Path, readout: Readout) -> Teach:
    """Return the function that gives a prepared encoder's vectors."""
    from crosslign.encoders.encode import encode
    from crosslign.encoders.model import Model

    model = Model.load({"main": folder / "main"})
    return lambda texts, langs: encode(model, texts, langs, readout).tolist()
