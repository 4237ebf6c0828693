"""A user's own mining: the vectors of one side."""

from __future__ import annotations

from pathlib import Path

from crosslign.config.entry_keys import KERNELS
from crosslign.encoders.matrices import embed_texts
from crosslign.files.lineage import lineage_path
from crosslign.files.text import read_json
from crosslign.jobs.job import Job
from crosslign.stages import STAGES


@STAGES.register(version=1)
def mine_embed(job: Job) -> None:
    """Encode one side's sentences; goes on where an interrupted job stopped."""
    recipe = job.params["recipe"]
    members = {name: Path(folder) for name, folder in job.params["members"].items()}
    made_of = [read_json(lineage_path(job.inputs[name]))["artefact"]["sha256"] for name in ("texts", "encoder")]
    with job.publish("embeddings") as (out, counts):
        counts.update(
            embed_texts(
                members,
                job.inputs["texts"],
                recipe["readout_entry"],
                out["matrix"],
                dtype=recipe["embeddings"],
                work=Path(job.params["work"]),
                identity={"made_of": made_of, "recipe": recipe, "version": job.lineage.version, "threads": job.threads},
                threads=job.threads,
                kernels=str(job.resources.get(KERNELS, "off")),
                named="line {}",
            )
        )
        counts["encoder"] = recipe["encoders"]
        job.lineage.device, job.lineage.devices = counts.pop("device"), counts.pop("devices")
