"""Write the report."""

from crosslign.stages.job import execute
from crosslign.stages.write_report import write_report

execute(
    write_report,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
