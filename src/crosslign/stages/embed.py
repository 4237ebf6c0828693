"""Stage embeddings: one matrix per run, checkpoint, readout and evaluation corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from crosslign.config.entry_keys import KERNELS
from crosslign.encoders.matrices import embed_texts
from crosslign.encoders.model import Model
from crosslign.encoders.whitening import fit, occurrences, whiten
from crosslign.entries.catalog import Readout
from crosslign.files.lineage import checksum, lineage_path, read_lineage, sidecar_if_there
from crosslign.jobs.job import Job
from crosslign.objectives.contract import Part
from crosslign.objectives.saved_parts import load_part
from crosslign.stages import STAGES


@STAGES.register(version=1)
def embed(job: Job) -> None:
    """Encode the distinct texts of one evaluation corpus, one process a thread; with a head, write its logits."""
    recipe = job.params["recipe"]
    members = {name: Path(folder) for name, folder in job.params["members"].items()}
    collapsed = collapse_mark(Path(job.inputs["encoder"]), recipe["checkpoint"])
    checkpoint = next(iter(members.values())).parent
    head = _head(recipe["head"], checkpoint) if recipe.get("head") else None
    entry: Readout = recipe["readout_entry"]
    whitening = entry.get("whitening")
    if whitening:
        entry = cast(Readout, {**{key: value for key, value in entry.items() if key != "whitening"}, "normalise": False})
    with job.publish("embeddings") as (out, counts):
        matrix = out["matrix"].with_name("raw.npy") if whitening else out["matrix"]
        made_of = [read_lineage(job.inputs[name])["artefact"]["sha256"] for name in ("texts", "encoder")]
        counts.update(
            embed_texts(
                members,
                job.inputs["texts"],
                entry,
                matrix,
                threads=1,
                head=head,
                processes=job.threads,
                work=Path(job.params["work"]),
                identity={"made_of": made_of, "recipe": recipe, "version": job.lineage.version},
                kernels=str(job.resources.get(KERNELS, "off")),
            )
        )
        if whitening:
            weights = occurrences(Path(job.inputs["fitted_texts"]), Path(job.inputs["fitted_items"]))
            mean, kernel = fit(Path(job.inputs["fitted_matrix"]), weights, whitening["dimensions"])
            whiten(matrix, mean, kernel, recipe["readout_entry"]["normalise"], out["matrix"])
            counts["dimension"] = kernel.shape[1]
        # Of this checkpoint alone: the run's folder holds the others too.
        counts["checkpoint_sha"] = checksum(checkpoint)
        counts.update({"collapsed": collapsed} if collapsed else {})
        job.lineage.device, job.lineage.devices = counts.pop("device"), counts.pop("devices")


def _head(head: Mapping[str, Any], checkpoint: Path) -> Callable[[Model], Part]:
    return lambda model: load_part(head["name"], head["entry"], model, checkpoint)


def collapse_mark(run: Path, checkpoint: str) -> str:
    """Return why training marked a checkpoint of a run as collapsed; empty where it did not, and for encoders as they came."""
    lineage = sidecar_if_there(lineage_path(run))
    return str(lineage["counts"].get("collapsed", {}).get(checkpoint, "")) if lineage else ""
