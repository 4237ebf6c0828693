"""Build one training set."""

from crosslign.stages.build_examples import build_examples
from crosslign.stages.job import execute

execute(
    build_examples,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
