"""Prepare one base encoder."""

from crosslign.stages.job import execute
from crosslign.stages.prepare_encoder import prepare_encoder

execute(
    prepare_encoder,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
