"""Stage scores: one JSON per run, checkpoint, readout and task."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.devices import all_devices
from crosslign.encoders.unknown import in_words
from crosslign.errors import InputError
from crosslign.files import sha256_text
from crosslign.files.lineage import Lineage, lineage_path
from crosslign.files.text import read_json
from crosslign.jobs.job import Job
from crosslign.paths import EVALUATION_FILES
from crosslign.stages import STAGES
from crosslign.tasks.data import Machine
from crosslign.tasks.score import score_run


@STAGES.register(version=2)
def score(job: Job) -> None:
    """Score the matrices of one task."""
    recipe = job.params["recipe"]
    entry = recipe["readout_entry"]
    roles = list(recipe["task_entry"]["texts"])
    matrices = {role: job.inputs["roles"][role]["matrix"] for role in roles}
    files = {role: {part: job.inputs["roles"][role][part] for part in EVALUATION_FILES} for role in roles}
    sidecars = [read_json(lineage_path(matrices[role])) for role in roles]
    read = {role: sidecar["recipe"]["readout_entry"] for role, sidecar in zip(roles, sidecars, strict=True)}
    lengths, prefixes = ({role: entry[key] for role, entry in read.items()} for key in ("max_length", "prefix"))
    by_corpus = {corpus: files[role] for role, corpus in recipe["task_entry"]["texts"].items()}
    context = {
        **{key: recipe[key] for key in ("run_id", "system", "seed", "checkpoint", "readout", "profile")},
        **{key: entry[key] for key in ("pooling", "precision")},
        # As it was read: a smaller encoder has another layer there, and the roles of a task may have lengths and prefixes of their own.
        "layer": sidecars[0]["counts"]["layer_read"],
        "max_length": max(lengths.values()),
        "lengths": lengths if len(set(lengths.values())) > 1 else {},
        "prefix": prefixes[roles[0]] if len(set(prefixes.values())) == 1 else "",
        "prefixes": prefixes if len(set(prefixes.values())) > 1 else {},
        "score_change": str(entry.get("score_change", "" if entry["precision"] == "fp32" else "not measured")),
        "checkpoint_sha": _checkpoint_sha(dict(zip(matrices.values(), sidecars, strict=True))),
        "code_version": job.lineage.version,
        "data_manifest_sha": _data_manifest_sha(job.lineage, by_corpus),
        "collapsed": next((found for sidecar in sidecars if (found := sidecar["counts"].get("collapsed"))), ""),
        "note": _unknown_note(matrices, sidecars, recipe["task_entry"]["texts"]),
    }
    work = Path(job.params["work"])
    devices = all_devices() if job.resources.get("gpu") else ["cpu"]  # most scores do without torch, which tells
    machine = Machine(devices, int(job.resources.get("search_threads", 1)), work)
    job.lineage.device = ", ".join(devices)
    with job.publish("scores") as (out, counts):
        to, resamples = out["scores"], out["resamples"]
        counts["records"] = len(score_run(recipe["task"], recipe["task_entry"], matrices, files, to, context, resamples, machine))
    shutil.rmtree(work, ignore_errors=True)


def _unknown_note(matrices: Mapping[str, Path], sidecars: Sequence[Mapping[str, Any]], corpora: Mapping[str, str]) -> str:
    """Return what a table is to say where the encoder does not know many of an evaluation corpus's tokens."""
    found = [
        (corpora[role], in_words(sidecar["counts"].get("unknown_tokens", {}))) for role, sidecar in zip(matrices, sidecars, strict=True)
    ]
    return " ".join(dict.fromkeys(f"{corpus}: {words}." for corpus, words in found if words))


def _checkpoint_sha(sidecars: Mapping[Path, Mapping[str, Any]]) -> str:
    """Return the hash of the checkpoint that all matrices are of."""
    found = {str(sidecar["counts"].get("checkpoint_sha", "")): path for path, sidecar in sidecars.items()}
    if len(found) != 1 or "" in found:
        raise InputError(
            "the embeddings of a score may come from different checkpoints",
            where=", ".join(str(path) for path in found.values()),
            do="Delete them; the next run rebuilds them",
        )
    return next(iter(found))


def _data_manifest_sha(lineage: Lineage, corpora: Mapping[str, Mapping[str, Path]]) -> str:
    """Return the hash of the data that a task is scored on: of the sorted names and checksums of its texts, items and gold.

    Args:
        lineage: of the job, which has the checksums.
        corpora: files of each evaluation corpus, by name.
    """
    lines = [f"{corpus}/{part} {lineage.input_checksum(file)}\n" for corpus, files in corpora.items() for part, file in files.items()]
    return sha256_text("".join(sorted(lines)))
