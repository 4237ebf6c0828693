"""Write the overview of tables and figures."""

from crosslign.stages.job import execute
from crosslign.stages.write_overview import write_overview

execute(
    write_overview,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
