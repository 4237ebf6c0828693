"""Write the pairs of a user's own mining."""

from crosslign.stages.job import execute
from crosslign.stages.mine_pairs import mine_pairs

execute(
    mine_pairs,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
