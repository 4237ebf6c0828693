"""Fetch one translation model."""

from crosslign.stages.fetch_model import fetch_model
from crosslign.stages.job import execute

execute(
    fetch_model,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
