"""Encode one side of a user's own mining."""

from crosslign.stages.job import execute
from crosslign.stages.mine_embed import mine_embed

execute(
    mine_embed,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    gpus=snakemake.resources.get("gpu", 0),
    log=snakemake.log[0],
)
