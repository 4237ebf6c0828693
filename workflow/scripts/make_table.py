"""Make one table."""

from crosslign.stages.job import execute
from crosslign.stages.make_table import make_table

execute(
    make_table,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
