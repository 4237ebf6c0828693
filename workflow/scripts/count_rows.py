"""Count what stands behind one table."""

from crosslign.stages.count_rows import count_rows
from crosslign.stages.job import execute

execute(
    count_rows,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
