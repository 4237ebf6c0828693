"""Score one run on one task."""

from crosslign.stages.job import execute
from crosslign.stages.score import score

execute(
    score,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
