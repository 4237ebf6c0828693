"""Find the nearest neighbours of both sides of a user's own mining."""

from crosslign.stages.job import execute
from crosslign.stages.mine_search import mine_search

execute(
    mine_search,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    gpus=snakemake.resources.get("gpu", 0),
    log=snakemake.log[0],
)
