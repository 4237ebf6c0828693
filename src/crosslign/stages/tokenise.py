"""Stage tokenised: a training set, read by the tokenizers of an encoder."""

from __future__ import annotations

from pathlib import Path

from crosslign.encoders.model import Model
from crosslign.jobs.job import Job
from crosslign.stages import STAGES
from crosslign.training.tokenised import tokenise_examples


@STAGES.register(version=1)
def tokenise(job: Job) -> None:
    """Tokenise a training set once, for all trainings that read it alike."""
    model = Model.load({name: Path(folder) for name, folder in job.params["members"].items()}, weights=False)
    with job.publish("tokenised examples") as (out, counts):
        work = Path(job.params["work"])
        counts.update(tokenise_examples(job.inputs["examples"], out["folder"], work, model, job.params["recipe"], job.threads))
