"""Encode one text set."""

from crosslign.stages.embed import embed
from crosslign.stages.job import execute

execute(
    embed,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    gpus=snakemake.resources.get("gpu", 0),
    log=snakemake.log[0],
)
