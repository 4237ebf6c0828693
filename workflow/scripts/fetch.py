"""Fetch one file of a source."""

from crosslign.stages.fetch import fetch
from crosslign.stages.job import execute

execute(
    fetch,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=[*snakemake.params.items(), ("mirrors", snakemake.resources.mirrors)],
    threads=snakemake.threads,
    log=snakemake.log[0],
)
