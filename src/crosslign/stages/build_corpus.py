"""Stage corpora: clean rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from crosslign.config.catalog import is_head
from crosslign.corpora.build import build_corpus as build
from crosslign.corpora.kept_shards import Shards
from crosslign.files.lineage import read_lineage
from crosslign.jobs.job import DERIVED, Job
from crosslign.stages import STAGES


@STAGES.register(version=2)
def build_corpus(job: Job) -> None:
    """Read, filter and write one corpus."""
    recipe = job.params["recipe"]
    files = own_files(job)
    job.lineage.licences = [recipe["entry"]["licence"]]
    if "head" in recipe["entry"]:
        job.lineage.heads = [f"{recipe['entry']['source']}: {recipe['entry']['head']}"]
    parts = job.inputs.get(DERIVED, [])
    with job.publish("corpus") as (out, counts):
        counts.update(
            build(
                recipe["corpus"],
                recipe["entry"],
                files,
                job.inputs.get("references", {}),
                out["rows"],
                recipe["limit"],
                threads=job.threads,
                shards=None if parts else kept_shards(job, job.outputs["rows"]),
                parts=parts,
            )
        )
        counts.update(_read_of(files))


def own_files(job: Job) -> dict[str, Path]:
    """Return the files of its source that a corpus reads, by name."""
    return {path.name: path for path in job.inputs.get("files", [])}


def kept_shards(job: Job, beside: Path, part: int = 1, parts: int = 1) -> Shards:
    """Return what a killed job of the same corpus, or of the same share of it, left beside its output."""
    made_of = [job.lineage.input_checksum(path) for path in sorted(job.lineage.inputs)]
    identity = {"made_of": made_of, "recipe": job.params["recipe"], "version": job.lineage.version, **job.lineage.own_sum}
    return Shards(beside.with_name(f".{beside.name}.shards"), identity, part, parts)


def _read_of(files: Mapping[str, Path]) -> dict[str, dict[str, int]]:
    """Return `head`, how many bytes of how many were read, where files are the beginnings of others; else nothing."""
    sizes = {name: path.stat().st_size for name, path in files.items()}
    whole = {name: int(read_lineage(path)["counts"]["whole_bytes"]) for name, path in files.items() if is_head(name)}
    return {"head": {"bytes": sum(sizes.values()), "of": sum({**sizes, **whole}.values())}} if whole else {}
