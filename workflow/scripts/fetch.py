"""Fetch one file of a source."""

from crosslign.stages.fetch import fetch
from crosslign.stages.job import execute

execute(
    fetch,
    rule=snakemake.rule,
    inputs=[],  # the artefact is a copy of what there is, and made of nothing
    outputs=snakemake.output.items(),
    params=[*snakemake.params.items(), ("mirrors", snakemake.resources.mirrors)],
    threads=snakemake.threads,
    log=snakemake.log[0],
)
