"""Read one side of a user's own mining."""

from crosslign.stages.job import execute
from crosslign.stages.mine_texts import mine_texts

execute(
    mine_texts,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
