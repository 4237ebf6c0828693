"""Write the files of a source from the project's own sentences."""

from crosslign.stages.fetch import write_stand_in
from crosslign.stages.job import execute

execute(
    write_stand_in,
    rule="write_stand_in",
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
